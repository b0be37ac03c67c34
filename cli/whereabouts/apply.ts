import { nadNamespaceOf } from '../../api/address-pool.js';
import { hasUid } from '../../api/pod.js';
import { formatAddress } from '../../addressing/address/address.js';
import {
  type LeaseRecord,
  createLease,
  expireLease,
  readLease,
  reallocateLease,
  releaseLease,
  stateOf,
} from '../../addressing/lease/lease.js';
import { compilePool } from '../../addressing/pool/pool.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { TransportError, isAlreadyExists, isRejected, writeFailureOf } from '../../kube/errors.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, PODS } from '../../kube/resources.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { CommandError } from '../exit-code.js';
import type { Reservation } from '../reserve.js';
import type { ActivePods } from './active-pods.js';
import { describeLeaseHolder, stateOfLease } from './lease-plan.js';
import type { Conflict, PlannedLease, PlannedPool } from './plan-types.js';
import { describePoolDifference } from './target-pools.js';

export interface ApplyDeps {
  readonly client: Pick<Client, 'get' | 'create' | 'patch' | 'delete'>;
  readonly clock: Pick<Clock, 'wall' | 'sleep'>;
  /** The number of parallel writes. */
  readonly concurrency: number;
  /** Of printed commands. */
  readonly clusterFlags: string;
}

/** A pool or lease that could not be created. */
export interface ApplyFailure {
  readonly name: string;
  readonly message: string;
}

/** The result by names. */
export interface ApplyResult {
  readonly poolsMade: string[];
  readonly leasesMade: string[];
  /** Their owners held them already. */
  readonly leasesThere: string[];
  /** Addresses in conflict, reserved until the user resolves the conflict. */
  readonly reserved: Reservation[];
  failed: ApplyFailure[];
}

/** Requests are retried if the API server is busy or briefly unavailable. */
const MAX_ATTEMPTS = 5;
const RETRY_PAUSE_MS = 500;

/** Creates the missing pools. @returns the names of all pools that exist, from which leases can be created */
export async function createPools(
  pools: readonly PlannedPool[],
  deps: ApplyDeps,
  applied: ApplyResult,
): Promise<ReadonlySet<string>> {
  const there = new Set<string>();
  for (const { pool, state } of pools) {
    const { name } = pool.metadata;
    try {
      if (state === 'create' && (await createPool(pool, deps))) applied.poolsMade.push(name);
      there.add(name);
    } catch (error) {
      applied.failed.push({ name, message: writeFailureOf(error) });
    }
  }
  return there;
}

/**
 * Creates leases in parallel. A failed lease is recorded and does not stop the others.
 * @param deps with `onProgress`, which is called after each lease
 */
export async function createLeases(
  leases: readonly PlannedLease[],
  pods: Pick<ActivePods, 'has'>,
  deps: ApplyDeps & { readonly onProgress: (done: number, of: number) => void },
  applied: ApplyResult,
): Promise<void> {
  let done = 0;
  await forEachParallel(leases, deps.concurrency, async (planned) => {
    try {
      const made = planned.state !== 'done' && (await ensureLease(planned, pods, deps));
      (made ? applied.leasesMade : applied.leasesThere).push(planned.name);
    } catch (error) {
      applied.failed.push({ name: planned.name, message: writeFailureOf(error) });
    }
    deps.onProgress(++done, leases.length);
  });
}

/** Reserves addresses in conflict: otherwise another pod could get them as soon as their NAD has changed. */
export async function reserveConflicts(
  conflicts: readonly Conflict[],
  pools: ReadonlySet<string>,
  deps: ApplyDeps,
  applied: ApplyResult,
): Promise<void> {
  const leases = conflicts.flatMap(({ reservation }) => reservation ?? []);
  await forEachParallel(leases, deps.concurrency, async (lease) => {
    const { pool, address } = lease.spec;
    if (!pools.has(pool)) return;
    try {
      await withRetries(deps, () => deps.client.create(ADDRESS_LEASES, lease));
      applied.reserved.push({ pool, address });
    } catch (error) {
      // an existing lease keeps the address as well
      if (!isAlreadyExists(error)) applied.failed.push({ name: lease.metadata.name, message: writeFailureOf(error) });
    }
  });
}

