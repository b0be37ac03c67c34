import { LEASE_STATES, type LeaseOwner, type LeaseState } from '../../api/address-lease.js';
import { joinKey, splitKey } from '../../api/meta.js';
import type { Clock } from '../../kube/clock.js';
import { forEachInSlices } from '../../kube/run-in-slices.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import type { Family } from '../../addressing/address/address.js';
import type { LeaseBook } from '../leases/lease-book.js';
import { type LeaseRecord, isHeldOrReserved, isResponder, stateOf } from '../../addressing/lease/lease.js';
import { type Pool, hasDraining, isDraining, subnetOf } from '../../addressing/pool/pool.js';
import { inheritedLeasesOf } from './inherited-leases.js';

/** The leases of one family, counted by state. */
interface FamilyLeaseCounts {
  readonly states: Readonly<Record<LeaseState, number>>;
  /** Leases in any state at addresses that are leased on request only. */
  readonly requestOnly: number;
  /** Reservations at addresses that the pool may not lease. */
  readonly ineffective: number;
}

/** The leases of one pool, counted by state. */
export interface LeaseCounts {
  readonly byFamily: Readonly<Record<Family, FamilyLeaseCounts>>;
  /** Counts the leases of both families that are in a state. */
  in(state: LeaseState): number;
  /** Held leases of claims that no pod uses. */
  readonly stopped: number;
  stoppedOf(family: Family): number;
  /** Names of held leases and reservations in draining ranges, with {@link inheritedLeasesOf inherited} leases. */
  readonly draining: ReadonlySet<string>;
  /** Names of held leases at addresses that the pool may not lease, or no longer. */
  readonly outside: ReadonlySet<string>;
  /** Names of reservations without effect: the pool may not lease their addresses. */
  readonly ineffectiveReservations: ReadonlySet<string>;
}

class FamilyTally implements FamilyLeaseCounts {
  readonly states = Object.fromEntries(LEASE_STATES.map((state) => [state, 0])) as Record<LeaseState, number>;
  requestOnly = 0;
  ineffective = 0;
}

class LeaseTally implements LeaseCounts {
  readonly byFamily: Readonly<Record<Family, FamilyTally>> = { 4: new FamilyTally(), 6: new FamilyTally() };
  readonly ownDraining = new Set<string>();
  inheritedDraining: ReadonlySet<string> = new Set();
  readonly outside = new Set<string>();
  readonly ineffectiveReservations = new Set<string>();
  /** Names of leases. */
  readonly ofStoppedVms: Readonly<Record<Family, Set<string>>> = { 4: new Set(), 6: new Set() };
  readonly pool: Pool | undefined;

  constructor(pool: Pool | undefined) {
    this.pool = pool;
  }

  in(state: LeaseState): number {
    return this.byFamily[4].states[state] + this.byFamily[6].states[state];
  }

  get stopped(): number {
    return this.stoppedOf(4) + this.stoppedOf(6);
  }

  get draining(): ReadonlySet<string> {
    return new Set([...this.ownDraining, ...this.inheritedDraining]);
  }

  stoppedOf(family: Family): number {
    return this.ofStoppedVms[family].size;
  }

  /** @param by 1 adds the lease, -1 removes it */
  count(lease: LeaseRecord, by: 1 | -1): void {
    const counts = this.byFamily[lease.address.family];
    const state = stateOf(lease);
    counts.states[state] += by;
    const place = this.pool === undefined ? 'open' : locateLease(lease, this.pool);
    if (place === 'requestOnly') counts.requestOnly += by;
    if (place === 'outside' && state === 'reserved') counts.ineffective += by;
    const { name } = lease.metadata;
    this.ownDraining.delete(name);
    this.outside.delete(name);
    this.ineffectiveReservations.delete(name);
    if (by === 1 && place === 'outside') this.#outsideBy(state)?.add(name);
    if (by === 1 && place === 'draining' && isHeldOrReserved(lease)) this.ownDraining.add(name);
    if (by === -1) this.ofStoppedVms[lease.address.family].delete(name);
  }

