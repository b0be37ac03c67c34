import { compiledPool } from '../directory/verdict.js';
import { describeOverlap, overlapsOf } from '../pools/wire-overlap.js';
import type { ValidationView } from './view.js';
import type { Statement, Wish } from './wish.js';

/** Of more pools on one segment, the pool's condition tells a moment later. */
const MOST_COMPARED = 256;

/**
 * Other networks of the same layer-2 segment that lease the same addresses: allowed, because each tenant may think the other one wrong.
 * @param before what the NAD says now: the pool of a network that it leaves has leases on the segment for as long as they last
 */
export function warnOfWire({ nad, served }: Wish, { networks, leases }: ValidationView, before?: Statement): string[] {
  const { wire, metadata } = nad;
  if (wire === undefined) return [];
  const others = [...(networks.poolsByWire.get(wire) ?? [])].slice(0, MOST_COMPARED).flatMap((judged) => {
    const pool = compiledPool(judged);
    return pool === undefined || pool.name === served.name ? [] : [{ pool, nadNamespace: judged.nadNamespace }];
  });
  const { namespace } = metadata;
  if (before?.kind === 'wish' && before.wish.nad.wire === wire) {
    const { served: pool } = before.wish;
    const [lease] = pool.name === served.name ? [] : leases.ofPool(pool.name);
    if (lease !== undefined) others.push({ pool, nadNamespace: namespace });
  }
  const overlap = overlapsOf([...others, { pool: served, nadNamespace: namespace }]).get(served.name);
  return overlap === undefined ? [] : [describeOverlap(wire, overlap, namespace)];
}
