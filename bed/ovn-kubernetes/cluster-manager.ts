import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type KubeObject, joinKey, objectKey } from '../../api/meta.js';
import { AllocationReason, IPS_ALLOCATED } from '../../api/names.js';
import { isTerminal, type Pod } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import { systemClock } from '../../kube/clock.js';
import { ControllerLoop } from '../../kube/controller-loop.js';
import { isConflict, messageOf } from '../../kube/errors.js';
import { Informer } from '../../kube/informers/informer.js';
import { silentLogger } from '../../kube/log.js';
import { IPAM_CLAIMS, PODS } from '../../kube/resources.js';
import { WorkQueue } from '../../kube/workqueue.js';
import { grantRole } from '../story/users/role.js';
import { serviceAccountClient } from '../story/users/service-account.js';
import { until } from '../processes/wait.js';
import { OvnAddressPool, SubnetExhausted } from './address-pool.js';
import {
  annotatedAddresses,
  annotationPatch,
  type Attachment,
  attachmentsOf,
  type OvnNetwork,
} from './pod-networks.js';

/** The record of what it did, for assertions. */
export interface OvnJournal {
  /** The statuses that it wrote, by UID of the claim. */
  readonly statuses: Map<string, NonNullable<IPAMClaim['status']>[]>;
  /** Writes that were rejected because the claim had changed. OVN-Kubernetes repeats them after up to 30 s. */
  readonly conflicts: string[];
  readonly released: string[];
  /** Releases of addresses that a running pod used or a claim had. */
  readonly releasedInUse: string[];
}

/**
 * Plays the part of OVN-Kubernetes' cluster manager that concerns claims (its packages clustermanager/pod and allocator/pod), for one network: layer 2,
 * localnet or primary. It reads claims and pods from its caches, writes the status of a claim before the annotation of the pod, and keeps
 * addresses in memory. It has the rights that the chart of OVN-Kubernetes gives.
 */
export class OvnClusterManager {
  readonly journal: OvnJournal = { statuses: new Map(), conflicts: [], released: [], releasedInUse: [] };
  readonly #client: Client;
  readonly #network: OvnNetwork;
  readonly #pool: OvnAddressPool;
  readonly #claims: Informer<IPAMClaim>;
  readonly #pods: Informer<Pod>;
  readonly #queue = new WorkQueue({ clock: systemClock, random: Math.random, baseMs: 1000, maxMs: 1000 });
  readonly #loop: ControllerLoop;
  /** Pods whose deletion is not handled yet. */
  readonly #gone = new Map<string, Pod>();
  /** UIDs of pods that have ended. Their addresses are released once. */
  readonly #ended = new Set<string>();

