import { nameFirst } from '../../api/json.js';
import { PoolCondition } from '../../api/conditions.js';
import { type AddressPool, type PoolBlocks, addressSpaceOf, nadNamespaceOf } from '../../api/address-pool.js';
import { isBeingDeleted, splitKey } from '../../api/meta.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock, Random } from '../../kube/clock.js';
import type { EventRecorder } from '../../kube/events.js';
import type { SyncResult } from '../../kube/controller-loop.js';
import { runInSlices } from '../../kube/run-in-slices.js';
import type { Cache } from '../../kube/informers/cache.js';
import { addFinalizer, isUnused, removeFinalizer } from './apply.js';
import type { DerivationPlan } from './derivation.js';
import { type DesiredCondition, adminOverrideOf } from './pool-conditions.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import {
  DerivedPoolCounts,
  MoveFence,
  type NetworkSyncDependencies,
  type NetworkSyncMemory,
  CONSENT_RECHECK_MS,
  planNetwork,
  syncNetwork,
} from './network-sync.js';
import type { LeaseBook } from '../leases/lease-book.js';
import { NadEvents, recordConditionEvents } from './pool-events.js';
import type { PoolMetrics } from './metrics.js';
import { type PoolStatusInput, countBlockingLeases, conditionsOf, countsOf, usesOf } from './status.js';
import { type StatusWriteResult, PoolStatusWriter } from './status-writer.js';
import type { SegmentOverlapTracker } from './segment-overlap.js';
import { usersWithoutConsent } from '../../addressing/pool/address-space-rights.js';
import { MAX_NAMED } from './named-leases.js';

type PoolClient = Pick<Client, 'create' | 'patch' | 'delete' | 'listAs'>;

export interface PoolsDependencies extends NetworkSyncDependencies {
  book: Pick<LeaseBook, 'get' | 'ofPool' | 'quarantined' | 'space' | 'setPool'>;
  client: PoolClient;
  pools: Pick<Cache<AddressPool>, 'get' | 'size' | 'byIndex'>;
  overlaps: Pick<SegmentOverlapTracker, 'messageFor' | 'start'>;
  /** How long agents may lease from a pool after it has changed. */
  maxStalenessMs: number;
  /** Absent if nodes get no blocks. */
  blocks?: { statusOf(pool: Pool): PoolBlocks; countDelayingDeletion(pool: string): number };
  events: Pick<EventRecorder, 'event'>;
  clock: Pick<Clock, 'now' | 'wall'>;
  random: Random;
  /** Time between two writes of one pool's counts. */
  statusIntervalMs: number;
  metrics: Pick<PoolMetrics, 'observed' | 'forget'>;
}

/** The state of one leadership term. */
interface TermState extends NetworkSyncMemory {
  readonly writer: PoolStatusWriter;
}

/** Creates the reconciler of one leadership term. Its keys are names of pools, and `namespace/network` of NADs. */
export function createPoolsSync(
  dependencies: PoolsDependencies,
): (key: string, signal?: AbortSignal) => Promise<SyncResult> {
  const { client, clock, random, events, pools, statusIntervalMs, maxStalenessMs } = dependencies;
  const overlaps = dependencies.overlaps.start();
  const options = { random, countsIntervalMs: statusIntervalMs, poolCount: () => pools.size };
  const memory = {
    writer: new PoolStatusWriter(client, clock, options),
    nadEvents: new NadEvents(events, clock),
    fence: new MoveFence(() => clock.now(), maxStalenessMs),
    counts: new DerivedPoolCounts(pools),
  };
  return async (key, signal) => {
    await overlaps;
    const call = { signal };
    if (!key.includes('/')) return syncPool(key, memory, dependencies, call);
    const { namespace, name: network } = splitKey(key);
    return syncNetwork({ namespace, network }, memory, dependencies, call);
  };
}

async function planForPool(
  pool: AddressPool,
  fence: MoveFence,
  dependencies: PoolsDependencies,
): Promise<DerivationPlan | undefined> {
  const namespace = nadNamespaceOf(pool);
  if (namespace === undefined || !dependencies.directory.knowsNetworks) return undefined;
  const plan = planNetwork({ namespace, network: pool.spec.network }, fence, dependencies);
  return runInSlices(plan, dependencies.clock);
}

/** Keeps a pool's finalizer and status up to date. */
async function syncPool(
  name: string,
  { writer, fence, counts }: TermState,
  dependencies: PoolsDependencies,
  call: CallOptions,
): Promise<SyncResult> {
  const { pools, directory, usage, client, clock, events, metrics } = dependencies;
  const cached = pools.get(name);
  const state = directory.stateOf(name);
  counts.observed(name);
  if (cached === undefined || state === undefined) {
    for (const memory of [writer, usage, metrics, fence]) memory.forget(name);
    return undefined;
  }
  const pool = await addFinalizer(cached, client, call);
  const plan = await planForPool(pool, fence, dependencies);
  const fencedMs = canMove(pool, plan) ? fence.remainingMs(pool) : 0;
  if (fencedMs === 0 && isReadyToDelete(pool, plan, dependencies))
    return finishDeletion(pool, plan, dependencies, call);
  const inMs = writer.msUntilDue(pool);
  if (inMs > 0) return { earlyByMs: inMs };
  const usedByOthers = await describeUsersWithoutConsent(pool, directory, clock);
  if (!(await usage.prepareCurrent(name, directory, clock, call.signal))) return undefined;
  const fenced = fencedMs > 0 ? { fenceMs: fence.durationMs } : {};
  const status = desiredStatus(pool, { state, plan, usedByOthers, ...fenced }, dependencies);
  const written = await writer.write(pool, status, call);
  if ('transitions' in written) recordConditionEvents(pool, written.transitions, events);
  return nextSync(written, fencedMs || recheckMs(status.conditions));
}

