import { isDeepStrictEqual } from 'node:util';
import { type Pool, addressesOf, compilePool } from '../../addressing/pool/pool.js';
import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import { shortHash } from '../../api/names.js';
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

/** What identifies a pool, and what only an administrator sets. */
const NO_MEANING: ReadonlySet<string> = new Set<keyof Pool>([
  'name',
  'uid',
  'network',
  'nadNamespace',
  'publishesMetrics',
]);

/** A hash, to save memory: it is kept as long as the pool. */
function hashMeaning(pool: Pool): string {
  const meaning = Object.fromEntries(Object.entries(pool).filter(([key]) => !NO_MEANING.has(key)));
  const text = JSON.stringify(meaning, (key, value: unknown) => {
    if (key === 'nodeSelector') return Object.entries(value as object).sort();
    if (value instanceof Set) return [...(value as Set<string>)].sort();
    return typeof value === 'bigint' ? value.toString() : value;
  });
  return shortHash(text, 64);
}

/** The namespaces that a derived pool serves, and its other settings, follow the NAD even if its addresses cannot. */
export function withAddressesOf(
  { spec: { subnets, addressSpace } }: AddressPool,
  spec: AddressPoolSpec,
): AddressPoolSpec {
  const { addressSpace: _asked, ...terms } = spec;
  return { ...terms, subnets, ...(addressSpace !== undefined && { addressSpace }) };
}

/**
 * Returns the spec of a pool that has its addresses without permission. It gets no more, and may lose some.
 * @param hasObstacle it cannot follow its NAD yet
 * @param isDrained it allocates nothing to new owners
 */
export function refusedSpec(
  { spec, pool }: { spec: AddressPoolSpec; pool: Pool },
  { pool: existing, compiled }: { pool: AddressPool; compiled: Pool | undefined },
  { hasObstacle, isDrained }: { hasObstacle: boolean; isDrained: boolean },
): AddressPoolSpec {
  const next = hasObstacle || !isWithin(pool, compiled) ? withAddressesOf(existing, spec) : spec;
  if (!isDrained) return next;
  return { ...next, subnets: next.subnets.map((subnet) => ({ ...subnet, draining: [subnet.cidr] })) };
}

/** Whether all addresses of a pool are in another pool of its address space. */
function isWithin(pool: Pool, other: Pool | undefined): boolean {
  if (other?.addressSpace !== pool.addressSpace) return false;
  return pool.families.every((family) => {
    const missing = addressesOf(pool, family, 'leasable').subtract(addressesOf(other, family, 'leasable'));
    return missing.isEmpty;
  });
}
