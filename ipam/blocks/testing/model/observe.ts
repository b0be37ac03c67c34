import type { ObservedBlock, ObservedNode, ObservedPool, UnlentSlice } from '../../observed-pool.js';
import type { Family } from '../../../../addressing/address/address.js';
import type { BlockRecord } from '../../../../addressing/block/block.js';
import { type Cidr, overlap, rangeOf } from '../../../../addressing/address/cidr.js';
import { type LeaseRecord, stateOf } from '../../../../addressing/lease/lease.js';
import { type Pool, addressesOf } from '../../../../addressing/pool/pool.js';
import { RangeSet } from '../../../../addressing/address/ranges.js';
import { Slices } from '../../../../addressing/block/slices.js';
import type { ModelNode, ModelPool } from './model-objects.js';
import { isLeaseInBlock } from './block-checker.js';

/** The contents of a process's caches. */
export interface CachedState {
  readonly pool: ModelPool | undefined;
  readonly blocks: readonly BlockRecord[];
  readonly leases: readonly LeaseRecord[];
  readonly nodes: readonly ModelNode[];
  readonly claimShortageAt: ObservedPool['claimShortageAt'];
}

/** Observes pool blue by full counts, because it has few addresses. */
export function observePool(known: CachedState): ObservedPool {
  const { pool, blocks, leases, claimShortageAt } = known;
  const spaces = { 4: spaceOf(4, known), 6: spaceOf(6, known) };
  return {
    name: 'blue',
    phase: pool === undefined ? 'ended' : !pool.isEnding ? 'serving' : leases.length > 0 ? 'ending' : 'ended',
    blocks: blocks.map((record): ObservedBlock => {
      const { open, free, slices } = spaces[record.cidr.family];
      return {
        record,
        used: leases.filter((lease) => isLeaseInBlock(lease, record)).length,
        free: countIn(free, record.cidr),
        size: countIn(open, record.cidr),
        isSlice: slices.some(
          ({ base, prefixLength }) => base === record.cidr.base && prefixLength === record.cidr.prefixLength,
        ),
      };
    }),
    nodes: nodesOf(known),
    unlent: { 4: unlentOf(spaces[4], blocks), 6: unlentOf(spaces[6], blocks) },
    claimShortageAt: claimShortageAt,
  };
}

export function leasedRanges(leases: readonly LeaseRecord[], family: Family): RangeSet {
  const own = leases.filter(({ address }) => address.family === family);
  return RangeSet.of(own.map(({ address: { value } }) => ({ first: value, last: value })));
}

/** The addresses and slices of a pool in one family. */
interface FamilyLayout {
  readonly open: RangeSet;
  readonly slices: readonly Cidr[];
}

interface FamilySpace extends FamilyLayout {
  readonly free: RangeSet;
}

const NOTHING: FamilyLayout = { open: RangeSet.EMPTY, slices: [] };
/** Cached, because compiled pools never change. */
const LAYOUTS = new WeakMap<Pool, Readonly<Record<Family, FamilyLayout>>>();

function layoutOf(pool: Pool, family: Family): FamilyLayout {
  if (!pool.families.includes(family)) return NOTHING;
  return { open: addressesOf(pool, family, 'open'), slices: [...new Slices(pool, family).all()] };
}

function spaceOf(family: Family, { pool: record, leases }: CachedState): FamilySpace {
  if (record === undefined) return { ...NOTHING, free: RangeSet.EMPTY };
  const { pool } = record;
  const layouts = LAYOUTS.get(pool) ?? { 4: layoutOf(pool, 4), 6: layoutOf(pool, 6) };
  LAYOUTS.set(pool, layouts);
  const { open, slices } = layouts[family];
  return { open, slices, free: open.isEmpty ? open : open.subtract(leasedRanges(leases, family)) };
}

function unlentOf({ slices, free }: FamilySpace, blocks: readonly BlockRecord[]): UnlentSlice[] {
  if (slices.length < 2) return [];
  return slices
    .filter((slice) => !blocks.some(({ cidr }) => overlap(cidr, slice)))
    .map((cidr) => ({ cidr, free: countIn(free, cidr) }))
    .filter((slice) => slice.free > 0)
    .sort((one, other) => other.free - one.free);
}

function nodesOf({ nodes, leases }: CachedState): Map<string, ObservedNode> {
  const held = leases.filter((lease) => lease.owner?.kind === 'Pod' && stateOf(lease) === 'held');
  const names = new Set([...nodes.map(({ metadata }) => metadata.name), ...held.map(({ node }) => node ?? '')]);
  return new Map(
    [...names].map((name) => {
      const node = nodes.find(({ metadata }) => metadata.name === name);
      const leasesOf = { 4: 0, 6: 0 };
      for (const lease of held) if (lease.node === name) leasesOf[lease.address.family]++;
      return [name, { exists: node !== undefined, isEligible: node?.isEnding === false, leases: leasesOf }];
    }),
  );
}

function countIn(set: RangeSet, cidr: Cidr): number {
  return Number(set.intersect(RangeSet.of([rangeOf(cidr)])).size);
}
