import { type IPAMClaim, claimOwnerOf } from '../../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../../api/kubevirt.js';
import { type KubeObject, joinKey, splitKey } from '../../../api/meta.js';
import type { NetworkConfig } from '../../../api/networks/network-attachment.js';
import { findUnlessGone } from '../../../kube/absence.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import { messageOf } from '../../../kube/errors.js';
import type { Resource } from '../../../kube/resource.js';
import { IPAM_CLAIMS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../../../kube/resources.js';
import { type Recheck, type RecheckableView, recheckKey } from '../../../cluster/cluster-view.js';
import { type PersistentIPsGate, isNamespaceServed } from '../../../cluster/persistent-ips-gate.js';
import type { PoolLookup } from '../pool-lookup.js';
import { LIVE_READ_MS } from '../request-context.js';

/** The result of a live read. */
export interface CachedRead<T> {
  /** Undefined if the object did not exist. */
  readonly object: T | undefined;
  /** When the read was sent, in the clock's ms. The result is at least as new. */
  readonly at: number;
}

interface ReadCacheDeps {
  readonly client: Pick<Client, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly maxStalenessMs: number;
}

/** Recent live reads of single objects. Nothing is watched, because an agent needs few objects of the cluster, each for a short time. */
export class ReadCache {
  readonly #deps: ReadCacheDeps;
  readonly #seen = new Map<string, CachedRead<KubeObject>>();

  constructor(deps: ReadCacheDeps) {
    this.#deps = deps;
  }

  /** Reads before this time are stale, in the clock's ms. */
  get staleBefore(): number {
    return this.#deps.clock.now() - this.#deps.maxStalenessMs;
  }

  /** Returns the last read of an object. @param key `namespace/name`, or the name; @param since ignores reads before, in the clock's ms */
  get<T extends KubeObject>(resource: Resource<T>, key: string, since = this.staleBefore): CachedRead<T> | undefined {
    const found = this.#seen.get(cacheKey(resource, key));
    // the resource, which determines T, is part of the key
    return found !== undefined && found.at >= since ? (found as CachedRead<T>) : undefined;
  }

  /** Returns all objects of a kind that were read and existed. */
  list<T extends KubeObject>(resource: Resource<T>, since: number): readonly T[] {
    const prefix = cacheKey(resource, '');
    const found: T[] = [];
    for (const [id, { object, at }] of this.#seen) {
      if (object !== undefined && at >= since && id.startsWith(prefix)) found.push(object as T);
    }
    return found;
  }

  /** Reads an object live. @throws {StatusError | TransportError} if the read failed; a missing object is no error */
  async read<T extends KubeObject>(resource: Resource<T>, key: string, signal: AbortSignal): Promise<CachedRead<T>> {
    const { client, clock } = this.#deps;
    const at = clock.now();
    const object = await findUnlessGone(client, resource, splitKey(key), { signal, deadlineMs: LIVE_READ_MS });
    const read = { object, at };
    const id = cacheKey(resource, key);
    // a slower read that was sent earlier must not replace a newer result
    if ((this.#seen.get(id)?.at ?? at) <= at) this.#seen.set(id, read);
    return read;
  }

  evictBefore(time: number): void {
    for (const [id, { at }] of this.#seen) if (at < time) this.#seen.delete(id);
  }

  get size(): number {
    return this.#seen.size;
  }
}

function cacheKey({ group, plural }: Resource, key: string): string {
  return `${group}/${plural} ${key}`;
}

/** The kinds that are rechecked in the namespace of the pod. */
const RESOURCES: Readonly<Record<Exclude<Recheck['kind'], 'network'>, Resource>> = {
  vmi: VIRTUAL_MACHINE_INSTANCES,
  vm: VIRTUAL_MACHINES,
  claim: IPAM_CLAIMS,
};

interface ReadCacheViewOptions {
  readonly namespace: string;
  readonly reads: ReadCache;
  readonly lookup: Pick<PoolLookup, 'nad' | 'loadNad' | 'hasReadNad'>;
  readonly gate: PersistentIPsGate;
  /** Ignores reads before this time, in the clock's ms. */
  readonly since: number;
  /** Rechecked objects must have been read at or after this time, in the clock's ms. */
  readonly now: number;
  /** Ends live reads. */
  readonly signal: AbortSignal;
}

/** A namespace and NADs as recent live reads have shown them. Create one for each decision. */
export class ReadCacheView implements RecheckableView {
  lookupFailure: string | undefined;
  readonly #options: ReadCacheViewOptions;
  readonly #failures = new Map<string, unknown>();

  constructor(options: ReadCacheViewOptions) {
    this.#options = options;
  }

  /** Ignores the opt-out of the namespace, which is read only if the decision depends on it. */
  get allowsNewClaims(): boolean {
    const { namespace, gate } = this.#options;
    return isNamespaceServed(namespace, gate, '');
  }

  vmi(name: string): VirtualMachineInstance | undefined {
    return this.#get(VIRTUAL_MACHINE_INSTANCES, this.#key(name));
  }

  vm(name: string): VirtualMachine | undefined {
    return this.#get(VIRTUAL_MACHINES, this.#key(name));
  }

  claim(name: string): IPAMClaim | undefined {
    return this.#get(IPAM_CLAIMS, this.#key(name));
  }

  /** Returns the claims that were read. If a certain claim is needed, recheck its name. */
  claimsOf(ownerUid: string): readonly IPAMClaim[] {
    const { reads, since, namespace } = this.#options;
    const claims = reads.list(IPAM_CLAIMS, since);
    return claims.filter((claim) => claim.metadata.namespace === namespace && claimOwnerOf(claim)?.uid === ownerUid);
  }

  network(key: string): NetworkConfig | undefined {
    return this.#options.lookup.nad(key, this.#options.since)?.config;
  }

  /** Whether the object was read, found or not, or the read failed. */
  hasRechecked(recheck: Recheck): boolean {
    if (this.#failures.has(recheckKey(recheck))) return true;
    const { reads, lookup, now } = this.#options;
    if (recheck.kind === 'network') return lookup.hasReadNad(recheck.key, now);
    return reads.get(RESOURCES[recheck.kind], this.#key(recheck.key), now) !== undefined;
  }

  /** Never rejects. */
  async recheck(recheck: Recheck): Promise<void> {
    const { reads, lookup, now, signal } = this.#options;
    try {
      if (recheck.kind === 'network') await lookup.loadNad(recheck.key, { signal }, now);
      else await reads.read(RESOURCES[recheck.kind], this.#key(recheck.key), signal);
    } catch (error) {
      this.#failures.set(recheckKey(recheck), error);
      this.lookupFailure ??= messageOf(error);
    }
  }

  /** Returns the error of a recheck that failed. */
  failureOf(rechecks: readonly Recheck[]): unknown {
    const failed = rechecks.find((recheck) => this.#failures.has(recheckKey(recheck)));
    return failed && this.#failures.get(recheckKey(failed));
  }

  #get<T extends KubeObject>(resource: Resource<T>, key: string): T | undefined {
    const { reads, since } = this.#options;
    return reads.get(resource, key, since)?.object;
  }

  #key(name: string): string {
    return joinKey(this.#options.namespace, name);
  }
}
