import type { ObservedBlock, ObservedNode, ObservedPool, OpenSlice } from '../../ipam/blocks/observed.js';
import type { BlockRecord } from '../../ipam/core/block.js';
import { type Cidr, overlap, rangeOf } from '../../ipam/core/cidr.js';
import { type LeaseRecord, stateOf } from '../../ipam/core/lease.js';
import { addressesOf } from '../../ipam/core/pool.js';
import { RangeSet } from '../../ipam/core/ranges.js';
import { Slices } from '../../ipam/core/slices.js';
import type { NodeRecord, PoolRecord } from './cluster.js';
import { isUseOf } from './judge.js';

/** What a process has read, however old. */
export interface Known {
  readonly pool: PoolRecord | undefined;
  readonly blocks: readonly BlockRecord[];
  readonly leases: readonly LeaseRecord[];
  readonly nodes: readonly NodeRecord[];
  readonly claimsPressedAt: number | undefined;
}

/** Pool blue as it looks, by sums over all that is known: few addresses, no indexes. */
export function observe(known: Known): ObservedPool {
  const { pool, blocks, leases, claimsPressedAt } = known;
  const open = pool === undefined ? RangeSet.EMPTY : addressesOf(pool.pool, 4, 'open');
  const taken = RangeSet.of(leases.map(({ address: { value } }) => ({ first: value, last: value })));
  const free = open.subtract(taken);
  const slices = pool === undefined ? [] : [...new Slices(pool.pool, 4).all()];
  return {
    name: 'blue',
    phase: pool === undefined ? 'ended' : !pool.isEnding ? 'serving' : leases.length > 0 ? 'ending' : 'ended',
    blocks: blocks.map((record): ObservedBlock => ({
      record,
      used: leases.filter((lease) => isUseOf(lease, record)).length,
      free: countIn(free, record.cidr),
      size: countIn(open, record.cidr),
      isSlice: slices.some(
        ({ base, prefixLength }) => base === record.cidr.base && prefixLength === record.cidr.prefixLength,
      ),
    })),
    nodes: nodesOf(known),
    unlent: { 4: slices.length < 2 ? [] : unlentOf(slices, free, blocks), 6: [] },
    claimsPressedAt: claimsPressedAt === undefined ? {} : { 4: claimsPressedAt },
  };
}

function unlentOf(slices: readonly Cidr[], free: RangeSet, blocks: readonly BlockRecord[]): OpenSlice[] {
  return slices
    .filter((slice) => !blocks.some(({ cidr }) => overlap(cidr, slice)))
    .map((cidr) => ({ cidr, free: countIn(free, cidr) }))
    .filter((slice) => slice.free > 0)
    .sort((one, other) => other.free - one.free);
}

function nodesOf({ nodes, leases }: Known): Map<string, ObservedNode> {
  const held = leases.filter((lease) => lease.owner?.kind === 'Pod' && stateOf(lease) === 'held');
  const names = new Set([...nodes.map(({ metadata }) => metadata.name), ...held.map(({ node }) => node ?? '')]);
  return new Map(
    [...names].map((name) => {
      const node = nodes.find(({ metadata }) => metadata.name === name);
      const leasesOf = { 4: held.filter((lease) => lease.node === name).length, 6: 0 };
      return [name, { isThere: node !== undefined, isEligible: node?.isEnding === false, leases: leasesOf }];
    }),
  );
}

function countIn(set: RangeSet, cidr: Cidr): number {
  return Number(set.intersect(RangeSet.of([rangeOf(cidr)])).size);
}
