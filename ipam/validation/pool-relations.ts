import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { type Pool, compilePool } from '../../addressing/pool/pool.js';

/** Whether an administrator created the pool; otherwise it is derived from a NAD. */
export function isAdminPool(pool: AddressPool): boolean {
  return nadNamespaceOf(pool) === undefined;
}

/** Whether two pools of one network may serve the same workloads. */
export function hasCommonUsers(pool: AddressPool, other: AddressPool): boolean {
  return other.spec.network === pool.spec.network && commonNamespaces(pool, other).length > 0;
}

/**
 * The namespaces whose workloads both pools may serve.
 * @returns `all` if both serve all namespaces; empty if they have none in common
 */
export function commonNamespaces(a: AddressPool, b: AddressPool): 'all' | readonly string[] {
  const [ours, theirs] = [a.spec.namespaces, b.spec.namespaces];
  if (ours === undefined) return theirs ?? 'all';
  return theirs === undefined ? ours : ours.filter((namespace) => theirs.includes(namespace));
}

/** Compiles a pool; undefined if it is invalid. */
export function servablePool(pool: AddressPool): Pool | undefined {
  const compiled = compilePool(pool);
  return compiled.ok ? compiled.pool : undefined;
}
