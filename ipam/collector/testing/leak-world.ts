import type { AddressLease, LeaseOwner } from '../../../api/address-lease.js';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { type KubeObject, joinKey } from '../../../api/meta.js';
import type { Pod } from '../../../api/pod.js';
import { transformClaimPod } from '../../claims/running/claim-pods.js';
import type { CollectorReport } from '../report.js';
import { parseAddress } from '../../../addressing/address/address.js';
import { createLease, readLease } from '../../../addressing/lease/lease.js';
import { LeaseBook } from '../../leases/lease-book.js';
import { Client } from '../../../kube/client.js';
import { StatusError, TransportError } from '../../../kube/errors.js';
import { LaggingInformer } from '../../../kube/testing/lagging-informer.js';
import type { Resource } from '../../../kube/resource.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS, PODS } from '../../../kube/resources.js';
import { MemoryTransport, targetOf } from '../../../kube/testing/memory-transport.js';
import type { Preconditions } from '../../../kube/testing/refusals.js';
import type { ApiRequest } from '../../../kube/transport/transport.js';
import type { PoolState } from '../../../addressing/directory/pool-state.js';
import { refOf } from '../../../test/object-tracker/object-world.js';

/** How the API server answers reads. */
export const READ_FAULTS = ['well', 'silent', 'forbidden', 'overloaded', 'unserved', 'proxied', 'misnamed'] as const;
export type ReadFault = (typeof READ_FAULTS)[number];
const RESOURCES = { addressleases: ADDRESS_LEASES, addresspools: ADDRESS_POOLS, ipamclaims: IPAM_CLAIMS, pods: PODS };
export type Plural = keyof typeof RESOURCES;

/** Where pods run. */
const NODE = 'n1';

