import type { IPAMClaim } from '../../api/ipam-claim.js';
import { AllocationReason } from '../../api/names.js';
import { type Address, FAMILIES, type Family, formatAddress } from '../../addressing/address/address.js';
import type { AllocationRefusal } from '../../addressing/allocator/allocator.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { poolFamilyKey } from '../leases/cooling-queues.js';
import type { Findings } from './sync-state.js';

/** What a claim waits for: any address of a pool, or certain addresses. */
interface AwaitedAddresses {
  /** The claim's creationTimestamp. */
  created: string;
  pool?: Pick<Pool, 'name' | 'addressSpace'>;
  /** Those of which it lacks any address of the pool. Default: both. */
  families?: readonly Family[];
  /** It has an address that is draining: claims without an address come first. */
  isDraining?: boolean;
  addresses?: readonly { addressSpace: string; address: Address }[];
}

const RECHECK_MS = 5 * 60_000;
/** Sorts after all times. */
const AFTER_ALL = '~';
const COUNTS_INTERVAL_MS = 60_000;
const COUNTS_INTERVAL_PER_CLAIM_MS = 100;

interface WaitingClaim {
  key: string;
  created: string;
}

/** Claims that wait for an address of one pool and family: first those without one, oldest first. */
interface PoolQueue {
  addressSpace: string;
  family: Family;
  claims: WaitingClaim[];
}

/**
 * The claims that wait for addresses. The oldest is served first. A claim that leaves its queue wakes the next one, so that the first claim does not get all
 * addresses that are freed together.
 */
export class ClaimWaitList {
  readonly #wake: (keys: readonly string[]) => void;
  readonly #tellSize: (size: number) => void;
  readonly #waits = new Map<string, AwaitedAddresses>();
  /** Keys of claims that wait only because their address is draining. */
  readonly #draining = new Set<string>();
  /** By key: when the counts in the claim's message were last compared, in ms. */
  readonly #recountedAt = new Map<string, number>();
  /** By pool and family. */
  readonly #queues = new Map<string, PoolQueue>();
  /** By address space and address. */
  readonly #byAddress = new Map<string, Set<string>>();

  /**
   * @param wake called with the keys of claims to sync again
   * @param tellSize called with {@link size} when it may have changed
   */
  constructor(wake: (keys: readonly string[]) => void, tellSize: (size: number) => void = () => undefined) {
    this.#wake = wake;
    this.#tellSize = tellSize;
  }

  /** Counts the claims that wait, without those that wait only because their address is draining. */
  get size(): number {
    return this.#waits.size - this.#draining.size;
  }

  /** Replaces what the claim waits for. */
  set(key: string, wait: AwaitedAddresses): void {
    const before = this.#waits.get(key);
    if (before !== undefined && isSamePlace(before, wait)) this.#forgetAddresses(key, before);
    else this.remove(key);
    this.#waits.set(key, wait);
    if (isOnlyDraining(wait)) this.#draining.add(key);
    else this.#draining.delete(key);
    this.#join(key, wait);
    for (const { addressSpace, address } of wait.addresses ?? []) {
      const place = addressKey(addressSpace, address);
      this.#byAddress.set(place, (this.#byAddress.get(place) ?? new Set()).add(key));
    }
    this.#tellSize(this.size);
  }

  /** Milliseconds until a waiting claim is synced again, even if no event says that it can be served. The message about a draining address has no counts. */
  recheckMs(key: string): number {
    return this.#draining.has(key) ? RECHECK_MS : Math.min(this.#recountMs, RECHECK_MS);
  }

