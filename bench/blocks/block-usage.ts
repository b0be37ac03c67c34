import type { Pool } from '../../addressing/pool/pool.js';
import { rangeOf } from '../../addressing/address/cidr.js';
import { Slices } from '../../addressing/block/slices.js';
import type { SimulatedApi } from './api.js';

/** The usage of a pool's slices and blocks. */
export interface BlockUsage {
  readonly slices: number;
  /** Slices without leases, and slices of which all addresses are leased. */
  readonly untouched: number;
  readonly full: number;
  readonly lent: number;
  /** Addresses of lent slices. */
  readonly lentAddresses: number;
  /** Addresses of lent slices without a lease. */
  readonly lentIdle: number;
  /** Leases of pods. */
  readonly podLeases: number;
  /** Leases of pods in a block of another node. */
  readonly astray: number;
}

export function blockUsageOf({ leases, blocks }: SimulatedApi, pool: Pool): BlockUsage {
  const slices = new Slices(pool, 4);
  const lenders = new Map([...blocks.records.values()].map(({ cidr, node }) => [cidr.base, node]));
  const taken = new Map<bigint, number>();
  let [podLeases, astray] = [0, 0];
  for (const { address, owner, node } of leases.records.values()) {
    const base = slices.sliceOf(address.value)!.base;
    taken.set(base, (taken.get(base) ?? 0) + 1);
    if (owner?.kind !== 'Pod') continue;
    podLeases++;
    const lender = lenders.get(base);
    if (lender !== undefined && lender !== node) astray++;
  }
  let [untouched, full, lentAddresses, lentIdle, count] = [0, 0, 0, 0, 0];
  for (const cidr of slices.all()) {
    const used = taken.get(cidr.base) ?? 0;
    const size = Number(slices.countOpen(rangeOf(cidr)));
    count++;
    if (used === 0) untouched++;
    if (used === size) full++;
    if (!lenders.has(cidr.base)) continue;
    lentAddresses += size;
    lentIdle += size - used;
  }
  return { slices: count, untouched, full, lent: lenders.size, lentAddresses, lentIdle, podLeases, astray };
}
