import type { AddressLease } from '../../../../api/address-lease.js';
import type { AddressPool } from '../../../../api/address-pool.js';
import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import { type KubeObject, objectKey } from '../../../../api/meta.js';
import type { Pod } from '../../../../api/pod.js';
import { StatusError } from '../../../../kube/errors.js';

export interface Objects {
  ipamclaims: IPAMClaim;
  addressleases: AddressLease;
  addresspools: AddressPool;
  pods: Pod;
}
export type Kind = keyof Objects;
export const KINDS: readonly Kind[] = ['ipamclaims', 'addressleases', 'addresspools', 'pods'];
export type WatchEvent<T = KubeObject> = { type: 'set'; object: T } | { type: 'removed'; object: T };

/** The objects of a cluster as its API server stores them, and a log of each kind that watches follow. */
export class IpamWorld {
  readonly log: Record<Kind, WatchEvent[]> = { ipamclaims: [], addressleases: [], addresspools: [], pods: [] };
  /** Milliseconds since the epoch. */
  now = Date.UTC(2026, 0, 1);
  readonly #objects: Record<Kind, Map<string, KubeObject>> = {
    ipamclaims: new Map(),
    addressleases: new Map(),
    addresspools: new Map(),
    pods: new Map(),
  };
  #serial = 100;

  get version(): number {
    return this.#serial;
  }

  get<K extends Kind>(kind: K, key: string): Objects[K] | undefined {
    return this.#objects[kind].get(key) as Objects[K] | undefined;
  }

  list<K extends Kind>(kind: K): Objects[K][] {
    return [...this.#objects[kind].values()] as Objects[K][];
  }

  claim(uid: string | undefined): IPAMClaim | undefined {
    return this.list('ipamclaims').find(({ metadata }) => metadata.uid === uid);
  }

  create<K extends Kind>(kind: K, object: Objects[K]): Objects[K] {
    const key = objectKey(object);
    if (this.#objects[kind].has(key)) throw apiError(409, 'AlreadyExists', `${kind} ${key}`, object.metadata.name);
    const stored = structuredClone(object);
    this.#serial++;
    stored.metadata = {
      ...stored.metadata,
      uid: `${object.metadata.name}#${this.#serial}`,
      resourceVersion: String(this.#serial),
      creationTimestamp: new Date(this.now).toISOString(),
    };
    return this.#set(kind, stored);
  }

  /** Changes a copy. A change without effect is no write. */
  update<K extends Kind>(kind: K, key: string, change: (copy: Objects[K]) => void): Objects[K] {
    const found = this.get(kind, key);
    if (found === undefined) throw apiError(404, 'NotFound', `${kind} ${key}`, key.split('/').pop() ?? '');
    const copy = structuredClone(found);
    change(copy);
    if (JSON.stringify(copy) === JSON.stringify(found)) return found;
    copy.metadata.resourceVersion = String(++this.#serial);
    return this.#set(kind, copy);
  }

  remove(kind: Kind, key: string): void {
    const object = this.#objects[kind].get(key);
    if (object === undefined) return;
    this.#objects[kind].delete(key);
    const version = String(++this.#serial);
    const last = { ...object, metadata: { ...object.metadata, resourceVersion: version } };
    this.log[kind].push({ type: 'removed', object: last });
  }

  #set<K extends Kind>(kind: K, object: Objects[K]): Objects[K] {
    this.#objects[kind].set(objectKey(object), object);
    this.log[kind].push({ type: 'set', object });
    return object;
  }
}

export function apiError(status: number, reason: string, message: string, name: string): StatusError {
  return new StatusError({ request: 'simulated', status, reason, message, details: { name } });
}
