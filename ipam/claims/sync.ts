import { splitKey } from '../../api/meta.js';
import type { SyncResult } from '../../kube/controller-loop.js';
import type { PersistentIPsGate } from '../../cluster/persistent-ips-gate.js';
import type { LeaseBook } from '../leases/lease-book.js';
import { type ApplyContext, type ApplyDependencies, applyStep } from './apply.js';
import {
  type ClaimObservation,
  type ObserveContext,
  PoolGracePeriods,
  leasesOfEarlierClaims,
  observeClaim,
} from './observe.js';
import { vmiRecheckDelayMs } from './owner-pod.js';
import { plan, planEarlierClaims } from './plan.js';
import { Probes } from './probes.js';
import type { RestoreHolds } from './shown/restore-holds.js';
import type { ClaimStep, ClaimStepOf } from './step.js';
import { ClaimSyncState, WrittenClaims } from './sync-state.js';
import type { UnreadableAddresses } from './claim-leases.js';
import { VmiOwners, type VmiOwnersDependencies } from './running/vmi-owners.js';
import type { ClaimWaitList } from './wait-list.js';

interface ClaimSyncDependencies
  extends ApplyDependencies, Pick<ObserveContext, 'directory' | 'pods'>, Pick<VmiOwnersDependencies, 'kubevirt'> {
  book: ApplyDependencies['book'] & Pick<LeaseBook, 'quarantined' | 'get' | 'all'>;
  waitList: ClaimWaitList;
  restoreHolds: Pick<RestoreHolds, 'prepare' | 'holdAgainst' | 'onSynced'>;
  /** Outlives the term, as the lease book does. */
  unreadable: Pick<UnreadableAddresses, 'add' | 'retryDue'>;
  /** While closed, nothing is allocated or released, and no status is written. */
  gate: PersistentIPsGate;
}

/** More steps than a sync needs, even if it loses a few addresses to other writers. */
const MAX_STEPS = 24;
const MIN_RETRY_MS = 50;
/** No watch shows the end of an owner pod that the caches do not have. */
const RECHECK_OWNER_MS = 15_000;

/** Creates the reconciler of claims. It allocates the addresses of one claim, by `namespace/name`, and releases those of deleted claims of that name. */
export function createClaimSync(
  dependencies: ClaimSyncDependencies,
): (key: string, signal?: AbortSignal) => Promise<SyncResult> {
  const { gate, claims, waitList, unreadable } = dependencies;
  // what one sync leaves for the next ones
  const memory = {
    written: new WrittenClaims(),
    gracePeriods: new PoolGracePeriods(),
    vmis: new VmiOwners(dependencies),
    probes: new Probes(dependencies),
  };
  return async (key, signal) => {
    if (!gate.isOpen()) {
      waitList.remove(key);
      return undefined;
    }
    unreadable.retryDue();
    const state = new ClaimSyncState(memory.written.newest(key, claims.get(key)));
    const call = { tenant: splitKey(key).namespace, signal };
    return syncClaim({ ...dependencies, ...memory, key, state, call });
  };
}

type SyncContext = ClaimSyncDependencies & ObserveContext & ApplyContext;

/** Observes the claim, plans a step and carries it out, until nothing is left to do. */
async function syncClaim(context: SyncContext): Promise<SyncResult> {
  const { key, gate, restoreHolds, metrics, log } = context;
  for (let steps = 0; steps < MAX_STEPS; steps++) {
    const haveHolds = await restoreHolds.prepare();
    if (!haveHolds || !gate.isOpen()) return undefined;
    const observed = observeClaim(context);
    const step = nextStep(observed, context);
    if (step.kind === 'none' || step.kind === 'await-probe') return settle(step, observed, context);
    metrics.countStep(step.kind);
    log.debug({ claim: key, step: step.kind }, step.reason);
    await applyStep(step, observed, context);
  }
  return { retry: 'the claim changes faster than it can be synced' };
}

/** Leases of earlier claims come first, even if the claim is gone. */
function nextStep(observed: ClaimObservation | undefined, { key, state, book }: SyncContext): ClaimStep {
  const release = planEarlierClaims(leasesOfEarlierClaims(key, state.claim, book), state.gone);
  if (release !== undefined) return release;
  if (observed === undefined) return { kind: 'none', reason: 'the claim is gone' };
  state.onLeasesObserved(observed.held);
  return plan(observed, state.findings);
}

/** Ends the sync. If addresses are missing or probed, the result says when to try again. */
function settle(
  step: ClaimStepOf<'none' | 'await-probe'>,
  observed: ClaimObservation | undefined,
  context: SyncContext,
): SyncResult {
  const { key, state, gracePeriods, restoreHolds, clock, waitList } = context;
  if (state.claim !== undefined) restoreHolds.onSynced(state.claim);
  const { need, move, drain = {} } = state.findings;
  const refusals = [need, move, ...Object.values(drain)].filter((refusal) => refusal !== undefined);
  if (refusals.length === 0) {
    waitList.remove(key);
    if (step.kind === 'await-probe') return { requeueAfterMs: Math.max(step.until - clock.now(), MIN_RETRY_MS) };
    const recheckMs = state.hiddenOwner === undefined ? 0 : RECHECK_OWNER_MS;
    const ms = gracePeriods.remainingMs(key, clock.now()) || vmiRecheckDelayMs(observed) || recheckMs;
    return ms > 0 ? { requeueAfterMs: ms } : undefined;
  }
  const retryAt = Math.min(...refusals.map((refusal) => refusal.retryAt ?? Infinity));
  const ms = Math.max(retryAt - clock.now(), MIN_RETRY_MS);
  return { requeueAfterMs: Math.min(ms, waitList.recheckMs(key)) };
}
