import type { AddressLease, LeaseOwner } from '../api/address-lease.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { type KubeObject, joinKey, objectKey } from '../api/meta.js';
import type { Pod } from '../api/pod.js';
import type { ClaimPod } from '../ipam/claims/pods.js';
import { shrinkPod } from '../ipam/claims/pods.js';
import type { CollectorReport } from '../ipam/collector/report.js';
import { type LeaseRecord, type LeaseWrite, createLease, readLease, stateOf } from '../ipam/core/lease.js';
import { parseAddress } from '../ipam/core/address.js';
import type { Client } from '../kube/client.js';
import { StatusError, TransportError } from '../kube/errors.js';
import type { Resource } from '../kube/resource.js';

/** How the API server answers a GET. */
export const MOODS = ['well', 'silent', 'forbidden', 'overloaded', 'unserved', 'proxied', 'misnamed'] as const;
export type Mood = (typeof MOODS)[number];
export type Plural = 'addressleases' | 'ipamclaims' | 'pods';

type Handler = (change: { before?: LeaseRecord; after?: LeaseRecord }) => void;

/** Leases and their owners on an API server with moods, and caches of them that lag behind. For tests of what frees addresses. */
export class LeakWorld {
  readonly truth: Record<Plural, Map<string, KubeObject>> = {
    addressleases: new Map(),
    ipamclaims: new Map(),
    pods: new Map(),
  };
  mood: Mood = 'well';
  /** Called before a GET is answered and before a write is done. */
  meanwhile: () => void = () => undefined;
  /** Called with what a write is about to make of a lease; undefined: it is deleted. */
  onWrite: (before: AddressLease, after: AddressLease | undefined) => void = () => undefined;
  now = Date.UTC(2026, 0, 1);
  readonly collected: string[] = [];
  readonly spared: string[] = [];
  readonly expired: string[] = [];
  readonly requests: string[] = [];
  readonly claims = { cache: new Map<string, IPAMClaim>(), hasSynced: true, lastProgress: this.now };
  readonly pods = { cache: new Map<string, ClaimPod>(), hasSynced: true, lastProgress: this.now };
  readonly #book = new Map<string, LeaseRecord>();
  readonly #handlers: Handler[] = [];
  #serial = 0;

  readonly users = {
    usersOf: ({ metadata: { namespace, name } }: IPAMClaim) =>
      [...this.pods.cache.values()].filter((pod) => pod.metadata.namespace === namespace && pod.claims.includes(name)),
  };

