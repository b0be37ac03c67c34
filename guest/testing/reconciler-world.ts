import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../api/kubevirt.js';
import type { KubeObject } from '../../api/meta.js';
import { NETWORK_DATA_ANNOTATION } from '../../api/names.js';
import { conditionOf } from '../../cluster/claim-conditions.js';
import { VMI_INDEXES, VM_INDEXES } from '../../cluster/watch-specs.js';
import type { AddressLease } from '../../api/address-lease.js';
import { type LeaseRecord, createLease, readLease } from '../../addressing/lease/lease.js';
import { parseAddress } from '../../addressing/address/address.js';
import { Cache } from '../../kube/informers/cache.js';
import { Client } from '../../kube/client.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import type { Sync, SyncResult } from '../../kube/controller-loop.js';
import type { Resource } from '../../kube/resource.js';
import { ADDRESS_LEASES, IPAM_CLAIMS, SECRETS, type Secret } from '../../kube/resources.js';
import { type Fault, MemoryTransport, targetOf } from '../../kube/testing/memory-transport.js';
import type { Admission } from '../../kube/testing/object-tracker.js';
import { FORBIDDEN, refusal } from '../../kube/testing/refusals.js';
import type { ApiRequest } from '../../kube/transport/transport.js';
import { NAMESPACE } from '../../test/objects/workload-objects.js';
import { GuestWorld, guestSpec } from './guest-world.js';
import type { GuestMetrics } from '../metrics.js';
import type { GuestViews } from '../views.js';
import { BY_SECRET, secretKeysOf, workloadOfLock } from '../watch-specs.js';
import { WorkloadReconciler } from '../workload-reconciler.js';

export const MAC = '02:00:00:00:00:01';
export const VMI_RUNS = {
  phase: 'Running',
  interfaces: [{ name: 'data', infoSource: 'domain, guest-agent', ipAddresses: ['10.1.0.7'] }],
};

export const UID_LABEL = 'ipam.holdfast.dev/workload-uid';
/** Of kube-apiserver v1.37. */
const DENIAL =
  "is forbidden: ValidatingAdmissionPolicy 'holdfast-network-data' with binding 'holdfast-network-data' denied request: " +
  'holdfast-guest may only write the Secret of the VM whose UID is its label ipam.holdfast.dev/workload-uid';

interface VmOptions {
  secret?: string;
  /** null: none, so that the pool decides. */
  annotation?: string | null;
  created?: string;
  uid?: string;
  /** Of its interfaces. */
  macs?: readonly (string | undefined)[];
}

/** The API server, with the admission policy for Secrets, and the caches of the process. */
export class ReconcilerWorld extends GuestWorld {
  /** A VM `vm1` whose claim has an address on one network. */
  static withLeasedVm(): ReconcilerWorld {
    const world = new ReconcilerWorld();
    world.addNetwork('data', [{ cidr: '10.1.0.0/24', gateway: '10.1.0.1' }]);
    world.addVm('vm1');
    world.addLease('10.1.0.5', world.addClaim('data', ['10.1.0.5/24']));
    return world;
  }

  readonly vms = new Cache<VirtualMachine>({ ...VM_INDEXES, [BY_SECRET]: secretKeysOf });
  readonly vmis = new Cache<VirtualMachineInstance>({ ...VMI_INDEXES, [BY_SECRET]: secretKeysOf });
  readonly namespaces = new Cache<KubeObject>();
  readonly api = new MemoryTransport();
  readonly tracker = this.api.tracker;
  readonly secrets = this.tracker.objects(SECRETS);
  readonly leases = this.tracker.objects(ADDRESS_LEASES);
  /** What the cache of locked leases shows; undefined: all leases as they are. */
  shownLeases: readonly AddressLease[] | undefined;
  readonly requests: string[] = [];
  readonly events: string[] = [];
  readonly counted = { misconfigured: 0, notWritten: new Map<string, number>(), written: 0 };
  now = 0;

  constructor() {
    super();
    this.tracker.admit = checkPolicy;
    this.tracker.observe(IPAM_CLAIMS, ({ object }) => this.claims.set(object));
    this.api.before = (request) => this.#receive(request);
  }

  /** Secret `net`. */
  get secret(): Secret | undefined {
    return this.tracker.find(SECRETS, { namespace: NAMESPACE, name: 'net' });
  }

  reconciler(): WorkloadReconciler {
    const watched = Object.fromEntries(
      ['vms', 'vmis', 'claims', 'networks', 'namespaces', 'pools'].map((kind) => [
        kind,
        { cache: this[kind as 'vms'], onChange: () => undefined },
      ]),
    );
    const cache = {
      list: () => this.#lockedLeases(),
      byIndex: (_: string, key: string) => this.#lockedLeases().filter((lease) => workloadOfLock(lease).includes(key)),
    };
    Object.assign(watched, { lockedLeases: { cache, onChange: () => undefined } });
    const views = { watched, directory: this.directory, gate: { isOpen: () => true }, onGateChange: () => 0 };
    return new WorkloadReconciler({
      views: views as unknown as GuestViews,
      client: new Client(this.api),
      config: { namespace: 'holdfast-system', guestGraceMs: 60_000 },
      clock: { now: () => this.now, wall: () => this.now } as never,
      events: {
        event: (subject, type, reason, message) => this.events.push(`${subject.kind} ${type} ${reason} ${message}`),
      },
      metrics: this.#metrics(),
    });
  }

