import { isDeepStrictEqual } from 'node:util';
import { type AddressPool, nadNamespaceOf, isAdminPool } from '../../api/address-pool.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { isResponder } from '../../addressing/lease/lease.js';
import { compilePool } from '../../addressing/pool/pool.js';
import { readRequestedPools } from '../pools/requested-pools.js';
import { type PoolChange, countLeases, describeLeases, refuseLeaseLosses, unreleased } from './leased-addresses.js';
import {
  ALLOWED,
  type ValidationRefusal,
  type ValidationResult,
  type ValidationView,
  commonNamespaces,
  hasCommonUsers,
  refuse,
  servablePool,
} from './review.js';
import { warnOfPool } from './pool-warnings.js';

/** A pool that is being created, changed or deleted. */
export type PoolReview =
  | { operation: 'CREATE'; pool: AddressPool }
  | { operation: 'UPDATE'; pool: AddressPool; oldPool: AddressPool }
  | { operation: 'DELETE'; oldPool: AddressPool };

/** Reviews what the schema of an AddressPool cannot express, in short steps. Pure. It reports all reasons for a refusal at once. */
export function* reviewPool(review: PoolReview, view: ValidationView): Generator<undefined, ValidationResult> {
  if (review.operation === 'DELETE') return reviewDeletion(review.oldPool, view);
  const oldPool = review.operation === 'UPDATE' ? review.oldPool : undefined;
  // only metadata changed: it must be possible to remove the finalizer of an invalid pool
  if (oldPool !== undefined && isDeepStrictEqual(review.pool.spec, oldPool.spec)) return ALLOWED;
  const derived = oldPool && refuseDerivedChange(review.pool, oldPool, view);
  if (derived !== undefined) return derived;
  const compiled = compilePool(review.pool);
  if (!compiled.ok) {
    const { problems } = compiled;
    return refuse(
      ...problems.map(({ field, message }): ValidationRefusal => ({ check: 'spec', message: `${field}: ${message}` })),
    );
  }
  const change = { pool: review.pool, after: compiled.pool, oldPool, before: oldPool && servablePool(oldPool) };
  const refusals = [...refuseConflicts(change, view), ...refuseLeaseLosses(change, view)];
  return refusals.length > 0 ? refuse(...refusals) : { refusals, warnings: yield* warnOfPool(change, view) };
}

/** ipam's own changes are not reviewed. It would undo those of others, or pods would get addresses that the NAD does not have. */
function refuseDerivedChange(
  { spec }: AddressPool,
  oldPool: AddressPool,
  { networks, rightsOf }: ValidationView,
): ValidationResult | undefined {
  const namespace = nadNamespaceOf(oldPool);
  const kept = { ...spec, publishMetrics: oldPool.spec.publishMetrics };
  if (namespace === undefined || isDeepStrictEqual(kept, { publishMetrics: undefined, ...oldPool.spec }))
    return undefined;
  const { network } = oldPool.spec;
  const nads = networks.nadsOf(namespace, network);
  const rights = rightsOf(namespace);
  const { requested } = readRequestedPools({ namespace, network, rights, nads, hasAdminPool: false, pool: oldPool });
  const [followed] = requested;
  const origin =
    followed === undefined
      ? `its spec follows the NADs of network ${network} in namespace ${namespace}, and no NAD requests it now: create the NAD, or delete the pool`
      : `its spec follows NAD ${objectKey(followed.nad)}: change "ipam" there`;
  const message = `${origin}. Only publishMetrics can be set on the pool`;
  return refuse({ check: 'derived', message });
}

/** Responders keep no pool: `guest` ends those of a pool that is being deleted, and the finalizer keeps the pool until they are gone. */
function reviewDeletion({ metadata: { name } }: AddressPool, view: ValidationView): ValidationResult {
  const leases = unreleased(view.leases.ofPool(name)).filter(({ owner }) => owner === undefined || !isResponder(owner));
  if (leases.length === 0) return ALLOWED;
  const message = `it has ${countLeases(leases)}: ${describeLeases(leases)}. First delete their owners and the reservations`;
  return refuse({ check: 'in-use', message });
}

/** Refuses a second pool for the same users, because only one of the two could serve. */
function refuseConflicts({ pool, oldPool }: PoolChange, view: ValidationView): ValidationRefusal[] {
  if (!isAdminPool(pool)) return [];
  const rivals = view.pools.list().filter((other) => {
    if (other.metadata.name === pool.metadata.name || !isAdminPool(other) || !hasCommonUsers(pool, other)) return false;
    // a pool that is being deleted or invalid serves nobody
    if (isBeingDeleted(other) || servablePool(other) === undefined) return false;
    // a conflict that existed before is not refused, because the change may be its remedy
    return oldPool === undefined || !hasCommonUsers(oldPool, other);
  });
  return rivals.map((other) => {
    const users = commonNamespaces(pool, other);
    const whom = users === 'all' ? 'all namespaces' : `namespace ${users[0] ?? ''}`;
    const message =
      `spec.network: AddressPool ${other.metadata.name} serves "${pool.spec.network}" for ${whom}. ` +
      `Add the subnets to that pool, or set spec.namespaces of both pools so that they have none in common`;
    return { check: 'conflict', message };
  });
}
