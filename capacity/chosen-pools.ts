import { capacityResource } from '../api/capacity.js';
import type { Pool } from '../addressing/pool/pool.js';
import type { NodeRecord } from './node-record.js';

/** A pool with publishCapacity. */
export interface PublishingPool {
  readonly pool: Pool;
  readonly createdAt: string;
  /** Whether the pool is derived from NADs. */
  readonly isDerived: boolean;
}

export interface ChosenPools {
  readonly chosen: readonly Pool[];
  /** Names of the pools beyond the limit, which nodes do not show. */
  readonly leftOut: readonly string[];
}

/**
 * Chooses the pools whose capacity nodes show. Each pool adds a key to every node, so their number is limited. Pools that nodes already show
 * come first, then pools of administrators, then older pools.
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
