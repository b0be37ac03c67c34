import { shortHash } from '../../api/hash.js';
import type { Pool } from '../../addressing/pool/pool.js';

/** Whether both pools have the same addresses and settings, however they are written. */
export function isSamePool(one: Pool, other: Pool): boolean {
  return meaningOf(one) === meaningOf(other);
}

const meanings = new WeakMap<Pool, string>();

function meaningOf(pool: Pool): string {
  const known = meanings.get(pool) ?? hashMeaning(pool);
  meanings.set(pool, known);
  return known;
}

/** A hash, to save memory: it is kept as long as the pool. */
function hashMeaning(pool: Pool): string {
  const { addressSpace, subnets, cooldownMs, stickyMs, isStickyForClaims, blockSize, publishesCapacity } = pool;
  const { namespaces, nodeSelector } = pool;
  const meaning = [
    [addressSpace, subnets, cooldownMs, stickyMs, isStickyForClaims, blockSize, publishesCapacity],
    namespaces && [...namespaces].sort(),
    nodeSelector && Object.entries(nodeSelector).sort(([a], [b]) => (a < b ? -1 : 1)),
  ];
  const text = JSON.stringify(meaning, (_key, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
  return shortHash(text, 64);
}