  #outsideBy(state: LeaseState): Set<string> | undefined {
    if (state === 'held') return this.outside;
    return state === 'reserved' ? this.ineffectiveReservations : undefined;
  }
}

type CountedLeases = Pick<LeaseBook, 'get' | 'ofPool' | 'ofClaim' | 'onChange'>;

/** Lease counts by pool, updated with each change of the lease book. All leases of a pool are counted only if the pool or its spec is new. */
export class PoolUsage {
  readonly #book: CountedLeases;
  readonly #isUsed: (owner: LeaseOwner) => boolean;
  readonly #tallies = new Map<string, LeaseTally>();
  /** By pool: a count that is not finished, and the names of the leases in it. */
  readonly #unfinished = new Map<string, { tally: LeaseTally; counted: Set<string> }>();

  /** @param isUsed whether a claim's VM runs */
  constructor(book: CountedLeases, isUsed: (owner: LeaseOwner) => boolean) {
    this.#book = book;
    this.#isUsed = isUsed;
    book.onChange(({ before, after }) => {
      if (before !== undefined) this.#tallies.get(before.pool)?.count(before, -1);
      const tally = after && this.#tallies.get(after.pool);
      if (tally !== undefined && after !== undefined) this.#add(tally, after);
      this.#recount(before, after);
    });
  }