/** @returns false if the pool exists already */
async function createPool(pool: PlannedPool['pool'], deps: ApplyDeps): Promise<boolean> {
  return withRetries(deps, async () => {
    try {
      await deps.client.create(ADDRESS_POOLS, pool);
      return true;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const found = await deps.client.get(ADDRESS_POOLS, { name: pool.metadata.name });
    const wanted = compilePool(pool);
    if (!wanted.ok) throw new CommandError(`it is invalid: ${wanted.problems.map(({ field }) => field).join(', ')}`);
    const nad = { namespace: nadNamespaceOf(pool) ?? '', network: pool.spec.network };
    const difference = describePoolDifference(found, wanted.pool, nad);
    if (difference === undefined) return false;
    throw new CommandError(`another pool of this name was created meanwhile: ${difference}`);
  });
}

/** Creates or takes over the lease; creation is the lock. @returns false if its owner held it already */
async function ensureLease(planned: PlannedLease, pods: Pick<ActivePods, 'has'>, deps: ApplyDeps): Promise<boolean> {
  const { name, request } = planned;
  return withRetries(deps, async () => {
    try {
      await writeLease(deps.client, createLease(request));
      return true;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const record = await findLease(name, deps);
    if (record === undefined) throw new TransportError('broken', 'the lease was created and deleted meanwhile');
    const state = stateOfLease(record, request, pods);
    if (state === 'done') return false;
    if (state === undefined || !(await canReplace(record, planned, deps))) {
      const holder = describeLeaseHolder(record, deps.clusterFlags);
      throw new CommandError(`${formatAddress(request.address)} is in use twice: ${holder}`);
    }
    await replaceLease(record, request, deps);
    return true;
  });
}

/** Reads the pod of a lease that changed after the plan was made, because that pod may be newer than the list of pods. */
async function canReplace(record: LeaseRecord, { record: seen }: PlannedLease, deps: ApplyDeps): Promise<boolean> {
  const { owner, metadata } = record;
  if (stateOf(record) !== 'held' || owner === undefined) return true;
  if (seen?.metadata.uid === metadata.uid && seen.metadata.resourceVersion === metadata.resourceVersion) return true;
  const { namespace, name, uid } = owner;
  const pod = await findUnlessGone(deps.client, PODS, { namespace, name });
  return pod === undefined || !hasUid(pod, uid);
}

/** Transfers the lease of an owner that is gone. The address always has a lease, except if the pool changes. */
async function replaceLease(
  record: LeaseRecord,
  request: PlannedLease['request'],
  { client, clock }: ApplyDeps,
): Promise<void> {
  let current = record;
  if (stateOf(current) === 'held') {
    const released = await writeLease(client, releaseLease(current, clock.wall()));
    if (released !== undefined) current = readLease(released);
  }
  if (current.pool === request.pool) {
    await writeLease(client, reallocateLease(current, request));
    return;
  }
  await writeLease(client, expireLease(current));
  await writeLease(client, createLease(request));
}

async function findLease(name: string, { client }: ApplyDeps): Promise<LeaseRecord | undefined> {
  const lease = await findUnlessGone(client, ADDRESS_LEASES, { name });
  return lease && readLease(lease);
}

/** If the answer to a write was lost, the next attempt finds the object. */
async function withRetries<T>({ clock }: ApplyDeps, attempt: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof CommandError || isRejected(error) || attempts === MAX_ATTEMPTS) throw error;
    }
    await clock.sleep(RETRY_PAUSE_MS * attempts);
  }
}
