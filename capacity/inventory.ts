import type { AddressLease } from '../api/address-lease.js';
import type { Family } from '../ipam/core/address.js';
import { type BlockRecord, isUsable } from '../ipam/core/block.js';
import { rangesOf } from '../ipam/core/cidr.js';
import { isHeldByPod, isReservation, readLease } from '../ipam/core/lease.js';
import { OccupiedSet } from '../ipam/core/occupied-set.js';
import { type Pool, addressesOf } from '../ipam/core/pool.js';
import type { RangeSet } from '../ipam/core/ranges.js';
import { type AddressCounter, ReleasedAddresses } from './released-addresses.js';

/** Of a lease, no more than where it is, which pod holds it, and since when nobody does: there may be very many. */
export interface InventoryEntry {
  readonly name: string;
  readonly space: string;
  readonly family: Family;
  readonly value: bigint;
  readonly pool: string;
  /** The UID of the pod that holds it. */
  readonly pod?: string;
  /** Of one that somebody else may have once it has cooled down: when it was released, in milliseconds since the epoch. */
  readonly releasedAt?: number;
}

/** What of a pool and family may be leased now. */
export interface FreeAddresses {
  /** By whomever. */
  readonly total: number;
  /** By node: in the blocks that it is lent and may use. */
  readonly byNode: ReadonlyMap<string, number>;
}

interface PodHolding {
  readonly pool: string;
  readonly family: Family;
  readonly pod: string;
}

/** @throws {TypeError} where the object is no lease that Holdfast could have made */
export function readInventoryEntry(lease: AddressLease): InventoryEntry {
  const record = readLease(lease);
  const { owner } = record;
  return {
    name: record.metadata.name,
    space: record.addressSpace,
    family: record.address.family,
    value: record.address.value,
    pool: record.pool,
    ...(owner !== undefined && isHeldByPod(record) && { pod: owner.uid }),
    // of the static table: reserved again for its MAC address
    ...(record.releasedAt !== undefined && !isReservation(record) && { releasedAt: record.releasedAt }),
  };
}

/**
 * The addresses that are leased, and how many of them each pod holds. What has cooled down is free, though it may wait for its MAC
 * address: in a pool that is full otherwise whoever comes has it.
 */
export class Inventory {
  readonly #spaces = new Map<string, Record<Family, OccupiedSet>>();
  /** By name of the lease; those of pods alone. */
  readonly #held = new Map<string, PodHolding>();
  readonly #counts = new Map<string, number>();
  /** By address space, pool and family: pools never change, and another one of the address space takes none of them. */
  readonly #released = new Map<string, ReleasedAddresses>();

  add(entry: InventoryEntry): void {
    const { name, space, family, value, pool, pod, releasedAt } = entry;
    this.#forget(entry);
    this.#space(space)[family].add(value);
    if (releasedAt !== undefined) this.#releasedOf(entry).set(value, releasedAt);
    if (pod === undefined) return;
    const held = { pool, family, pod };
    this.#held.set(name, held);
    this.#count(held, 1);
  }

  delete(entry: InventoryEntry): void {
    this.#forget(entry);
    this.#space(entry.space)[entry.family].delete(entry.value);
  }

  /** How many addresses of the pool and family a pod holds. */
  heldBy(pod: string, pool: string, family: Family): number {
    return this.#counts.get(podCountKey({ pod, pool, family })) ?? 0;
  }

  /**
   * @param blocks those of the pool. What lies in one that its node may not use now is nobody's.
   * @param cooledSince what was released then or before has cooled down; in milliseconds since the epoch
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
    const held = this.#held.get(entry.name);
    if (held === undefined) return;
    this.#held.delete(entry.name);
    this.#count(held, -1);
  }

  #count(held: PodHolding, by: 1 | -1): void {
    const key = podCountKey(held);
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

/** Capped: nobody tells so many apart. */
function countFree(ranges: RangeSet, occupied: AddressCounter): number {
  const free = ranges.size - BigInt(countIn(ranges, occupied));
  return Number(free > COUNT_LIMIT ? COUNT_LIMIT : free);
}

const COUNT_LIMIT = 1n << 40n;
