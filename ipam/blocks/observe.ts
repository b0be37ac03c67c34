import type { AddressPool } from '../../api/address-pool.js';
import { type KubeObject, isBeingDeleted } from '../../api/meta.js';
import type { Lister } from '../../kube/informers/cache.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import type { LentAddresses } from '../../addressing/allocator/address-space.js';
import type { Family } from '../../addressing/address/address.js';
import type { BlockRecord } from '../../addressing/block/block.js';
import { type Pool, hasNetwork } from '../../addressing/pool/pool.js';
import { countBlockingLeases } from '../pools/status.js';
import type { PoolUsage } from '../pools/usage.js';
import type { BlockBook } from './block-book.js';
import type { ClaimShortages, NodeLeaseCounts } from './node-demand.js';
import type { ObservedBlock, ObservedNode, ObservedPool, PoolPhase } from './observed-pool.js';
import type { PoolSlices, SliceOccupancy } from './slice-occupancy.js';

/** The caches from which a pool's blocks are observed. */
export interface BlockViews {
  pools: Pick<Lister<AddressPool>, 'get'>;
  directory: Pick<PoolDirectory, 'pool' | 'stateOf'>;
  usage: Pick<PoolUsage, 'of'>;
  /** By name. */
  nodes: Pick<Lister<KubeObject>, 'get'>;
  blocks: Pick<BlockBook, 'ofPool' | 'lentOf'>;
  leaseCounts: Pick<NodeLeaseCounts, 'nodesOf' | 'leasesOf' | 'usedIn'>;
  slices: Pick<PoolSlices, 'of'>;
  shortages: Pick<ClaimShortages, 'of'>;
}

/** @param unusable slices that cannot be assigned, because an object that is not a valid block has their name */
export function observeBlocks(name: string, views: BlockViews, unusable: LentAddresses): ObservedPool {
  const { directory, blocks, slices, shortages } = views;
  const pool = directory.pool(name);
  const use = pool && slices.of(pool);
  const lent = blocks.lentOf(name);
  const without = (family: Family) => (unusable[family].isEmpty ? lent[family] : lent[family].union(unusable[family]));
  const unlent = (family: Family) => use?.unlent(family, without(family)) ?? [];
  const records = blocks.ofPool(name);
  return {
    name,
    phase: phaseOf(name, views),
    blocks: records.map((record) => observeBlock(record, use, views)),
    nodes: observeNodes(name, pool, records, views),
    unlent: { 4: unlent(4), 6: unlent(6) },
    claimShortageAt: shortages.of(name),
  };
}

function phaseOf(name: string, { pools, directory, usage }: BlockViews): PoolPhase {
  const pool = pools.get(name);
  if (pool === undefined) return 'ended';
  if (isBeingDeleted(pool)) return countBlockingLeases(usage.of(name, directory.pool(name))) === 0 ? 'ended' : 'ending';
  return directory.stateOf(name)?.kind === 'served' ? 'serving' : 'idle';
}

function observeBlock(
  record: BlockRecord,
  use: SliceOccupancy | undefined,
  { leaseCounts }: BlockViews,
): ObservedBlock {
  const { cidr } = record;
  return {
    record,
    used: leaseCounts.usedIn(record),
    free: use?.freeIn(cidr) ?? 0,
    size: use?.sizeOf(cidr) ?? 0,
    isSlice: use?.canLend(cidr) ?? false,
  };
}

function observeNodes(
  name: string,
  pool: Pool | undefined,
  records: readonly BlockRecord[],
  { nodes, leaseCounts }: BlockViews,
): ReadonlyMap<string, ObservedNode> {
  const found = new Map<string, ObservedNode>();
  for (const node of [...leaseCounts.nodesOf(name), ...records.map((record) => record.node)]) {
    if (found.has(node)) continue;
    const object = nodes.get(node);
    const isEligible =
      object !== undefined && pool !== undefined && hasNetwork(object, object.metadata.labels ?? {}, pool.nodeSelector);
    found.set(node, { exists: object !== undefined, isEligible, leases: leaseCounts.leasesOf(name, node) });
  }
  return found;
}
