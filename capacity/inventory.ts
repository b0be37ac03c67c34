import type { AddressLease } from '../api/address-lease.js';
import type { Family } from '../addressing/address/address.js';
import { type BlockRecord, isUsable } from '../addressing/block/block.js';
import { rangesOf } from '../addressing/address/cidr.js';
import { isHeldByPod, isReservation, readLease } from '../addressing/lease/lease.js';
import { OccupiedSet } from '../addressing/allocator/occupied-set.js';
import { type Pool, addressesOf } from '../addressing/pool/pool.js';
import type { RangeSet } from '../addressing/address/ranges.js';

/** The few fields of a lease that are cached, because there can be very many leases. */
export interface InventoryEntry {
  readonly name: string;
  readonly space: string;
  readonly family: Family;
  readonly value: bigint;
  readonly pool: string;
  /** The UID of the pod that holds the lease. */
  readonly pod?: string;
  /** When the lease was released, in milliseconds since the epoch. Absent if another owner cannot get it after its cool-down. */
  readonly releasedAt?: number;
}

/** The free addresses of a pool and family. */
interface FreeAddresses {
  /** All free addresses. */
  readonly total: number;
  /** Free addresses in the usable blocks of each node. */
  readonly byNode: ReadonlyMap<string, number>;
}

interface PodHolding {
  readonly pool: string;
  readonly family: Family;
  readonly pod: string;
}

/** @throws {TypeError} if the object is not a valid lease */
export function readInventoryEntry(lease: AddressLease): InventoryEntry {
  const record = readLease(lease);
  const { owner } = record;
  // no pod gets it, however long ago it was released
  const isKept = record.networkData !== undefined;
  return {
    name: record.metadata.name,
    space: record.addressSpace,
    family: record.address.family,
    value: record.address.value,
    pool: record.pool,
    ...(owner !== undefined && isHeldByPod(record) && { pod: owner.uid }),
    // a reserved lease is reserved again after its cool-down
    ...(record.releasedAt !== undefined && !isReservation(record) && !isKept && { releasedAt: record.releasedAt }),
  };
}

/**
 * The leased addresses, and how many of them each pod holds. A released address counts as free after its cool-down, even if it is kept for its
 * MAC address: an exhausted pool allocates it to any owner.
 */
export class Inventory {
  readonly #spaces = new Map<string, Record<Family, OccupiedSet>>();
  /** The leases of pods, by name. */
  readonly #holdings = new Map<string, PodHolding>();
  readonly #counts = new Map<string, number>();
  /** By address space, pool and family, because a lease never changes its pool. */
  readonly #released = new Map<string, ReleasedAddresses>();

  add(entry: InventoryEntry): void {
    const { name, space, family, value, pool, pod, releasedAt } = entry;
    this.#forget(entry);
    this.#space(space)[family].add(value);
    if (releasedAt !== undefined) this.#releasedOf(entry).set(value, releasedAt);
    if (pod === undefined) return;
    const holding = { pool, family, pod };
    this.#holdings.set(name, holding);
    this.#count(holding, 1);
  }

  delete(entry: InventoryEntry): void {
    this.#forget(entry);
    this.#space(entry.space)[entry.family].delete(entry.value);
  }

  /** The number of addresses of the pool and family that a pod holds. */
  heldBy(pod: string, pool: string, family: Family): number {
    return this.#counts.get(podCountKey({ pod, pool, family })) ?? 0;
  }

  /**
   * @param blocks of the pool; addresses in a block that its node may not use now are not free
   * @param cooledSince addresses released at or before this time have cooled down; in milliseconds since the epoch
   */
  free(
    pool: Pool,
    family: Family,
    { blocks, cooledSince }: { blocks: readonly BlockRecord[]; cooledSince: number },
  ): FreeAddresses {
    const occupied = this.#space(pool.addressSpace)[family];
    const cooled = this.#releasedOf({ space: pool.addressSpace, pool: pool.name, family }).cooled(cooledSince);
    const count = (ranges: RangeSet) => countFree(ranges, occupied) + countIn(ranges, cooled);
    const open = addressesOf(pool, family, 'open');
    const lent = blocks.filter(({ cidr }) => cidr.family === family);
    const own = new Map<string, number>();
    for (const block of lent) {
      if (!isUsable(block)) continue;
      const ofBlock = count(open.intersect(rangesOf([block.cidr], family)));
      own.set(block.node, (own.get(block.node) ?? 0) + ofBlock);
    }
    const cidrs = lent.map(({ cidr }) => cidr);
    const shared = count(open.subtract(rangesOf(cidrs, family)));
    return { total: [...own.values()].reduce((sum, ofNode) => sum + ofNode, shared), byNode: own };
  }

  #releasedOf({ space, pool, family }: Pick<InventoryEntry, 'space' | 'pool' | 'family'>): ReleasedAddresses {
    const key = `${space}/${family}/${pool}`;
    const released = this.#released.get(key) ?? new ReleasedAddresses();
    this.#released.set(key, released);
    return released;
  }

  #space(name: string): Record<Family, OccupiedSet> {
    const space = this.#spaces.get(name) ?? { 4: new OccupiedSet(), 6: new OccupiedSet() };
    this.#spaces.set(name, space);
    return space;
  }

  #forget(entry: InventoryEntry): void {
    this.#releasedOf(entry).delete(entry.value);
    const holding = this.#holdings.get(entry.name);
    if (holding === undefined) return;
    this.#holdings.delete(entry.name);
    this.#count(holding, -1);
  }

  #count(holding: PodHolding, by: 1 | -1): void {
    const key = podCountKey(holding);
    const count = (this.#counts.get(key) ?? 0) + by;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }
}

function podCountKey({ pod, pool, family }: PodHolding): string {
  return `${pod}/${family}/${pool}`;
}

function countIn(ranges: RangeSet, addresses: AddressCounter): number {
  return ranges.ranges.reduce((sum, { first, last }) => sum + addresses.countIn(first, last), 0);
}

/** Returns the number of free addresses, capped because larger numbers make no difference. */
function countFree(ranges: RangeSet, occupied: AddressCounter): number {
  const free = ranges.size - BigInt(countIn(ranges, occupied));
  return Number(free > COUNT_LIMIT ? COUNT_LIMIT : free);
}

const COUNT_LIMIT = 1n << 40n;

/** A set of addresses that can be counted. */
interface AddressCounter {
  /** The number of addresses from `first` to `last`, both included. */
  countIn(first: bigint, last: bigint): number;
}

/** The released addresses of one pool and family, and when they were released. They are free after their cool-down. */
export class ReleasedAddresses {
  readonly #all = new OccupiedSet();
  /** In milliseconds since the epoch. */
  readonly #since = new Map<bigint, number>();

  set(value: bigint, since: number): void {
    this.#all.add(value);
    this.#since.set(value, since);
  }

  delete(value: bigint): void {
    if (this.#since.delete(value)) this.#all.delete(value);
  }

  /**
   * Returns the addresses that have cooled down. Most of them are only kept for their MAC addresses, so the few others are subtracted.
   * @param cooledSince addresses released at or before this time have cooled down; in milliseconds since the epoch
   */
  cooled(cooledSince: number): AddressCounter {
    const cooling = new OccupiedSet();
    for (const [value, since] of this.#since) if (since > cooledSince) cooling.add(value);
    return { countIn: (first, last) => this.#all.countIn(first, last) - cooling.countIn(first, last) };
  }
}
