import { type Address, formatAddress } from '../core/address.js';
import type { Pool } from '../core/pool.js';

/** What a claim waits for: any address of a pool, or some in particular. */
export interface AwaitedAddresses {
  /** The claim's creationTimestamp. */
  created: string;
  pool?: Pick<Pool, 'name' | 'addressSpace'>;
  addresses?: readonly { addressSpace: string; address: Address }[];
}

const RECHECK_MS = 5 * 60_000;
const COUNTS_INTERVAL_MS = 60_000;
const COUNTS_INTERVAL_PER_CLAIM_MS = 100;

interface WaitingClaim {
  key: string;
  created: string;
}

/** Those who wait for one pool, oldest first. */
interface PoolQueue {
  addressSpace: string;
  waiters: WaitingClaim[];
}

/**
 * Which claims wait for addresses. The oldest goes first; whoever leaves a line wakes the next, so that addresses which were freed together
 * are not all left to the first.
 */
export class ClaimWaitList {
  readonly #wake: (keys: readonly string[]) => void;
  readonly #waits = new Map<string, AwaitedAddresses>();
  /** By key: when the counts in its message were last compared, in ms. */
  readonly #recountedAt = new Map<string, number>();
  /** By pool. */
  readonly #lines = new Map<string, PoolQueue>();
  /** By address space and address. */
  readonly #byAddress = new Map<string, Set<string>>();

  /** @param wake is given the keys of claims that shall be looked at again */
  constructor(wake: (keys: readonly string[]) => void) {
    this.#wake = wake;
  }

  get size(): number {
    return this.#waits.size;
  }

  /** Replaces what the claim waits for. */
  set(key: string, wait: AwaitedAddresses): void {
    const before = this.#waits.get(key);
    if (before?.pool?.name !== wait.pool?.name) this.remove(key);
    else this.#forgetAddresses(key, before);
    this.#waits.set(key, wait);
    if (wait.pool !== undefined) this.#join(key, wait.created, wait.pool);
    for (const { addressSpace, address } of wait.addresses ?? []) {
      const place = addressKey(addressSpace, address);
      this.#byAddress.set(place, (this.#byAddress.get(place) ?? new Set()).add(key));
    }
  }

  /** How long a claim waits until it is looked at again, though nothing has told that it may be served, in ms. */
  get recheckMs(): number {
    return Math.min(this.#recountMs, RECHECK_MS);
  }

  /** How often a claim's message shows other counts at most, in ms: the messages of all claims together change ten times a second. */
  get #recountMs(): number {
    return Math.max(COUNTS_INTERVAL_MS, this.#waits.size * COUNTS_INTERVAL_PER_CLAIM_MS);
  }

  /** Whether the message of a claim that waits may show other counts now. The time begins when it is first asked, and again when it may. */
  canUpdateCounts(key: string, now: number): boolean {
    const since = this.#recountedAt.get(key);
    if (since !== undefined && now - since < this.#recountMs) return false;
    if (this.#waits.has(key)) this.#recountedAt.set(key, now);
    return since !== undefined;
  }

  /** The claim waits no longer: it has what it waited for, or is gone. */
  remove(key: string): void {
    const wait = this.#waits.get(key);
    if (wait === undefined) return;
    this.#waits.delete(key);
    this.#recountedAt.delete(key);
    this.#forgetAddresses(key, wait);
    const line = wait.pool && this.#lines.get(wait.pool.name);
    if (wait.pool === undefined || line === undefined) return;
    const { waiters } = line;
    const index = insertionIndex(waiters, { key, created: wait.created });
    if (waiters[index]?.key === key) waiters.splice(index, 1);
    const [next] = waiters;
    if (next === undefined) this.#lines.delete(wait.pool.name);
    else this.#wake([next.key]);
  }

  /** Nobody waits any more, and nobody is woken. */
  clear(): void {
    this.#waits.clear();
    this.#recountedAt.clear();
    this.#lines.clear();
    this.#byAddress.clear();
  }

  /** How many older claims wait for the pool. */
  ahead(pool: string, waiter: { key: string; created: string }): number {
    return insertionIndex(this.#lines.get(pool)?.waiters ?? [], waiter);
  }

  /** Whom the end of a lease concerns: those who wait for its address, and of each pool of its space the oldest. */
  concerned(addressSpace: string, address: Address): readonly string[] {
    const exact = [...(this.#byAddress.get(addressKey(addressSpace, address)) ?? [])].sort((a, b) =>
      compareAge(this.#waiter(a), this.#waiter(b)),
    );
    const first = [...this.#lines.values()].flatMap((line) =>
      line.addressSpace === addressSpace ? line.waiters.slice(0, 1) : [],
    );
    return [...exact, ...first.map(({ key }) => key)];
  }

  #join(key: string, created: string, { name, addressSpace }: NonNullable<AwaitedAddresses['pool']>): void {
    const line = this.#lines.get(name) ?? { addressSpace, waiters: [] };
    line.addressSpace = addressSpace;
    const index = insertionIndex(line.waiters, { key, created });
    if (line.waiters[index]?.key !== key) line.waiters.splice(index, 0, { key, created });
    this.#lines.set(name, line);
  }

  #forgetAddresses(key: string, wait: AwaitedAddresses | undefined): void {
    for (const { addressSpace, address } of wait?.addresses ?? []) {
      const place = addressKey(addressSpace, address);
      const keys = this.#byAddress.get(place);
      keys?.delete(key);
      if (keys?.size === 0) this.#byAddress.delete(place);
    }
  }

  #waiter(key: string): WaitingClaim {
    return { key, created: this.#waits.get(key)?.created ?? '' };
  }
}

/** Where the waiter is, or would be: that many are older. */
function insertionIndex(waiters: readonly WaitingClaim[], waiter: WaitingClaim): number {
  let low = 0;
  let high = waiters.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = waiters[middle];
    if (other !== undefined && compareAge(other, waiter) < 0) low = middle + 1;
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