/** @returns 0 if others cannot change the conditions without waking the pool */
function recheckMs(conditions: readonly DesiredCondition[]): number {
  const isShared = conditions.some(
    ({ type }) => type === PoolCondition.UsedByOthers || type === PoolCondition.NotPermitted,
  );
  return isShared ? CONSENT_RECHECK_MS : 0;
}

async function finishDeletion(
  pool: AddressPool,
  plan: DerivationPlan | undefined,
  { client, log }: PoolsDependencies,
  call: CallOptions,
): Promise<SyncResult> {
  const { name } = pool.metadata;
  const moves = canMove(pool, plan) && plan?.addressSpace !== undefined;
  // another process may have leased addresses that the cache does not show yet
  if (!(await isUnused(pool, client, { ...call, moves })))
    return { retry: `AddressPool ${name} still has leases in the API server` };
  log.info({ pool: name }, 'no address is leased: removing the finalizer of the deleted pool');
  await removeFinalizer(pool, client, call);
  return undefined;
}

function nextSync(written: StatusWriteResult, afterMs: number): SyncResult {
  if ('earlyByMs' in written) return { earlyByMs: Math.min(written.earlyByMs, afterMs || Infinity) };
  return afterMs > 0 ? { requeueAfterMs: afterMs } : undefined;
}

/** The pool is being deleted, and the next pool of its name may serve another address space. */
function canMove(pool: AddressPool, plan: DerivationPlan | undefined): boolean {
  const isDerived = nadNamespaceOf(pool) !== undefined;
  return isDerived && isBeingDeleted(pool) && plan?.addressSpace !== addressSpaceOf(pool);
}

/** The pool is being deleted, and neither leases nor blocks of it are left. */
function isReadyToDelete(
  pool: AddressPool,
  plan: DerivationPlan | undefined,
  { usage, directory, blocks }: PoolsDependencies,
): boolean {
  const { name } = pool.metadata;
  if (plan?.agreement.reason === 'MovePending') return false;
  if (!isBeingDeleted(pool) || countBlockingLeases(usage.of(name, directory.pool(name))) > 0) return false;
  // each block that is deleted triggers another sync
  return (blocks?.countDelayingDeletion(name) ?? 0) === 0;
}

function desiredStatus(
  pool: AddressPool,
  input: Pick<PoolStatusInput, 'state' | 'fenceMs' | 'usedByOthers'> & { plan: DerivationPlan | undefined },
  dependencies: PoolsDependencies,
) {
  const { directory, usage, book, blocks, overlaps, metrics } = dependencies;
  const { plan, ...given } = input;
  const { name, generation } = pool.metadata;
  const compiled = directory.pool(name);
  if (compiled !== undefined) book.setPool(compiled);
  const used = usage.of(name, compiled);
  const space = compiled && book.space(compiled.addressSpace);
  const uses = usesOf(compiled, used, (family) => space?.free(name, family) ?? 0n);
  if (compiled?.publishesMetrics === false) metrics.forget(name);
  else metrics.observed(pool, uses);
  const conditions = conditionsOf({
    ...given,
    usage: used,
    leases: { ofPool: () => book.ofPool(name), get: (lease) => book.get(lease) },
    ...(plan && { agreement: plan.agreement, notPermitted: plan.notPermitted }),
    ...findAdminOverride(pool, directory),
    overlap: overlaps.messageFor(name),
    quarantined: book.quarantined(name),
  });
  return {
    ...countsOf(compiled, used, uses),
    ...(compiled !== undefined && blocks !== undefined && { blocks: blocks.statusOf(compiled) }),
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions,
  };
}

/** Finds the administrator's pool that serves users of a derived pool. */
function findAdminOverride(pool: AddressPool, directory: PoolDirectory): Pick<PoolStatusInput, 'adminOverride'> {
  const { name } = pool.metadata;
  const nadNamespace = nadNamespaceOf(pool);
  if (nadNamespace === undefined) return {};
  const { network, namespaces } = pool.spec;
  const displaced = adminOverrideOf({ name, nadNamespace, namespaces }, directory.poolsOf(network));
  return displaced === undefined ? {} : { adminOverride: displaced };
}

/** Names the derived pools that have addresses of a pool that does not serve their namespaces. Undefined if there are none. */
async function describeUsersWithoutConsent(
  pool: AddressPool,
  directory: Pick<PoolDirectory, 'pool' | 'poolsIn'>,
  clock: Pick<Clock, 'now'>,
): Promise<string | undefined> {
  const { name } = pool.metadata;
  const addressSpace = directory.pool(name)?.addressSpace;
  const others = addressSpace === undefined ? [] : directory.poolsIn(addressSpace);
  const owner = others.find((other) => other.pool.name === name);
  const users = owner === undefined ? [] : await runInSlices(usersWithoutConsent(owner, others), clock);
  if (users.length === 0) return undefined;
  const named = users.map((user) => `${user.pool.name} (namespace ${user.nadNamespace ?? ''})`);
  const nadNamespace = nadNamespaceOf(pool);
  const place =
    nadNamespace === undefined
      ? 'the pool'
      : `"namespaces" in the NAD of network ${pool.spec.network} in namespace ${nadNamespace}`;
  return (
    `This pool does not serve the namespaces of derived AddressPools that have some of its addresses: ${nameFirst(named, MAX_NAMED)}. ` +
    `Add the namespaces to ${place}, change the NADs of those pools, or set --enforce-address-ownership of ipam`
  );
}