  /** Counts the leases of a pool in slices, so that {@link of} need not count all of them at once. */
  async prepare(name: string, pool: Pool | undefined, clock: Pick<Clock, 'now'>, signal?: AbortSignal): Promise<void> {
    const known = this.#tallies.get(name);
    if (known !== undefined && known.pool === pool) return;
    const unfinished = { tally: new LeaseTally(pool), counted: new Set<string>() };
    this.#unfinished.set(name, unfinished);
    const count = ({ metadata }: LeaseRecord) => {
      // it may have changed meanwhile
      const lease = this.#book.get(metadata.name);
      if (lease?.pool === name && !unfinished.counted.has(metadata.name)) this.#recount(undefined, lease);
    };
    const isComplete = await forEachInSlices([...this.#book.ofPool(name)], count, clock, signal);
    if (this.#unfinished.get(name) !== unfinished) return;
    this.#unfinished.delete(name);
    if (isComplete) this.#tallies.set(name, unfinished.tally);
  }

  /**
   * The same for the current spec. It looks for inherited leases in draining ranges each time.
   * @returns false if the spec has changed meanwhile, which a tenant can do all the time: its change syncs the pool again
   */
  async prepareCurrent(
    name: string,
    directory: Pick<PoolDirectory, 'pool' | 'poolsOf'>,
    clock: Pick<Clock, 'now'>,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const pool = directory.pool(name);
    await this.prepare(name, pool, clock, signal);
    const tally = this.#tallies.get(name);
    if (pool !== undefined && tally?.pool === pool && hasDraining(pool)) {
      const inherited = inheritedLeasesOf(pool, directory);
      const found = new Set<string>();
      const visit = (lease: LeaseRecord) => {
        if (isDraining(pool, lease.address) && inherited.includes(lease)) found.add(lease.metadata.name);
      };
      const isComplete = await forEachInSlices(this.#leasesOf(inherited.pools), visit, clock, signal);
      if (isComplete) tally.inheritedDraining = found;
    }
    return directory.pool(name) === pool;
  }

  /** @param pool what the pool may lease; undefined if its spec is invalid */
  of(name: string, pool: Pool | undefined): LeaseCounts {
    const known = this.#tallies.get(name);
    if (known !== undefined && known.pool === pool) return known;
    const tally = new LeaseTally(pool);
    for (const lease of this.#book.ofPool(name)) this.#add(tally, lease);
    this.#tallies.set(name, tally);
    return tally;
  }

  /** The number of held leases of claims that no pod uses. It does not depend on the spec of the pool. */
  stoppedOf(name: string, family: Family): number {
    return (this.#tallies.get(name) ?? this.of(name, undefined)).stoppedOf(family);
  }

  forget(name: string): void {
    this.#tallies.delete(name);
    this.#unfinished.delete(name);
  }

  /**
   * Call it when the pods of a claim, by `namespace/name`, have changed.
   * @returns the pools whose counts have changed
   */
  updateClaim(claimKey: string): string[] {
    const { namespace, name } = splitKey(claimKey);
    const changed = new Set<string>();
    for (const lease of this.#book.ofClaim(namespace, name)) {
      const tally = this.#tallies.get(lease.pool);
      const before = tally?.stopped;
      if (tally !== undefined) this.#countStopped(tally, lease);
      if (tally?.stopped !== before) changed.add(lease.pool);
      const unfinished = this.#unfinished.get(lease.pool);
      if (unfinished?.counted.has(lease.metadata.name)) this.#countStopped(unfinished.tally, lease);
    }
    return [...changed];
  }

  /** The leases that each pool has when its turn comes: they change between slices. */
  *#leasesOf(pools: readonly string[]): Iterable<LeaseRecord> {
    for (const pool of pools) yield* [...this.#book.ofPool(pool)];
  }

  /** Replaces a lease in the unfinished counts. */
  #recount(before: LeaseRecord | undefined, after: LeaseRecord | undefined): void {
    const old = before && this.#unfinished.get(before.pool);
    if (before !== undefined && old?.counted.delete(before.metadata.name)) old.tally.count(before, -1);
    const unfinished = after && this.#unfinished.get(after.pool);
    if (after === undefined || unfinished === undefined) return;
    unfinished.counted.add(after.metadata.name);
    this.#add(unfinished.tally, after);
  }

  #add(tally: LeaseTally, lease: LeaseRecord): void {
    tally.count(lease, 1);
    this.#countStopped(tally, lease);
  }

  #countStopped(tally: LeaseTally, lease: LeaseRecord): void {
    const { owner } = lease;
    const idle = stateOf(lease) === 'held' && owner !== undefined && isOfVm(owner) && !this.#isUsed(owner);
    const names = tally.ofStoppedVms[lease.address.family];
    if (idle) names.add(lease.metadata.name);
    else names.delete(lease.metadata.name);
  }
}

/** No pod refers to the claim of a responder. */
function isOfVm(owner: LeaseOwner): boolean {
  return owner.kind === 'IPAMClaim' && !isResponder(owner);
}

/** Tells whether the pool may lease the address of a lease now. */
function locateLease(
  lease: Pick<LeaseRecord, 'address' | 'addressSpace'>,
  pool: Pool,
): 'open' | 'requestOnly' | 'draining' | 'outside' {
  const { value } = lease.address;
  const subnet = lease.addressSpace === pool.addressSpace ? subnetOf(pool, lease.address) : undefined;
  if (subnet?.open.has(value)) return 'open';
  if (subnet?.requestable.has(value)) return 'requestOnly';
  return subnet?.leasable.has(value) ? 'draining' : 'outside';
}

/** Held leases at addresses that a pool may not lease. */
export function leasesOutside(leases: Iterable<LeaseRecord>, pool: Pool): LeaseRecord[] {
  const found: LeaseRecord[] = [];
  for (const lease of leases)
    if (stateOf(lease) === 'held' && locateLease(lease, pool) === 'outside') found.push(lease);
  return found;
}

/** Creates the check for {@link PoolUsage} whether pods use the claim that owns a lease. */
export function claimUseCheck<C extends { metadata: { uid?: string } }>(
  claims: { get(key: string): C | undefined },
  isUsed: (claim: C) => boolean,
): (owner: LeaseOwner) => boolean {
  return ({ namespace, name, uid }) => {
    const claim = claims.get(joinKey(namespace, name));
    return claim?.metadata.uid === uid && isUsed(claim);
  };
}
