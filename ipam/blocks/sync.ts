import type { Clock } from '../../kube/clock.js';
import type { Logger } from '../../kube/log.js';
import type { SyncResult } from '../../kube/controller-loop.js';
import type { PersistentIPsGate } from '../../cluster/persistent-ips-gate.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import { formatCidr, type Cidr, rangesOf } from '../../addressing/address/cidr.js';
import type { BlockAction } from './action.js';
import { type BlockClient, type BlockOutcome, applyBlockAction } from './apply.js';
import type { BlockBook } from './block-book.js';
import type { BlockMetrics } from './metrics.js';
import { type BlockViews, observeBlocks } from './observe.js';
import type { BlockPolicy, PlanState } from './observed-pool.js';
import { planBlocks } from './plan.js';
import type { LentAddresses } from '../../addressing/allocator/address-space.js';

interface BlockSyncDependencies extends BlockViews {
  blocks: BlockViews['blocks'] & Pick<BlockBook, 'wrote' | 'forget'>;
  client: BlockClient;
  policy: BlockPolicy;
  /** While it is closed, no block is assigned, marked or reclaimed. */
  gate: PersistentIPsGate;
  clock: Pick<Clock, 'now'>;
  metrics: Pick<BlockMetrics, 'written' | 'conflicted'>;
  log: Logger;
}

/** Least time between two syncs of a pool, each of which visits all its nodes: after a sync with writes, and after one without. */
const BUSY_MS = 200;
const CALM_MS = 1_000;
const MAX_PARALLEL_WRITES = 8;
/** Retry after a recheck found that a cache is stale. */
const STALE_CACHE_RETRY_MS = 5_000;

/** Returns the sync for one term of leadership. Its keys are names of pools, including deleted pools that still have blocks. */
export function createBlockSync(
  dependencies: BlockSyncDependencies,
): (pool: string, signal?: AbortSignal) => Promise<SyncResult> {
  /** By pool: the state after its last plan. */
  const states = new Map<string, PlanState>();
  const unusable = new UnusableSlices();
  /** Clock time in ms, by pool. */
  const nextSyncAt = new Map<string, number>();
  const { gate, clock, policy } = dependencies;
  return async (pool, signal) => {
    if (!gate.isOpen()) return undefined;
    const now = clock.now();
    const inMs = (nextSyncAt.get(pool) ?? now) - now;
    if (inMs > 0) return { earlyByMs: inMs };
    const observed = observeBlocks(pool, dependencies, unusable.of(pool, now));
    const { actions, state, requeueAt } = planBlocks(observed, states.get(pool) ?? new Map(), { policy, now });
    states.set(pool, state);
    nextSyncAt.set(pool, now + (actions.length > 0 ? BUSY_MS : CALM_MS));
    const isGone = observed.phase === 'ended' && observed.blocks.length === 0;
    if (isGone) for (const memory of [states, nextSyncAt]) memory.delete(pool);
    const retryMs = await execute(actions, dependencies, unusable, signal);
    if (retryMs !== undefined) return { requeueAfterMs: retryMs };
    return requeueAt === undefined ? undefined : { requeueAfterMs: Math.max(0, requeueAt - clock.now()) };
  };
}

/**
 * Performs the writes of one plan. Each result is stored in the book of blocks, whose change triggers the next sync.
 * @returns the delay until the next sync if no change triggers it
 * @throws {unknown} the first error, after all actions have been tried
 */
async function execute(
  actions: readonly BlockAction[],
  { client, blocks, gate, metrics, log, clock }: BlockSyncDependencies,
  unusable: UnusableSlices,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  let retryMs: number | undefined;
  const errors: unknown[] = [];
  const perform = async (action: BlockAction) => {
    // the gate can close during the other writes
    if (!gate.isOpen()) return;
    try {
      const outcome = await applyBlockAction(action, { client, blocks, call: { signal } });
      const level = outcome === 'done' ? 'info' : outcome === 'unreadable' ? 'warn' : 'debug';
      log[level](describe(action), outcome === 'done' ? action.why : OBJECTIONS[outcome]);
      if (outcome === 'done') {
        metrics.written(action);
        return;
      }
      metrics.conflicted(action.kind);
      if (outcome === 'unreadable' && action.kind === 'lend') unusable.add(action.pool, action.slice, clock.now());
      retryMs = Math.max(retryMs ?? 0, outcome === 'lost' ? BUSY_MS : STALE_CACHE_RETRY_MS);
    } catch (error) {
      errors.push(error);
    }
  };
  await forEachParallel(actions, MAX_PARALLEL_WRITES, perform, signal);
  if (errors.length > 0) throw errors[0];
  return retryMs;
}

const OBJECTIONS: Readonly<Record<Exclude<BlockOutcome, 'done'>, string>> = {
  lost: 'another writer changed the block first',
  'node-there': 'the node exists on the API server: its block is not reclaimed without an answer',
  'pool-there': 'the pool exists on the API server: its block is not deleted',
  unreadable: 'the object with the name of this block is not a valid AddressBlock: the slice is not assigned',
};

function describe(action: BlockAction): object {
  const { kind } = action;
  if (kind === 'lend') return { action: kind, pool: action.pool, block: formatCidr(action.slice), node: action.node };
  const { pool, cidr, node } = action.block;
  const reason = 'reason' in action ? { reason: action.reason } : {};
  return { action: kind, pool, block: formatCidr(cidr), node, ...reason };
}

/** Time until the slice is tried again. */
const RETRY_MS = 300_000;

/** Slices that are not assigned for some time, because an object that is not a valid block has their name. */
export class UnusableSlices {
  readonly #ofPool = new Map<string, { slice: Cidr; until: number }[]>();

  add(pool: string, slice: Cidr, now: number): void {
    const left = (this.#ofPool.get(pool) ?? []).filter(({ until }) => until > now);
    this.#ofPool.set(pool, [...left, { slice, until: now + RETRY_MS }]);
  }

  of(pool: string, now: number): LentAddresses {
    const found = (this.#ofPool.get(pool) ?? []).filter(({ until }) => until > now).map(({ slice }) => slice);
    return { 4: rangesOf(found, 4), 6: rangesOf(found, 6) };
  }
}