/** Leases and their owners on an API server with moods, and caches of them that lag behind. For tests of what frees addresses. */
export class LeakWorld {
  readonly #api = new MemoryTransport();
  /** By key. */
  readonly objects: Record<Plural, ReadonlyMap<string, KubeObject>> = {
    addressleases: this.#api.tracker.objects(ADDRESS_LEASES),
    addresspools: this.#api.tracker.objects(ADDRESS_POOLS),
    ipamclaims: this.#api.tracker.objects(IPAM_CLAIMS),
    pods: this.#api.tracker.objects(PODS),
  };
  readFault: ReadFault = 'well';
  isGateOpen = true;
  /** Called before a read is answered and before a write is done. */
  beforeRequest: () => void = () => undefined;
  /** Called with what a write is about to make of a lease; undefined: it is deleted. */
  onWrite: (before: AddressLease, after: AddressLease | undefined) => void = () => undefined;
  now = Date.UTC(2026, 0, 1);
  /** The monotonic clock of the process. By default cool-downs count from the times in the leases. */
  cacheNow: () => number = () => Infinity;
  readonly collected: string[] = [];
  readonly kept: string[] = [];
  readonly expired: string[] = [];
  readonly requests: string[] = [];
  readonly claims = new LaggingInformer(this.#api.tracker, { resource: IPAM_CLAIMS });
  readonly pods = new LaggingInformer(this.#api.tracker, { resource: PODS, transform: transformClaimPod });
  readonly informers = {
    addressleases: new LaggingInformer(this.#api.tracker, { resource: ADDRESS_LEASES, transform: readLease }),
    ipamclaims: this.claims,
    pods: this.pods,
  };
  /** The nodes as the cache has them. */
  readonly nodes = { cache: new Map<string, KubeObject>([[NODE, { metadata: { name: NODE } }]]), hasSynced: true };
  /** The pools as the cache has them. */
  readonly pools = new Set(['blue']);
  readonly directory = {
    stateOf: (name: string): PoolState | undefined =>
      this.pools.has(name) ? { kind: 'closing', message: '' } : undefined,
  };

  readonly users = {
    podsOf: ({ metadata: { namespace, name } }: IPAMClaim) =>
      this.pods.cache.list().filter((pod) => pod.metadata.namespace === namespace && pod.claims.includes(name)),
  };

  readonly book = new LeaseBook();

  readonly report: CollectorReport = {
    candidates: () => undefined,
    clear: () => undefined,
    collected: ({ lease, leak }) => void this.collected.push(`${leak} ${lease.metadata.name}`),
    kept: ({ lease }, why) => void this.kept.push(`${why.kind} ${lease.metadata.name}`),
    expired: ({ metadata }) => void this.expired.push(metadata.name),
    notExpired: ({ metadata }) => void this.kept.push(`kept ${metadata.name}`),
  };

  readonly client = new Client(this.#api);

  /** What the collector needs of a process, but for the time. */
  get deps() {
    const { book, client, claims, pods, nodes, users, directory, report } = this;
    const gate = { isOpen: () => this.isGateOpen };
    return { book, client, claims, pods, nodes, users, directory, report, gate, agentNamespace: 'holdfast-agents' };
  }

  constructor() {
    this.#api.before = (request) => this.#receive(request);
    this.#api.tracker.admit = ({ before, after }) =>
      this.onWrite(before as AddressLease, after as AddressLease | undefined);
    this.book.attach(
      { hasSynced: false, onChange: (handler) => this.informers.addressleases.onChange(handler) },
      { now: () => this.cacheNow() },
    );
    for (const informer of Object.values(this.informers)) informer.list();
    this.deliverAll();
  }

  put<T extends KubeObject>(plural: Plural, object: T): T {
    const resource: Resource = RESOURCES[plural];
    this.#api.tracker.put(resource, structuredClone(object));
    return this.#api.tracker.get(resource, object.metadata) as T;
  }

  remove(plural: Plural, key: string): void {
    this.#api.tracker.remove(RESOURCES[plural], refOf(key));
  }

  lease(name: string): AddressLease | undefined {
    return this.objects.addressleases.get(name) as AddressLease | undefined;
  }

  claim(key: string): IPAMClaim | undefined {
    return this.objects.ipamclaims.get(key) as IPAMClaim | undefined;
  }

  leases(): AddressLease[] {
    return [...this.objects.addressleases.values()] as AddressLease[];
  }

  /** A claim with these addresses in its status. */
  addClaim(name: string, ips: string[] = []): IPAMClaim {
    return this.put('ipamclaims', {
      metadata: { name, namespace: 'vms' },
      spec: { network: 'blue', interface: '' },
      status: { ips },
    });
  }

  addPod(name: string, more: Partial<Pod> = {}): Pod {
    return this.put('pods', {
      spec: { nodeName: NODE },
      ...more,
      metadata: { name, namespace: 'vms', ...more.metadata },
    });
  }

  /** @param owner a claim or a pod; undefined: an admin reserves the address */
  addLease(address: string, owner: IPAMClaim | Pod | undefined): AddressLease {
    const node = (owner as Pod | undefined)?.spec?.nodeName;
    const on = node === undefined ? {} : { node };
    const request = { address: parseAddress(address), addressSpace: 'blue', pool: 'blue', ...on };
    const { object } = createLease({ ...request, owner: ownerOf(owner)! });
    return this.put('addressleases', object);
  }

  /** The caches of the kinds see what is there. */
  deliver(...plurals: Plural[]): void {
    for (const plural of plurals) {
      if (plural === 'addresspools') continue;
      const informer = this.informers[plural];
      // a test may have set it
      const { hasSynced } = informer;
      informer.list();
      Object.assign(informer, { hasSynced, lastProgress: this.now });
    }
  }

  deliverAll(): void {
    this.deliver('addressleases', 'ipamclaims', 'pods');
  }

  #receive({ method, path, body }: ApiRequest): void {
    this.beforeRequest();
    const { kind, namespace, name } = targetOf(path);
    const { plural, group } = kind;
    if (method !== 'GET') {
      this.requests.push(`write ${name}`);
      if (this.readFault === 'silent') this.#refuse({});
      const { metadata, preconditions = metadata } = body as Partial<KubeObject> & { preconditions?: Preconditions };
      if (!preconditions?.uid || !preconditions.resourceVersion) throw new TypeError(`${name}: no preconditions`);
      return;
    }
    this.requests.push(name === undefined ? `LIST ${plural}` : `GET ${plural} ${joinKey(namespace, name)}`);
    this.#refuse(name === undefined ? {} : { name, kind: plural, ...(group && { group }) });
  }

  #refuse(details: { name?: string; kind?: string }): void {
    switch (this.readFault) {
      case 'silent':
        throw new TransportError('deadline', 'no answer in time');
      case 'forbidden':
        throw statusError(403, 'Forbidden', details);
      case 'overloaded':
        throw statusError(503, 'ServiceUnavailable', details);
      case 'unserved':
        throw statusError(404, 'NotFound', {});
      case 'proxied':
        throw statusError(404, 'Not Found', undefined);
      case 'misnamed':
        throw statusError(404, 'NotFound', { ...details, kind: 'namespaces', group: '' });
      case 'well':
        return;
    }
  }
}

function ownerOf(owner: IPAMClaim | Pod | undefined): LeaseOwner | undefined {
  if (owner === undefined) return undefined;
  const { namespace = '', name, uid = '' } = owner.metadata;
  return { kind: 'status' in owner && 'ips' in (owner.status ?? {}) ? 'IPAMClaim' : 'Pod', namespace, name, uid };
}

function statusError(status: number, reason: string, details: StatusError['details']): StatusError {
  return new StatusError({ request: 'test', status, reason, message: reason, details });
}