  /** Milliseconds between two messages of one claim with new counts: over all claims, at most ten messages a second change. */
  get #recountMs(): number {
    return Math.max(COUNTS_INTERVAL_MS, this.size * COUNTS_INTERVAL_PER_CLAIM_MS);
  }

  /** Whether the message of a waiting claim may show new counts now. The interval starts with the first call, and again with each `true`. */
  canUpdateCounts(key: string, now: number): boolean {
    const since = this.#recountedAt.get(key);
    if (since !== undefined && now - since < this.#recountMs) return false;
    if (this.#waits.has(key)) this.#recountedAt.set(key, now);
    return since !== undefined;
  }

  /** Removes a claim that has what it waited for, or that is gone. */
  remove(key: string): void {
    const wait = this.#waits.get(key);
    if (wait === undefined) return;
    this.#waits.delete(key);
    this.#draining.delete(key);
    this.#recountedAt.delete(key);
    this.#tellSize(this.size);
    this.#forgetAddresses(key, wait);
    const next = familiesOf(wait).flatMap((family) => this.#leave(key, wait, family) ?? []);
    if (next.length > 0) this.#wake([...new Set(next)]);
  }

  /** Removes all claims and wakes none. */
  clear(): void {
    this.#waits.clear();
    this.#draining.clear();
    this.#recountedAt.clear();
    this.#queues.clear();
    this.#byAddress.clear();
  }

  /** Counts the claims that wait for an address of the pool and family and come before this one. */
  countOlder(
    pool: string,
    family: Family,
    claim: { key: string } & Pick<AwaitedAddresses, 'created' | 'isDraining'>,
  ): number {
    const { claims = [] } = this.#queues.get(poolFamilyKey(pool, family)) ?? {};
    return insertionIndex(claims, { key: claim.key, created: placeOf(claim) });
  }

  /** The claims to wake when a lease ends: those that wait for its address, and the oldest of its family of each pool of its address space. */
  claimsToWake(addressSpace: string, address: Address): readonly string[] {
    const exact = [...(this.#byAddress.get(addressKey(addressSpace, address)) ?? [])].sort((a, b) =>
      compareAge(this.#claim(a), this.#claim(b)),
    );
    const first = [...this.#queues.values()].flatMap((queue) =>
      queue.addressSpace === addressSpace && queue.family === address.family ? queue.claims.slice(0, 1) : [],
    );
    return [...exact, ...first.map(({ key }) => key)];
  }

  #join(key: string, wait: AwaitedAddresses): void {
    const { pool } = wait;
    if (pool === undefined) return;
    const claim = { key, created: placeOf(wait) };
    for (const family of familiesOf(wait)) {
      const place = poolFamilyKey(pool.name, family);
      const queue = this.#queues.get(place) ?? { addressSpace: '', family, claims: [] };
      queue.addressSpace = pool.addressSpace;
      const index = insertionIndex(queue.claims, claim);
      if (queue.claims[index]?.key !== key) queue.claims.splice(index, 0, claim);
      this.#queues.set(place, queue);
    }
  }

  /** @returns the key of the claim that is the first then */
  #leave(key: string, wait: AwaitedAddresses, family: Family): string | undefined {
    const place = poolFamilyKey(wait.pool?.name ?? '', family);
    const { claims = [] } = this.#queues.get(place) ?? {};
    const index = insertionIndex(claims, { key, created: placeOf(wait) });
    if (claims[index]?.key === key) claims.splice(index, 1);
    if (claims.length === 0) this.#queues.delete(place);
    return claims[0]?.key;
  }

  #forgetAddresses(key: string, wait: AwaitedAddresses | undefined): void {
    for (const { addressSpace, address } of wait?.addresses ?? []) {
      const place = addressKey(addressSpace, address);
      const keys = this.#byAddress.get(place);
      keys?.delete(key);
      if (keys?.size === 0) this.#byAddress.delete(place);
    }
  }

  #claim(key: string): WaitingClaim {
    return { key, created: this.#waits.get(key)?.created ?? '' };
  }
}

/** The time by which a claim is queued. */
function placeOf({ created, isDraining = false }: Pick<AwaitedAddresses, 'created' | 'isDraining'>): string {
  return isDraining ? AFTER_ALL + created : created;
}

function isSamePlace(before: AwaitedAddresses, wait: AwaitedAddresses): boolean {
  const isSameQueue = before.pool?.name === wait.pool?.name && before.isDraining === wait.isDraining;
  return isSameQueue && familiesOf(before).join() === familiesOf(wait).join();
}

function familiesOf({ pool, families = FAMILIES }: Pick<AwaitedAddresses, 'pool' | 'families'>): readonly Family[] {
  return pool === undefined ? [] : families;
}

function isOnlyDraining({ isDraining = false, addresses = [] }: AwaitedAddresses): boolean {
  return isDraining && addresses.length === 0;
}

/** The index of the claim in the queue, or where to insert it: that many claims are older. */
function insertionIndex(claims: readonly WaitingClaim[], claim: WaitingClaim): number {
  let low = 0;
  let high = claims.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = claims[middle];
    if (other !== undefined && compareAge(other, claim) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function compareAge(a: WaitingClaim, b: WaitingClaim): number {
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

function addressKey(addressSpace: string, address: Address): string {
  return `${addressSpace}/${formatAddress(address)}`;
}

/** Queues a claim for the addresses that it was refused. */
export function startWaiting(
  key: string,
  { claim, pool, need, move, drain }: { claim: IPAMClaim; pool: Pool } & Pick<Findings, 'need' | 'move' | 'drain'>,
  waitList: Pick<ClaimWaitList, 'set'>,
): void {
  const refusals = [need, move].filter((refusal) => refusal !== undefined);
  const lacking = refusals.filter(isPoolExhausted);
  const draining = Object.values(drain ?? {}).filter(isPoolExhausted);
  const isDraining = lacking.length === 0 && draining.length > 0;
  const exhausted = isDraining ? draining : lacking;
  waitList.set(key, {
    created: claim.metadata.creationTimestamp ?? '',
    ...(exhausted.length > 0 && { pool, families: exhausted.flatMap(({ families }) => families ?? []) }),
    ...(isDraining && { isDraining }),
    addresses: refusals.flatMap(({ address }) => (address ? [{ addressSpace: pool.addressSpace, address }] : [])),
  });
}

/** Whether any free address of the pool would help. */
function isPoolExhausted(refusal: AllocationRefusal): boolean {
  return refusal.reason === AllocationReason.Exhausted;
}