  private constructor(client: Client, network: OvnNetwork) {
    this.#client = client;
    this.#network = network;
    this.#pool = new OvnAddressPool(network.subnets);
    const { namespace } = network.nad;
    this.#claims = new Informer(client, IPAM_CLAIMS, { namespace });
    this.#pods = new Informer(client, PODS, { namespace });
    this.#loop = new ControllerLoop({
      name: 'pods',
      queue: this.#queue,
      workers: 1,
      sync: (key) => this.#syncPod(key),
      log: silentLogger,
      clock: systemClock,
      invalidRetryMs: 1000,
    });
  }

  /** Starts one in the namespace of the NAD, with a service account of its own. */
  static async start(admin: { client: Client; kubeconfig: string }, network: OvnNetwork): Promise<OvnClusterManager> {
    const account = { namespace: network.nad.namespace, name: `ovnkube-cluster-manager-${network.nad.name}` };
    const client = await serviceAccountClient(admin, account);
    await grantRole(admin.client, account, [
      { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: [''], resources: ['pods/status'], verbs: ['patch', 'update'] },
      { apiGroups: ['k8s.cni.cncf.io'], resources: ['ipamclaims'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['k8s.cni.cncf.io'], resources: ['ipamclaims/status'], verbs: ['patch', 'update'] },
    ]);
    await until('OVN-Kubernetes to have its rights', () => client.list(IPAM_CLAIMS, { namespace: account.namespace }));
    const manager = new OvnClusterManager(client, network);
    await manager.#run();
    return manager;
  }

  async stop(): Promise<void> {
    await Promise.all([this.#claims.stop(), this.#pods.stop()]);
    await this.#loop.stop();
    await this.#client.transport.close();
  }

  /** The addresses that a pod has on the network, one list for each of its interfaces. */
  addressesOf(pod: Pod): string[][] {
    return annotatedAddresses(pod, this.#network.nad);
  }

  /** Claims before pods: both claim addresses that must not be allocated again. */
  async #run(): Promise<void> {
    this.#claims.start();
    await this.#claims.synced();
    for (const claim of this.#claims.cache.list()) if (this.#isOurs(claim)) this.#pool.allocate(ipsOf(claim));
    this.#claims.onChange(({ type, object }) => {
      if (type === 'removed' && this.#isOurs(object)) this.#releaseOfClaim(object);
    });
    this.#pods.start();
    await this.#pods.synced();
    for (const pod of this.#pods.cache.list()) if (!isTerminal(pod)) this.#pool.allocate(this.addressesOf(pod).flat());
    this.#pods.onChange(({ type, object }) => {
      const key = objectKey(object);
      if (type === 'removed') this.#gone.set(key, object);
      this.#queue.add(key);
    });
    this.#loop.start();
  }

  async #syncPod(key: string): Promise<void> {
    try {
      const gone = this.#gone.get(key);
      if (gone !== undefined) this.#end(gone);
      this.#gone.delete(key);
      const pod = this.#pods.cache.get(key);
      if (pod?.spec?.nodeName === undefined) return;
      if (isTerminal(pod)) this.#end(pod);
      else await this.#allocateFor(pod);
    } catch (error) {
      if (isConflict(error)) this.journal.conflicts.push(`${key}: ${messageOf(error)}`);
      throw error;
    }
  }

  async #allocateFor(pod: Pod): Promise<void> {
    const before = this.addressesOf(pod);
    const attachments = attachmentsOf(pod, this.#network);
    const addresses: string[][] = [];
    for (const [index, attachment] of attachments.entries()) {
      addresses.push(await this.#allocateOne(pod, attachment, before[index]));
    }
    if (attachments.length <= before.length) return; // the annotation keeps an unplugged interface
    const patch = annotationPatch(pod, this.#network, addresses);
    const written = await this.#client.patch(PODS, refOf(pod), patch, { subresource: 'status' });
    await waitSeen(this.#pods, pod, written);
  }

  /** @param present the addresses in the pod's annotation */
  async #allocateOne(pod: Pod, { reference, requested }: Attachment, present: string[] | undefined): Promise<string[]> {
    const claim = this.#findClaim(reference);
    const unserved = claim !== undefined && ipsOf(claim).length === 0 ? claim : undefined;
    const kept = present ?? (unserved === claim ? undefined : claim?.status?.ips);
    rejectOther(requested, kept);
    const ips = kept ?? requested ?? (await this.#allocateNext(unserved, pod));
    this.#pool.allocate(ips);
    try {
      if (unserved !== undefined) await this.#writeStatus(unserved, pod, ips);
    } catch (error) {
      if (kept === undefined) this.#pool.release(ips);
      throw error;
    }
    return ips;
  }

  async #allocateNext(claim: IPAMClaim | undefined, pod: Pod): Promise<string[]> {
    try {
      return this.#pool.allocateNext();
    } catch (error) {
      if (claim !== undefined && error instanceof SubnetExhausted) await this.#writeStatus(claim, pod, error);
      throw error;
    }
  }

  /** The whole status, with the resourceVersion of the cached claim. */
  async #writeStatus(claim: IPAMClaim, pod: Pod, outcome: string[] | SubnetExhausted): Promise<void> {
    const failed = outcome instanceof SubnetExhausted;
    const condition = {
      type: IPS_ALLOCATED,
      status: failed ? ('False' as const) : ('True' as const),
      reason: failed ? AllocationReason.Exhausted : AllocationReason.Success,
      message: failed ? outcome.message : 'IP addresses successfully allocated',
      lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ''),
      observedGeneration: claim.metadata.generation ?? 0,
    };
    const isRepeated = claim.status?.conditions?.some(({ reason }) => failed && reason === condition.reason);
    if (isRepeated) return;
    const status = { ips: failed ? [] : outcome, ownerPod: { name: pod.metadata.name }, conditions: [condition] };
    const written = await this.#client.replace(IPAM_CLAIMS, { ...claim, status }, { subresource: 'status' });
    const { uid = '' } = claim.metadata;
    this.journal.statuses.set(uid, [...(this.journal.statuses.get(uid) ?? []), status]);
    await waitSeen(this.#claims, claim, written);
  }

  /** Claims keep their addresses when their pod ends. All other addresses are released. */
  #end(pod: Pod): void {
    const { uid = '' } = pod.metadata;
    const addresses = this.addressesOf(pod);
    if (addresses.length === 0 || this.#ended.has(uid)) return;
    this.#ended.add(uid);
    attachmentsOf(pod, this.#network).forEach(({ reference }, index) => {
      const claim =
        reference === undefined ? undefined : this.#claims.cache.get(joinKey(this.#network.nad.namespace, reference));
      if (claim === undefined || ipsOf(claim).length === 0) this.#releaseOfPod(addresses[index] ?? []);
    });
  }

  #releaseOfPod(ips: readonly string[]): void {
    const claims = this.#claims.cache.list().filter((claim) => this.#isOurs(claim));
    this.#release(ips, (ip) => claims.some((claim) => ipsOf(claim).includes(ip)));
  }

  #releaseOfClaim(claim: IPAMClaim): void {
    const pods = this.#pods.cache.list().filter((pod) => !isTerminal(pod) && this.#refersTo(pod, claim));
    this.#release(ipsOf(claim), (ip) => pods.some((pod) => this.addressesOf(pod).flat().includes(ip)));
  }

  #release(ips: readonly string[], isInUse: (ip: string) => boolean): void {
    this.journal.released.push(...ips);
    this.journal.releasedInUse.push(...ips.filter(isInUse));
    this.#pool.release(ips);
  }

  #refersTo(pod: Pod, claim: IPAMClaim): boolean {
    return attachmentsOf(pod, this.#network).some(({ reference }) => reference === claim.metadata.name);
  }

  #findClaim(name: string | undefined): IPAMClaim | undefined {
    if (name === undefined) return undefined;
    const claim = this.#claims.cache.get(joinKey(this.#network.nad.namespace, name));
    if (claim === undefined) throw new Error(`error retrieving IPAMClaim ${name}`);
    return claim;
  }

  #isOurs({ spec }: IPAMClaim): boolean {
    return spec.network === this.#network.network;
  }
}

/** Waits until the cache has a write, or a later one: then a conflict is the fault of another writer. */
async function waitSeen<T extends KubeObject>(informer: Informer<T>, before: T, written: KubeObject): Promise<void> {
  const { resourceVersion } = before.metadata;
  if (written.metadata.resourceVersion === resourceVersion) return;
  const key = objectKey(before);
  await until(`${key} to be seen`, () => informer.cache.get(key)?.metadata.resourceVersion !== resourceVersion);
}

/** A claim keeps its addresses, also against a request. */
function rejectOther(requested: readonly string[] | undefined, kept: readonly string[] | undefined): void {
  const other = kept && requested?.find((ip) => !kept.includes(ip));
  if (other !== undefined) throw new Error(`requested static IP ${other} is not one of the claim`);
}

function ipsOf(claim: IPAMClaim): string[] {
  return claim.status?.ips ?? [];
}

function refOf({ metadata }: KubeObject): { namespace: string; name: string } {
  return { namespace: metadata.namespace ?? '', name: metadata.name };
}
