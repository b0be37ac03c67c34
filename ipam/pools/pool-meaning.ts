import { isDeepStrictEqual } from 'node:util';
import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import { shortHash } from '../../api/names.js';
import { type Pool, compilePool } from '../../addressing/pool/pool.js';
import type { RequestedPool } from './requested-pools.js';

export interface ExistingPool {
  readonly pool: AddressPool;
  /** Undefined if it is invalid. */
  readonly compiled: Pool | undefined;
}

/** Whether the spec is valid and has another meaning than that of the pool. @param requested that of the NAD, whose spec is compiled already */
export function isDifferent(
  { pool, compiled }: ExistingPool,
  spec: AddressPoolSpec,
  requested: Pick<RequestedPool, 'spec' | 'pool'>,
): boolean {
  if (isDeepStrictEqual(pool.spec, spec)) return false;
  const after = spec === requested.spec ? requested.pool : compiledSpec(pool, spec);
  return after !== undefined && !(compiled !== undefined && isSamePool(compiled, after));
}

function compiledSpec(pool: AddressPool, spec: AddressPoolSpec): Pool | undefined {
  const compiled = compilePool({ ...pool, spec });
  return compiled.ok ? compiled.pool : undefined;
}

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
