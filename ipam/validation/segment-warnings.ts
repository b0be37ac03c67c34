import { compiledPool } from '../../addressing/directory/pool-state.js';
import { describeOverlap, findOverlaps } from '../pools/segment-overlap.js';
import type { ValidationView } from './view.js';
import type { NadIpamConfig, NadPool } from './nad-pool.js';

/** Limits the time of a review. Overlaps with more pools appear in the pool's condition a moment later. */
const MAX_COMPARED_POOLS = 256;

/**
 * Warns of other networks on the same layer-2 segment that lease the same addresses. They are allowed, because each tenant may think that the other one is wrong.
 * @param before the NAD before the change: leases of a network that it leaves stay on the segment until they end
 */
export function warnOfSegmentOverlap(
  { nad, served }: NadPool,
  { networks, leases }: ValidationView,
  before?: NadIpamConfig,
): string[] {
  const { segment, metadata } = nad;
  if (segment === undefined) return [];
  const others = [...(networks.poolsBySegment.get(segment) ?? [])].slice(0, MAX_COMPARED_POOLS).flatMap((evaluated) => {
    const pool = compiledPool(evaluated);
    return pool === undefined || pool.name === served.name ? [] : [{ pool, nadNamespace: evaluated.nadNamespace }];
  });
  const { namespace } = metadata;
  if (before?.kind === 'pool' && before.requested.nad.segment === segment) {
    const { served: pool } = before.requested;
    const [lease] = pool.name === served.name ? [] : leases.ofPool(pool.name);
    if (lease !== undefined) others.push({ pool, nadNamespace: namespace });
  }
  const overlap = findOverlaps([...others, { pool: served, nadNamespace: namespace }]).get(served.name);
  return overlap === undefined ? [] : [describeOverlap(segment, overlap, namespace, false)];
}
