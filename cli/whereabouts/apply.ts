import { nadNamespaceOf } from '../../api/address-pool.js';
import { hasUid } from '../../api/pod.js';
import { formatAddress } from '../../ipam/core/address.js';
import {
  type LeaseRecord,
  createLease,
  expireLease,
  readLease,
  releaseLease,
  stateOf,
  takeLease,
} from '../../ipam/core/lease.js';
import { compilePool } from '../../ipam/core/pool.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { TransportError, classify, isAlreadyExists, messageOf } from '../../kube/errors.js';
import { inParallel } from '../../kube/in-parallel.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, PODS } from '../../kube/resources.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { Refusal } from '../refusal.js';
import type { Reservation } from '../reserve.js';
import type { LivePods } from './attachments.js';
import { describeHolder, stateOfLease } from './leases.js';
import type { Conflict, PlannedLease, PlannedPool } from './plan-types.js';
import { differenceOf } from './targets.js';

export interface ApplyDeps {
  readonly client: Pick<Client, 'get' | 'create' | 'patch' | 'delete'>;
  readonly clock: Pick<Clock, 'wall' | 'sleep'>;
  /** How many writes are under way at once. */
  readonly width: number;
  /** Told after each lease. */
  readonly progress: (done: number, of: number) => void;
}

/** What could not be done, and why. */
export interface Failure {
  /** Of the pool or lease. */
  readonly name: string;
  readonly message: string;
}

/** What came of it: names. */
export interface Applied {
  readonly poolsMade: string[];
  readonly leasesMade: string[];
  /** Their owners had them already. */
  readonly leasesThere: string[];
  /** Addresses in conflict, which nobody gets until somebody has decided. */
  readonly reserved: Reservation[];
  failed: Failure[];
}

/** A busy API server, or none for a moment, is asked again. */
const ATTEMPTS = 5;
const PAUSE_MS = 500;

/** Makes pools first. Of those that cannot be made nothing is leased. @returns the names of those that are there */
export async function makePools(
  pools: readonly PlannedPool[],
  deps: ApplyDeps,
  applied: Applied,
): Promise<ReadonlySet<string>> {
  const there = new Set<string>();
  for (const { pool, state } of pools) {
    const { name } = pool.metadata;
    try {
      if (state === 'create' && (await makePool(pool, deps))) applied.poolsMade.push(name);
      there.add(name);
    } catch (error) {
      applied.failed.push({ name, message: messageOf(error) });
    }
  }
  return there;
}

/** Leases one address after the other, several at once; what fails is noted, and the others go on. */
export async function makeLeases(
  leases: readonly PlannedLease[],
  pods: Pick<LivePods, 'has'>,
  deps: ApplyDeps,
  applied: Applied,
): Promise<void> {
  let done = 0;
  await inParallel(leases, deps.width, async (planned) => {
    try {
      const made = planned.state !== 'done' && (await makeLease(planned, pods, deps));
      (made ? applied.leasesMade : applied.leasesThere).push(planned.name);
    } catch (error) {
      applied.failed.push({ name: planned.name, message: messageOf(error) });
    }
    deps.progress(++done, leases.length);
  });
}

/** Keeps from everybody what is in conflict: a third one would get it as soon as its NAD has moved. */
export async function reserveConflicts(
  conflicts: readonly Conflict[],
  pools: ReadonlySet<string>,
  deps: ApplyDeps,
  applied: Applied,
): Promise<void> {
  const leases = conflicts.flatMap(({ reservation }) => reservation ?? []);
  await inParallel(leases, deps.width, async (lease) => {
    const { pool, address } = lease.spec;
    if (!pools.has(pool)) return;
    try {
      await again(deps, () => deps.client.create(ADDRESS_LEASES, lease));
      applied.reserved.push({ pool, address });
    } catch (error) {
      // whoever has it keeps it as well
      if (!isAlreadyExists(error)) applied.failed.push({ name: lease.metadata.name, message: messageOf(error) });
    }
  });
}

/** Lets go what pods have that are gone. @returns the names of leases that were released */
export async function releaseGone(
  leases: readonly PlannedLease[],
  deps: ApplyDeps,
  applied: Applied,
): Promise<string[]> {
  const released: string[] = [];
  await inParallel(leases, deps.width, async ({ name, request }) => {
    try {
      const record = await find(name, deps);
      if (record?.owner?.uid !== request.owner.uid || stateOf(record) !== 'held') return;
      await writeLease(deps.client, releaseLease(record, deps.clock.wall()));
      released.push(name);
    } catch (error) {
      // somebody else has been faster
      if (classify(error) !== 'stale') applied.failed.push({ name, message: messageOf(error) });
    }
  });
  return released;
}

/** @returns false where it is there */
async function makePool(pool: PlannedPool['pool'], deps: ApplyDeps): Promise<boolean> {
  return again(deps, async () => {
    try {
      await deps.client.create(ADDRESS_POOLS, pool);
      return true;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const found = await deps.client.get(ADDRESS_POOLS, { name: pool.metadata.name });
    const wanted = compilePool(pool);
    if (!wanted.ok) throw new Refusal(`it is invalid: ${wanted.problems.map(({ field }) => field).join(', ')}`);
    const nad = { namespace: nadNamespaceOf(pool) ?? '', network: pool.spec.network };
    const difference = differenceOf(found, wanted.pool, nad);
    if (difference === undefined) return false;
    throw new Refusal(`another pool of this name has been made meanwhile: ${difference}`);
  });
}

/** Creating the lease is the lock. @returns false where its owner had it already */
async function makeLease(planned: PlannedLease, pods: Pick<LivePods, 'has'>, deps: ApplyDeps): Promise<boolean> {
  const { name, request } = planned;
  return again(deps, async () => {
    try {
      await writeLease(deps.client, createLease(request));
      return true;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const record = await find(name, deps);
    if (record === undefined) throw new TransportError('broken', 'the lease has come and gone');
    const state = stateOfLease(record, request, pods);
    if (state === 'done') return false;
    if (state === undefined || !(await mayReplace(record, planned, deps))) {
      throw new Refusal(`${formatAddress(request.address)} is in use twice: ${describeHolder(record)}`);
    }
    await replace(record, request, deps);
    return true;
  });
}

/** A lease that has changed since the plan can be of a pod that is younger than the list of pods: the pod itself is asked for. */
async function mayReplace(record: LeaseRecord, { record: seen }: PlannedLease, deps: ApplyDeps): Promise<boolean> {
  const { owner, metadata } = record;
  if (stateOf(record) !== 'held' || owner === undefined) return true;
  if (seen?.metadata.uid === metadata.uid && seen.metadata.resourceVersion === metadata.resourceVersion) return true;
  const { namespace, name, uid } = owner;
  const pod = await findUnlessGone(deps.client, PODS, { namespace, name });
  return pod === undefined || !hasUid(pod, uid);
}

/** What an owner that is gone has left becomes the new one's; the address is never without a lease, but where the pool is another one. */
async function replace(
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
    await writeLease(client, takeLease(current, request));
    return;
  }
  await writeLease(client, expireLease(current));
  await writeLease(client, createLease(request));
}

async function find(name: string, { client }: ApplyDeps): Promise<LeaseRecord | undefined> {
  const lease = await findUnlessGone(client, ADDRESS_LEASES, { name });
  return lease && readLease(lease);
}

/** A write whose answer was lost is found to be done by the next attempt. */
async function again<T>({ clock }: ApplyDeps, attempt: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof Refusal || classify(error) === 'invalid' || attempts === ATTEMPTS) throw error;
    }
    await clock.sleep(PAUSE_MS * attempts);
  }
}
