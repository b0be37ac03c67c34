import type { PoolDirectory } from '../../addressing/directory/directory.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { type Pool, compilePool } from '../../addressing/pool/pool.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { NadRightsLookup } from '../../api/networks/nad-rights.js';
import type { Cache } from '../../kube/informers/cache.js';

/** The part of a lease that a review reads. */
export type PoolLease = Pick<LeaseRecord, 'address' | 'addressSpace' | 'owner' | 'releasedAt' | 'quarantine'>;

/** The leases of a pool, by its name. */
export interface PoolLeases {
  ofPool(pool: string): Iterable<PoolLease>;
}

/** What a review sees of the cluster. Everything is read from memory. */
export interface ValidationView {
  readonly leases: PoolLeases;
  /** Indexed by {@link POOL_INDEXES}. */
  readonly pools: Pick<Cache<AddressPool>, 'get' | 'list' | 'byIndex'>;
  readonly networks: Pick<PoolDirectory, 'pool' | 'poolsIn' | 'nadsOf' | 'poolsOf' | 'poolsBySegment'>;
  /** What NADs of a namespace may request. */
  readonly rightsOf: NadRightsLookup;
  /** The minimum cool-down, whatever a pool says: twice the time for which agents may answer from caches. */
  readonly minCooldownMs: number;
}

/** The kind of a refusal, for metrics and logs. */
export type ReviewCheck =
  | 'spec'
  | 'derived'
  | 'conflict'
  | 'network'
  | 'address-space'
  | 'shrink'
  | 'in-use'
  | 'delegation'
  | 'disagreement'
  | 'rights'
  | 'limit';

export interface ValidationRefusal {
  readonly check: ReviewCheck;
  /** Names the field or the object and the value, and says what to do. */
  readonly message: string;
}

/** The result of a review. The object is allowed if there are no refusals. */
export interface ValidationResult {
  readonly refusals: readonly ValidationRefusal[];
  /** About allowed settings that may be mistakes. */
  readonly warnings: readonly string[];
}

export const ALLOWED: ValidationResult = { refusals: [], warnings: [] };

export function refuse(...refusals: readonly ValidationRefusal[]): ValidationResult {
  return { refusals, warnings: [] };
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
