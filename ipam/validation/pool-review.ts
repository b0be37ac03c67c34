import { isDeepStrictEqual } from 'node:util';
import type { AddressPool } from '../../api/address-pool.js';
import { isBeingDeleted } from '../../api/meta.js';
import { compilePool } from '../core/pool.js';
import { type PoolChange, refuseLeaseLosses } from './leased-addresses.js';
import { countLeases, describeLeases, unreleased } from './unreleased-leases.js';
import { commonNamespaces, hasCommonUsers, isAdminPool, servablePool } from './pool-relations.js';
import { warnOfPool } from './pool-warnings.js';
import { ALLOWED, type ReviewRefusal, type ReviewResult, refuse } from './review-result.js';
import type { ValidationView } from './view.js';

/** A pool that is about to be created, changed or deleted. */
export type PoolReview =
  | { operation: 'CREATE'; pool: AddressPool }
  | { operation: 'UPDATE'; pool: AddressPool; oldPool: AddressPool }
  | { operation: 'DELETE'; oldPool: AddressPool };

/** Reviews what the schema of an AddressPool cannot say. Pure; it refuses for all reasons at once. */
export function reviewPool(review: PoolReview, view: ValidationView): ReviewResult {
  if (review.operation === 'DELETE') return reviewDeletion(review.oldPool, view);
  const oldPool = review.operation === 'UPDATE' ? review.oldPool : undefined;
  // labels and finalizers; a pool that is wrong already must be able to go
  if (oldPool !== undefined && isDeepStrictEqual(review.pool.spec, oldPool.spec)) return ALLOWED;
  const compiled = compilePool(review.pool);
  if (!compiled.ok) {
    const { problems } = compiled;
    return refuse(
      ...problems.map(({ field, message }): ReviewRefusal => ({ check: 'spec', message: `${field}: ${message}` })),
    );
  }
  const change = { pool: review.pool, after: compiled.pool, oldPool, before: oldPool && servablePool(oldPool) };
  const refusals = [...refuseConflicts(change, view), ...refuseLeaseLosses(change, view.leases)];
  return refusals.length > 0 ? refuse(...refusals) : { refusals, warnings: warnOfPool(change, view) };
}

function reviewDeletion({ metadata: { name } }: AddressPool, view: ValidationView): ReviewResult {
  const leases = unreleased(view.leases.ofPool(name));
  if (leases.length === 0) return ALLOWED;
  const message = `it has ${countLeases(leases)}: ${describeLeases(leases)}. First delete their owners, and the leases that are reserved`;
  return refuse({ check: 'in-use', message });
}

/** Of two pools for the same users only one can serve: it is better not to have the second. */
function refuseConflicts({ pool, oldPool }: PoolChange, view: ValidationView): ReviewRefusal[] {
  if (!isAdminPool(pool)) return [];
  const rivals = view.pools.list().filter((other) => {
    if (other.metadata.name === pool.metadata.name || !isAdminPool(other) || !hasCommonUsers(pool, other)) return false;
    // what goes, or cannot be served, stands in nobody's way
    if (isBeingDeleted(other) || servablePool(other) === undefined) return false;
    // one that was a rival before is no reason to refuse what may be the remedy
    return oldPool === undefined || !hasCommonUsers(oldPool, other);
  });
  return rivals.map((other) => {
    const users = commonNamespaces(pool, other);
    const whom = users === 'all' ? 'all namespaces' : `namespace ${users[0] ?? ''}`;
    const message =
      `spec.network: AddressPool ${other.metadata.name} serves "${pool.spec.network}" for ${whom} already. ` +
      `Write the subnets into that pool, or give both pools spec.namespaces that have none in common`;
    return { check: 'conflict', message };
  });
}