  #lockedLeases(): LeaseRecord[] {
    const shown = this.shownLeases ?? [...this.leases.values()];
    return shown.map(readLease).filter(({ networkData }) => networkData !== undefined);
  }

  #metrics(): GuestMetrics {
    const { notWritten } = this.counted;
    const count = (reason: string | undefined, more: number) =>
      reason !== undefined && notWritten.set(reason, (notWritten.get(reason) ?? 0) + more);
    return {
      respondersWanted: () => undefined,
      misconfigured: (more) => (this.counted.misconfigured += more),
      notWritten: (before, after) => {
        count(before, -1);
        count(after, 1);
      },
      written: () => (this.counted.written += 1),
      clear: () => undefined,
    };
  }

  addVm(name: string, options: VmOptions = {}): void {
    const { secret = 'net', annotation = secret, created = '2026-01-01T00:00:00Z', uid = 'vm-uid' } = options;
    const { macs = [MAC] } = options;
    const spec = guestSpec(
      macs.map((mac, index) => ({ name: index === 0 ? 'data' : 'more', nad: 'data', ...(mac && { macAddress: mac }) })),
      [{ cloudInitNoCloud: { networkDataSecretRef: { name: secret } } }],
    );
    const annotations = annotation === null ? {} : { [NETWORK_DATA_ANNOTATION]: annotation };
    this.vms.set({
      metadata: { name, namespace: NAMESPACE, uid, creationTimestamp: created },
      spec: { template: { metadata: { annotations }, spec } },
    });
  }

  /** Adds Secret `net` as a backup tool restores it: without an owner, with the label and the text of a former VM. */
  restoreSecret(text: string): void {
    const metadata = { name: 'net', namespace: NAMESPACE, labels: { [UID_LABEL]: 'former' } };
    const data = { networkdata: Buffer.from(text).toString('base64') };
    this.tracker.put(SECRETS, { type: 'ipam.holdfast.dev/network-data', metadata, data });
  }

  addVmi(uid: string, status: VirtualMachineInstance['status']): void {
    const controller = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      name: 'vm1',
      uid: 'vm-uid',
      controller: true,
    };
    const metadata = { name: 'vm1', namespace: NAMESPACE, uid, ownerReferences: [controller] };
    this.vmis.set({ metadata, ...(status && { status }) });
  }

  override addClaim(...given: Parameters<GuestWorld['addClaim']>): IPAMClaim {
    return this.setClaim(super.addClaim(...given));
  }

  setClaim(claim: IPAMClaim): IPAMClaim {
    this.tracker.put(IPAM_CLAIMS, claim);
    return claim;
  }

  addLease(text: string, { metadata: { name, uid = '' } }: IPAMClaim): void {
    const owner = { kind: 'IPAMClaim' as const, namespace: NAMESPACE, name, uid };
    const write = createLease({ address: parseAddress(text), addressSpace: 'data', pool: 'data', owner });
    this.tracker.put(ADDRESS_LEASES, write.object);
  }

  deleteAll(kind: Resource): void {
    for (const { metadata } of this.tracker.list(kind)) this.tracker.remove(kind, metadata);
  }

  /** Of patches of Secrets. */
  failure: Error | undefined;
  /** Why the API server rejects new Secrets. */
  denial: Error | undefined;

  /** How a request fails. */
  protected faultOf({ method, path }: ApiRequest): Fault {
    const isOfSecret = targetOf(path).kind.plural === 'secrets';
    const error = isOfSecret ? { POST: this.denial, PATCH: this.failure }[method] : undefined;
    return error && { error, applied: false };
  }

  /** Writes without an answer that the API server has not carried out yet. */
  readonly late: ApiRequest[] = [];

  /** Delays the next request of this kind, whose caller gets no answer. */
  loseNext(method: string, plural = ''): (request: ApiRequest) => Fault {
    return (request) => {
      if (request.method !== method || !request.path.includes(plural)) return this.#receive(request);
      this.api.before = (next) => this.#receive(next);
      this.late.push(request);
      return { error: new TransportError('deadline', 'no complete response within 15000 ms'), applied: false };
    };
  }

  /** Carries out the writes that are late. */
  arrive(): void {
    for (const request of this.late.splice(0)) {
      try {
        this.api.serve(JSON.parse(JSON.stringify(request)) as ApiRequest);
      } catch (error) {
        // what it was decided on has changed
        if (!(error instanceof StatusError)) throw error;
      }
    }
  }

  #receive(request: ApiRequest): Fault {
    const { method, path, body } = request;
    const { kind, name = (body as KubeObject | undefined)?.metadata.name } = targetOf(path);
    if (method !== 'GET') this.requests.push(`${method === 'POST' ? 'create' : 'patch'} ${kind.plural} ${name}`);
    return this.faultOf(request);
  }

  get textOfSecret(): string {
    return Buffer.from(this.secret?.data?.networkdata ?? '', 'base64').toString();
  }

  condition(type: string) {
    return conditionOf(this.claims.get(`${NAMESPACE}/vm1.data`)!, type);
  }
}

/** As the policy holdfast-network-data. */
function checkPolicy({ verb, kind, before, after }: Admission): void {
  if (kind.plural !== 'secrets' || verb !== 'update') return;
  const { type, metadata } = before as Secret;
  const isSameVm = metadata.labels?.[UID_LABEL] === after?.metadata.labels?.[UID_LABEL];
  const isOrphan = (metadata.ownerReferences ?? []).length === 0;
  if (type !== 'ipam.holdfast.dev/network-data' || !(isSameVm || isOrphan))
    throw refusal(kind, metadata.name, FORBIDDEN, DENIAL);
}

/** Reconciles a workload once. */
export function runSync(run: Sync, key = `${NAMESPACE}/vm1`): Promise<SyncResult> {
  return (run as (key: string, signal: AbortSignal) => Promise<SyncResult>)(key, new AbortController().signal);
}