  readonly book = {
    all: () => this.#book.values(),
    released: () => [...this.#book.values()].filter((lease) => stateOf(lease) === 'released'),
    ofOwner: (uid: string) => [...this.#book.values()].filter(({ owner }) => owner?.uid === uid),
    wrote: (lease: AddressLease) => this.#note(lease.metadata.name, readLease(lease)),
    forget: (name: string) => this.#note(name, undefined),
    onChange: (handler: Handler) => void this.#handlers.push(handler),
  };

  readonly report: CollectorReport = {
    suspected: () => undefined,
    collected: ({ lease, charge }) => void this.collected.push(`${charge} ${lease.metadata.name}`),
    spared: ({ lease }, why) => void this.spared.push(`${why.kind} ${lease.metadata.name}`),
    expired: ({ metadata }) => void this.expired.push(metadata.name),
    notExpired: ({ metadata }) => void this.spared.push(`kept ${metadata.name}`),
  };

  readonly client = {
    get: (resource: Resource, ref: { namespace?: string; name: string }) => soon(() => this.#get(resource, ref)),
    patch: (_resource: Resource, { name }: { name: string }, { body }: { body: KubeObject }) =>
      soon(() => this.#patch(name, body as AddressLease)),
    delete: (_resource: Resource, { name }: { name: string }, preconditions: object) =>
      soon(() => this.#delete(name, preconditions)),
    create: () => Promise.reject(new Error('nobody creates anything here')),
  } as unknown as Pick<Client, 'get' | 'create' | 'patch' | 'delete'>;

  /** What the collector needs of a process, but for the time. */
  get deps() {
    const { book, client, claims, pods, users, report } = this;
    return { book, client, claims, pods, users, report };
  }

  put<T extends KubeObject>(plural: Plural, object: T): T {
    const stored = structuredClone(object);
    const before = this.truth[plural].get(objectKey(object));
    const serial = String(++this.#serial);
    stored.metadata.uid = before?.metadata.uid ?? object.metadata.uid ?? `${plural}-${serial}`;
    stored.metadata.resourceVersion = serial;
    this.truth[plural].set(objectKey(object), stored);
    return stored;
  }

  remove(plural: Plural, key: string): void {
    this.truth[plural].delete(key);
  }

  lease(name: string): AddressLease | undefined {
    return this.truth.addressleases.get(name) as AddressLease | undefined;
  }

  claim(key: string): IPAMClaim | undefined {
    return this.truth.ipamclaims.get(key) as IPAMClaim | undefined;
  }

  leases(): AddressLease[] {
    return [...this.truth.addressleases.values()] as AddressLease[];
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
    return this.put('pods', { ...more, metadata: { name, namespace: 'vms', ...more.metadata } });
  }

  /** @param owner a claim or a pod; undefined: an admin reserves the address */
  addLease(address: string, owner: IPAMClaim | Pod | undefined): AddressLease {
    const request = { address: parseAddress(address), addressSpace: 'blue', pool: 'blue', owner: ownerOf(owner) };
    const write = createLease(request as typeof request & { owner: LeaseOwner });
    return this.put('addressleases', (write as LeaseWrite & { verb: 'create' }).lease);
  }

  /** The caches of the kinds see what is there. */
  deliver(...plurals: Plural[]): void {
    for (const plural of plurals) {
      const objects = [...this.truth[plural].values()];
      if (plural === 'addressleases') this.#deliverLeases(objects as AddressLease[]);
      else if (plural === 'ipamclaims') replace(this.claims, objects as IPAMClaim[], this.now);
      else replace(this.pods, objects.map(shrinkPod), this.now);
    }
  }

  deliverAll(): void {
    this.deliver('addressleases', 'ipamclaims', 'pods');
  }

  #deliverLeases(leases: AddressLease[]): void {
    const names = new Set(leases.map(({ metadata }) => metadata.name));
    for (const name of [...this.#book.keys()]) if (!names.has(name)) this.#note(name, undefined);
    for (const lease of leases) this.#note(lease.metadata.name, readLease(lease));
  }

  #note(name: string, after: LeaseRecord | undefined): void {
    const before = this.#book.get(name);
    if (after === undefined) this.#book.delete(name);
    else this.#book.set(name, after);
    const change = { ...(before && { before }), ...(after && { after }) };
    for (const handler of this.#handlers) handler(change);
  }

  #get({ plural, group }: Resource, { namespace, name }: { namespace?: string; name: string }): KubeObject {
    this.meanwhile();
    const key = joinKey(namespace, name);
    this.requests.push(`GET ${plural} ${key}`);
    const details = { name, kind: plural, ...(group && { group }) };
    const object = this.truth[plural as Plural].get(key);
    switch (this.mood) {
      case 'silent':
        throw new TransportError('deadline', 'no answer in time');
      case 'forbidden':
        throw refusal(403, 'Forbidden', details);
      case 'overloaded':
        throw refusal(503, 'ServiceUnavailable', details);
      case 'unserved':
        throw refusal(404, 'NotFound', {});
      case 'proxied':
        throw refusal(404, 'Not Found', undefined);
      case 'misnamed':
        throw refusal(404, 'NotFound', { ...details, kind: 'namespaces', group: '' });
      case 'well':
        if (object === undefined) throw refusal(404, 'NotFound', details);
        return structuredClone(object);
    }
  }

  #patch(name: string, body: AddressLease): AddressLease {
    const before = this.#writable(name, body.metadata);
    const after = { ...before, spec: { ...before.spec, ...body.spec } };
    this.onWrite(before, after);
    return structuredClone(this.put('addressleases', after));
  }

  #delete(name: string, preconditions: object): void {
    const before = this.#writable(name, preconditions);
    this.onWrite(before, undefined);
    this.remove('addressleases', name);
  }

  #writable(name: string, { uid, resourceVersion }: { uid?: string; resourceVersion?: string }): AddressLease {
    this.meanwhile();
    this.requests.push(`write ${name}`);
    if (this.mood === 'silent') throw new TransportError('deadline', 'no answer in time');
    const lease = this.lease(name);
    if (lease === undefined) throw refusal(404, 'NotFound', { name });
    if (lease.metadata.uid !== uid || lease.metadata.resourceVersion !== resourceVersion) {
      throw refusal(409, 'Conflict', { name });
    }
    return lease;
  }
}

function soon<T>(answer: () => T): Promise<T> {
  return Promise.resolve().then(answer);
}

function ownerOf(owner: IPAMClaim | Pod | undefined): LeaseOwner | undefined {
  if (owner === undefined) return undefined;
  const { namespace = '', name, uid = '' } = owner.metadata;
  return { kind: 'status' in owner && 'ips' in (owner.status ?? {}) ? 'IPAMClaim' : 'Pod', namespace, name, uid };
}

function replace<S extends KubeObject>(
  followed: { cache: Map<string, S>; lastProgress: number },
  objects: readonly S[],
  now: number,
): void {
  followed.cache.clear();
  for (const object of objects) followed.cache.set(objectKey(object), object);
  followed.lastProgress = now;
}

function refusal(status: number, reason: string, details: StatusError['details']): StatusError {
  return new StatusError({ request: 'test', status, reason, message: reason, details });
}
