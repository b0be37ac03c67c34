import type { AddressLease } from '../../api/address-lease.js';
import type { Family } from '../core/address.js';
import { type BlockRecord, isUsable } from '../core/block.js';
import { type Cidr, firstOf, lastOf } from '../core/cidr.js';
import { readLease, stateOf } from '../core/lease.js';
import { OccupiedSet } from '../core/occupied.js';
import { type Pool, addressesOf } from '../core/pool.js';
import { RangeSet } from '../core/ranges.js';

/** Of a lease, no more than where it is and which pod holds it: there may be very many. */
export interface StockEntry {
  readonly name: string;
  readonly space: string;
  readonly family: Family;
  readonly value: bigint;
  readonly pool: string;
  /** The UID of the pod that holds it. */
  readonly pod?: string;
}

/** What of a pool and family may be leased now. */
export interface Free {
  /** By whomever. */
  readonly total: number;
  /** By node: in the blocks that it is lent and may use. */
  readonly own: ReadonlyMap<string, number>;
}

interface Held {
  readonly pool: string;
  readonly family: Family;
  readonly pod: string;
}

/** @throws {TypeError} where the object is no lease that Holdfast could have made */
export function readEntry(lease: AddressLease): StockEntry {
  const record = readLease(lease);
  const { owner } = record;
  const isPods = stateOf(record) === 'held' && owner?.kind === 'Pod';
  return {
    name: record.metadata.name,
    space: record.addressSpace,
    family: record.address.family,
    value: record.address.value,
    pool: record.pool,
    ...(isPods && { pod: owner.uid }),
  };
}

/** The addresses that are leased, in whatever state, and how many of them each pod holds. */
export class Stock {
  readonly #spaces = new Map<string, Record<Family, OccupiedSet>>();
  /** By name of the lease; those of pods alone. */
  readonly #held = new Map<string, Held>();
  readonly #counts = new Map<string, number>();

  add(entry: StockEntry): void {
    this.#forget(entry.name);
    this.#space(entry.space)[entry.family].add(entry.value);
    if (entry.pod === undefined) return;
    const held = { pool: entry.pool, family: entry.family, pod: entry.pod };
    this.#held.set(entry.name, held);
    this.#count(held, 1);
  }

  delete({ name, space, family, value }: StockEntry): void {
    this.#forget(name);
    this.#space(space)[family].delete(value);
  }

  /** How many addresses of the pool and family a pod holds. */
  heldBy(pod: string, pool: string, family: Family): number {
    return this.#counts.get(keyOf({ pod, pool, family })) ?? 0;
  }

  /** @param blocks those of the pool. What lies in one that its node may not use now is nobody's. */
  free(pool: Pool, family: Family, blocks: readonly BlockRecord[]): Free {
    const occupied = this.#space(pool.addressSpace)[family];
    const open = addressesOf(pool, family, 'open');
    const lent = blocks.filter(({ cidr }) => cidr.family === family);
    const own = new Map<string, number>();
    for (const block of lent) {
      if (!isUsable(block)) continue;
      const count = countFree(open.intersect(rangesOf([block.cidr])), occupied);
      own.set(block.node, (own.get(block.node) ?? 0) + count);
    }
    const shared = countFree(open.subtract(rangesOf(lent.map(({ cidr }) => cidr))), occupied);
    return { total: [...own.values()].reduce((sum, count) => sum + count, shared), own };
  }

  #space(name: string): Record<Family, OccupiedSet> {
    const space = this.#spaces.get(name) ?? { 4: new OccupiedSet(), 6: new OccupiedSet() };
    this.#spaces.set(name, space);
    return space;
  }

  #forget(name: string): void {
    const held = this.#held.get(name);
    if (held === undefined) return;
    this.#held.delete(name);
    this.#count(held, -1);
  }

  #count(held: Held, by: 1 | -1): void {
    const key = keyOf(held);
    const count = (this.#counts.get(key) ?? 0) + by;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }
}

function keyOf({ pod, pool, family }: Held): string {
  return `${pod}/${family}/${pool}`;
}

function rangesOf(cidrs: readonly Cidr[]): RangeSet {
  return RangeSet.of(cidrs.map((cidr) => ({ first: firstOf(cidr), last: lastOf(cidr) })));
}

/** Capped: nobody tells so many apart. */
function countFree(ranges: RangeSet, occupied: OccupiedSet): number {
  let free = ranges.size;
  for (const { first, last } of ranges.ranges) free -= BigInt(occupied.countIn(first, last));
  return Number(free > MANY ? MANY : free);
}

const MANY = 1n << 40n;
