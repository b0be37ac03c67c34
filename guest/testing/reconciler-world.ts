import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../api/kubevirt.js';
import type { KubeObject } from '../../api/meta.js';
import { NETWORK_DATA_ANNOTATION } from '../../api/names.js';
import { conditionOf } from '../../cluster/claim-conditions.js';
import { VMI_INDEXES, VM_INDEXES } from '../../cluster/watch-specs.js';
import type { AddressLease } from '../../api/address-lease.js';
import { type LeaseRecord, createLease, readLease } from '../../addressing/lease/lease.js';
import { parseAddress } from '../../addressing/address/address.js';
import { Cache } from '../../kube/cache.js';
import type { Sync, SyncResult } from '../../kube/controller-loop.js';
import type { Secret } from '../../kube/resources.js';
import type { Resource } from '../../kube/resource.js';
import { apiError } from '../../test/api-errors.js';
import { NAMESPACE } from '../../test/workload-objects.js';
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
  "secrets \"net\" is forbidden: ValidatingAdmissionPolicy 'holdfast-network-data' with binding 'holdfast-network-data' denied request: " +
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
  readonly secrets = new Map<string, Secret>();
  readonly leases = new Map<string, AddressLease>();
  /** What the cache of locked leases shows; undefined: all leases as they are. */
  shownLeases: readonly AddressLease[] | undefined;
  readonly requests: string[] = [];
  readonly events: string[] = [];
  readonly counted = { misconfigured: 0, notWritten: new Map<string, number>(), written: 0 };
  now = 0;

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
      client: this as never,
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
    const metadata = { name: 'net', labels: { [UID_LABEL]: 'former' } };
    const data = { networkdata: Buffer.from(text).toString('base64') };
    this.secrets.set('net', { type: 'ipam.holdfast.dev/network-data', metadata, data });
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

  addLease(text: string, { metadata: { name, uid = '' } }: IPAMClaim): void {
    const owner = { kind: 'IPAMClaim' as const, namespace: NAMESPACE, name, uid };
    const write = createLease({ address: parseAddress(text), addressSpace: 'data', pool: 'data', owner });
    if (write.verb !== 'create') throw new TypeError('a new lease is created');
    const { lease } = write;
    this.leases.set(lease.metadata.name, {
      ...lease,
      metadata: { ...lease.metadata, uid: text, resourceVersion: '1' },
    });
  }

  /** Of patches of Secrets. */
  failure: ReturnType<typeof apiError> | undefined;
  /** Why the API server rejects new Secrets. */
  denial: ReturnType<typeof apiError> | undefined;

  create(resource: Resource, object: Secret): Promise<KubeObject> {
    const { name } = object.metadata;
    this.requests.push(`create ${resource.plural} ${name}`);
    if (this.denial !== undefined) return Promise.reject(this.denial);
    if (this.secrets.has(name)) return Promise.reject(apiError(409, 'AlreadyExists', 'exists', name));
    this.secrets.set(name, object);
    return Promise.resolve(object);
  }

  patch(resource: Resource, { name }: { name: string }, { body }: { body: Secret & IPAMClaim }): Promise<KubeObject> {
    this.requests.push(`patch ${resource.plural} ${name}`);
    if (resource.plural === 'secrets') return this.#patchSecret(name, body);
    if (resource.plural === 'addressleases') return this.patchLease(name, body as unknown as AddressLease);
    const claim = this.claims.get(`${NAMESPACE}/${name}`)!;
    const changed = { ...claim, status: { ...claim.status, ...body.status } } as IPAMClaim;
    this.claims.set(changed);
    return Promise.resolve(changed);
  }

  /** As the API server with the preconditions of a patch. */
  protected patchLease(name: string, { metadata, spec }: AddressLease): Promise<AddressLease> {
    const before = this.leases.get(name);
    if (before === undefined) return Promise.reject(apiError(404, 'NotFound', 'not found', name));
    if (before.metadata.uid !== metadata.uid || before.metadata.resourceVersion !== metadata.resourceVersion)
      return Promise.reject(apiError(409, 'Conflict', 'the lease has changed', name));
    const kept = Object.entries({ ...before.spec, ...spec }).filter(([, value]) => (value as unknown) !== null);
    const changed: AddressLease = {
      metadata: { ...before.metadata, resourceVersion: String(Number(metadata.resourceVersion) + 1) },
      spec: Object.fromEntries(kept) as unknown as AddressLease['spec'],
    };
    this.leases.set(name, changed);
    return Promise.resolve(changed);
  }

  /** As the API server with the policy holdfast-network-data. */
  #patchSecret(name: string, { metadata, data }: Secret): Promise<KubeObject> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    const before = this.secrets.get(name);
    if (before === undefined) return Promise.reject(apiError(404, 'NotFound', 'not found', name));
    const isSameVm = before.metadata.labels?.[UID_LABEL] === metadata.labels?.[UID_LABEL];
    const isOrphan = (before.metadata.ownerReferences ?? []).length === 0;
    if (before.type !== 'ipam.holdfast.dev/network-data' || !(isSameVm || isOrphan))
      return Promise.reject(apiError(403, 'Forbidden', DENIAL, name));
    const kept = Object.entries({ ...before.data, ...data }).filter(([, value]) => (value as string | null) !== null);
    const changed = { ...before, metadata: { ...before.metadata, ...metadata }, data: Object.fromEntries(kept) };
    this.secrets.set(name, changed);
    return Promise.resolve(changed);
  }

  find(_resource: Resource, { name }: { name: string }): Promise<KubeObject | undefined> {
    return Promise.resolve(this.leases.get(name));
  }

  get textOfSecret(): string {
    return Buffer.from(this.secrets.get('net')?.data?.networkdata ?? '', 'base64').toString();
  }

  condition(type: string) {
    return conditionOf(this.claims.get(`${NAMESPACE}/vm1.data`)!, type);
  }
}

/** Reconciles a workload once. */
export function runSync(run: Sync, key = `${NAMESPACE}/vm1`): Promise<SyncResult> {
  return (run as (key: string, signal: AbortSignal) => Promise<SyncResult>)(key, new AbortController().signal);
}
