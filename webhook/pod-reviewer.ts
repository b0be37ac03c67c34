import { FairSemaphore, FairSemaphoreError, type FairSemaphoreLimits } from '../kube/fair-semaphore.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { Lister } from '../kube/informers/cache.js';
import type { VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import { type KubeObject, joinKey, splitKey } from '../api/meta.js';
import { PERSISTENT_IPS_DISABLED, PERSISTENT_IPS_LABEL } from '../api/names.js';
import { type NetworkConfig, parseNetworkConfig } from '../api/networks/network-attachment.js';
import type { Client } from '../kube/client.js';
import type { Clock } from '../kube/clock.js';
import { isApiUnavailable, isForbidden, messageOf } from '../kube/errors.js';
import type { Resource } from '../kube/resource.js';
import {
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../kube/resources.js';
import { CONNECTIONS } from '../process/context.js';
import type { PersistentIPsGate } from '../cluster/persistent-ips-gate.js';
import { BY_OWNER_UID } from '../cluster/watch-specs.js';
import { type ParsedNad, transformVmi } from '../cluster/transforms.js';
import {
  type ClusterView,
  type Recheck,
  type RecheckableView,
  decideWithRechecks,
  recheckKey,
} from '../cluster/cluster-view.js';
import type { PodDecision, PodReview } from './pod-decision.js';
import { reviewPod } from './pod-mutation.js';

/** For all live reads of one review. The API server waits 5 s for the webhook. */
const LIVE_READS_TIMEOUT_MS = 2_000;
/** No read starts with less time left, because its failure would say nothing about the API server. */
const MIN_READ_MS = 500;
/** The VMI and the VM. */
const READS_PER_REVIEW = 2;
/** The NAD, and the two possible names of the claim. */
const READS_PER_NETWORK = 3;
/** A read whose time runs must not wait for a connection; other requests have the other half. */
const MAX_READS = CONNECTIONS.webhook / 2;
/** Four busy namespaces use all of it. The queue holds all reads of a review of 64 networks. */
const LIMITS: FairSemaphoreLimits = { max: MAX_READS, maxPerKey: MAX_READS / 4, maxQueuedPerKey: 256 };

interface WebhookListers {
  vmis: Lister<VirtualMachineInstance>;
  vms: Lister<VirtualMachine>;
  claims: Lister<IPAMClaim>;
  networks: Lister<ParsedNad>;
  namespaces: Lister<KubeObject>;
}

interface PodReviewerOptions {
  listers: WebhookListers;
  client: Pick<Client, 'find'>;
  gate: PersistentIPsGate;
  clock: Clock;
  /** Called after each live read. */
  onLiveRead: (kind: Recheck['kind'], result: 'found' | 'absent' | 'failed') => void;
}

/** Reviews pods from the caches. Objects that could change the answer and may be missing in the caches are read live once. */
export class PodReviewer {
  readonly #options: PodReviewerOptions;
  readonly #liveReads: FairSemaphore;

  constructor(options: PodReviewerOptions) {
    this.#options = options;
    this.#liveReads = new FairSemaphore(LIMITS, (namespace) => `live reads of namespace ${namespace}`);
  }

  review(review: PodReview): Promise<PodDecision> {
    return this.decideWithRechecks(review.namespace, (view) => reviewPod(review, view));
  }

  /** Decides from the caches, and again after live reads that could change the decision. */
  async decideWithRechecks<V extends { rechecks: readonly Recheck[] }>(
    namespace: string,
    decide: (view: ClusterView) => V,
  ): Promise<V & { isUncertain?: boolean }> {
    const view = new LiveView(namespace, this.#options, this.#liveReads);
    const decision = await decideWithRechecks(view, () => decide(view));
    return { ...decision, isUncertain: decision.rechecks.some((recheck) => view.isUnanswered(recheck)) };
  }
}

/** The caches, and the objects that this review has read live, which take precedence. */
class LiveView implements RecheckableView {
  lookupFailure: string | undefined;
  readonly #namespace: string;
  readonly #options: PodReviewerOptions;
  readonly #liveReads: FairSemaphore;
  readonly #deadline: number;
  #vmiNetworks = 0;
  readonly #rechecked = new Set<string>();
  readonly #unanswered = new Set<string>();
  readonly #vmis = new Map<string, VirtualMachineInstance | undefined>();
  readonly #vms = new Map<string, VirtualMachine | undefined>();
  readonly #claims = new Map<string, IPAMClaim | undefined>();
  readonly #networks = new Map<string, NetworkConfig | undefined>();

  constructor(namespace: string, options: PodReviewerOptions, liveReads: FairSemaphore) {
    this.#namespace = namespace;
    this.#options = options;
    this.#liveReads = liveReads;
    this.#deadline = options.clock.now() + LIVE_READS_TIMEOUT_MS;
  }

  /** Depends on the number of networks of the VMI, not on the pod's annotation. */
  get readsLeft(): number {
    return Math.max(0, READS_PER_REVIEW + READS_PER_NETWORK * this.#vmiNetworks - this.#rechecked.size);
  }

  get allowsNewClaims(): boolean {
    const labels = this.#options.listers.namespaces.get(this.#namespace)?.metadata.labels;
    return this.#options.gate.isOpen() && labels?.[PERSISTENT_IPS_LABEL] !== PERSISTENT_IPS_DISABLED;
  }

  vmi(name: string): VirtualMachineInstance | undefined {
    const vmi = this.#vmis.has(name)
      ? this.#vmis.get(name)
      : this.#options.listers.vmis.get(joinKey(this.#namespace, name));
    this.#vmiNetworks = vmi?.spec?.networks?.length ?? 0;
    return vmi;
  }

  vm(name: string): VirtualMachine | undefined {
    if (this.#vms.has(name)) return this.#vms.get(name);
    return this.#options.listers.vms.get(joinKey(this.#namespace, name));
  }

  claim(name: string): IPAMClaim | undefined {
    if (this.#claims.has(name)) return this.#claims.get(name);
    return this.#options.listers.claims.get(joinKey(this.#namespace, name));
  }

  claimsOf(ownerUid: string): readonly IPAMClaim[] {
    const claims = this.#options.listers.claims.byIndex(BY_OWNER_UID, ownerUid);
    return claims.filter(({ metadata }) => metadata.namespace === this.#namespace);
  }

  network(key: string): NetworkConfig | undefined {
    if (this.#networks.has(key)) return this.#networks.get(key);
    return this.#options.listers.networks.get(key)?.config;
  }

  hasRechecked(recheck: Recheck): boolean {
    return this.#rechecked.has(recheckKey(recheck));
  }

  /** Whether the API server did not answer a live read. A read that did not start in time does not count. */
  isUnanswered(recheck: Recheck): boolean {
    return this.#unanswered.has(recheckKey(recheck));
  }

  /** Reads an object live. If that fails, the cached object stays in use. */
  async recheck(recheck: Recheck): Promise<void> {
    const { kind, key } = recheck;
    this.#rechecked.add(recheckKey(recheck));
    try {
      const found = await this.#read(kind, key);
      this.#options.onLiveRead(kind, found ? 'found' : 'absent');
    } catch (error) {
      this.#options.onLiveRead(kind, 'failed');
      this.lookupFailure ??= messageOf(error);
      if (isApiUnavailable(error) || isForbidden(error)) this.#unanswered.add(recheckKey(recheck));
    }
  }

  /** @returns true if the object exists */
  #read(kind: Recheck['kind'], key: string): Promise<boolean> {
    const refKey = kind === 'network' ? key : joinKey(this.#namespace, key);
    const findInto = async <T extends KubeObject, S>(
      resource: Resource<T>,
      objects: Map<string, S | undefined>,
      transform: (object: T) => S,
    ) => {
      const found = await this.#find(resource, refKey);
      objects.set(key, found && transform(found));
      return found !== undefined;
    };
    switch (kind) {
      case 'vmi':
        return findInto(VIRTUAL_MACHINE_INSTANCES, this.#vmis, transformVmi);
      case 'vm':
        return findInto(VIRTUAL_MACHINES, this.#vms, (vm) => vm);
      case 'claim':
        return findInto(IPAM_CLAIMS, this.#claims, (claim) => claim);
      case 'network':
        return findInto(NETWORK_ATTACHMENT_DEFINITIONS, this.#networks, parseNetworkConfig);
    }
  }

  #find<T extends KubeObject>(resource: Resource<T>, key: string): Promise<T | undefined> {
    const { client, clock } = this.#options;
    const msLeft = () => this.#deadline - clock.now();
    const read = () => {
      if (msLeft() < MIN_READ_MS) throw new FairSemaphoreError('earlier live reads of this review took too long');
      return client.find(resource, splitKey(key), { deadlineMs: msLeft(), tenant: this.#namespace });
    };
    return this.#liveReads.run(this.#namespace, 1, read, { ms: Math.max(0, msLeft() - MIN_READ_MS), clock });
  }
}
