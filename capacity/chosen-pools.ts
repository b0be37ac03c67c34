import { capacityResource } from '../api/capacity.js';
import type { Pool } from '../ipam/core/pool.js';
import type { NodeRecord } from './node-record.js';

/** A pool that says that it publishes its capacity. */
export interface PublishingPool {
  readonly pool: Pool;
  readonly createdAt: string;
  /** Made from NADs; not by an administrator. */
  readonly isDerived: boolean;
}

export interface ChosenPools {
  readonly chosen: readonly Pool[];
  /** Names of pools beyond the limit, of which nodes show nothing. */
  readonly leftOut: readonly string[];
}

/**
 * The pools whose capacity nodes show: each adds a key to every node, so there is a limit. Pools that nodes show already come first, then
 * administrators' pools, then the oldest.
 */
export function choosePools(
  pools: readonly PublishingPool[],
  nodes: readonly Pick<NodeRecord, 'shown'>[],
  limit: number,
): ChosenPools {
  const shown = new Set(nodes.flatMap((node) => [...node.shown.keys()]));
  const rankOf = ({ pool, createdAt, isDerived }: PublishingPool) =>
    [shown.has(capacityResource(pool.name)) ? 0 : 1, isDerived ? 1 : 0, createdAt, pool.name].join(' ');
  const ranked = pools
    .map((each) => ({ pool: each.pool, rank: rankOf(each) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ pool }) => pool);
  return { chosen: ranked.slice(0, limit), leftOut: ranked.slice(limit).map(({ name }) => name) };
}
