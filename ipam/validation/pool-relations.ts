import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { type Pool, compilePool } from '../core/pool.js';

/** Written by an admin, not made of a NAD. */
export function isAdminPool(pool: AddressPool): boolean {
  return nadNamespaceOf(pool) === undefined;
}

/** Two pools of one network, with namespaces whose workloads may draw from both. */
export function hasCommonUsers(pool: AddressPool, other: AddressPool): boolean {
  return other.spec.network === pool.spec.network && commonNamespaces(pool, other).length > 0;
}

/**
 * Namespaces whose workloads may draw from both pools.
 * @returns `all` where both serve all; empty where there are none
 */
export function commonNamespaces(a: AddressPool, b: AddressPool): 'all' | readonly string[] {
  const [ours, theirs] = [a.spec.namespaces, b.spec.namespaces];
  if (ours === undefined) return theirs ?? 'all';
  return theirs === undefined ? ours : ours.filter((namespace) => theirs.includes(namespace));
}

/** A pool as it is served; undefined where it cannot be. */
export function servablePool(pool: AddressPool): Pool | undefined {
  const compiled = compilePool(pool);
  return compiled.ok ? compiled.pool : undefined;
}
