import { type IPAMClaim, claimName, claimOwnerOf, claimVmNetworkOf } from '../../api/ipam-claim.js';
import { joinKey, objectKey, splitKey } from '../../api/meta.js';
import { isForVmNetwork, isOwnedBy, ipamExtensionsClaimName } from '../../api/vm-claims.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { classifyError, isAlreadyExists, mayHaveActed, quotaRejectionOf } from '../../kube/errors.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import type { SyncResult } from '../../kube/controller-loop.js';
import { OWNER_KIND_NOT_SERVED } from '../../cluster/claim-conditions.js';
import type { Action } from './plan/action.js';
import { type ClaimClient, type FailedAction, applyAll, mostUrgent } from './apply.js';
import { type Confirmation, confirm, isStillReleased, needsConfirmation, plan } from './plan/plan.js';
import type { CreatedClaims } from './created-claims.js';
import type { DHCPAfterMigration } from './dhcp-after-migration.js';
import { type LauncherList, readLiveWorkload } from './live-workload.js';
import { type UnreportedChanges, creationEventsOf, lifeEventsOf } from './life-events.js';
import { type Listers, type WorkloadObjects, observeWorkload, readWorkload } from './observe.js';
import { type ObservedWorkload } from './plan/observed-workload.js';
import type { BlockedWorkloads, QuotaWaits, WriteFailures } from './waiting-workloads.js';
import {
  type ReportDependencies,
  reportAction,
  reportEvent,
  reportFailure,
  reportHeld,
  reportLife,
  reportUnknownKubeVirt,
} from './reports.js';

export interface SyncDependencies extends ReportDependencies {
  listers: Listers;
  client: ClaimClient & Pick<Client, 'get'>;
  launchers: Pick<LauncherList, 'of'>;
  blockedWorkloads: BlockedWorkloads;
  createdClaims: CreatedClaims;
  quotaWaits: QuotaWaits;
  unreportedChanges: Pick<UnreportedChanges, 'take'>;
  writeFailures: WriteFailures;
  dhcpAfterMigration: Pick<DHCPAfterMigration, 'take'>;
  /** False while the API server does not serve VMs or VMIs: an object that is not found may exist then. */
  areWorkloadsServed: () => boolean;
  isGateOpen: (namespace: string) => boolean;
  /** False while NADs are not watched, or not listed yet. */
  areNetworksKnown: () => boolean;
  servesPrimaryNetworks: boolean;
  maxClaims: number;
  restoreWaitMs: number;
  clock: Pick<Clock, 'now' | 'wall'>;
}

/** Returns a function that reconciles the claims of one workload, `namespace/name`. It throws the error that has to be retried first. */
export function createSync(deps: SyncDependencies): (key: string, signal?: AbortSignal) => Promise<SyncResult> {
  return async (key, signal) => {
    const target = { key, call: { signal } };
    const { listers, client, blockedWorkloads, unreportedChanges } = deps;
    const observed = observeKey(key, readWorkload(key, listers), deps);
    const unreported = unreportedChanges.take(key, observed);
    reportLife([...creationEventsOf(deps.createdClaims.takeAnswers(observed.claims)), ...unreported.events], deps);
    const { planned, held } = deferUnconfirmable(plan(observed), deps);
    const live = await confirmLive(target, planned, deps);
    const { confirmed, dropped, unread } = await confirmNames(target, live, deps);
    const blockers = confirmed.flatMap((action) => (action.kind === 'refuse' ? (action.blockedBy ?? []) : []));
    blockedWorkloads.set(
      key,
      blockers.map((claim) => joinKey(observed.namespace, claim)),
    );
    reportUnknownKubeVirt(observed, deps);
    reportEvent(deps.dhcpAfterMigration.take(observed), observed, deps);
    for (const action of confirmed) reportAction(action, observed, deps);
    const failed = await applyAll(confirmed, client, {
      call: target.call,
      isStillDue: async (action) => isStillReleased(action.claim, await planLive(target, deps)),
    });
    const failures = [...unread, ...failed];
    const succeeded = confirmed.filter((action) => !failures.some((failure) => failure.action === action));
    recordCreated(succeeded, failures, deps.createdClaims);
    reportLife(lifeEventsOf(succeeded), deps);
    const isFirstForQuota = settleFailures(key, failures, observed, deps);
    if (held.length > 0) return { retry: OWNER_KIND_NOT_SERVED };
    if (dropped.length > 0) return { retry: 'the caches lag behind the API server' };
    if (blockers.length > 0) return { retry: `blocked by IPAMClaim ${blockers.join(', ')}` };
    if (isFirstForQuota) return { retry: 'a quota has no room for an IPAMClaim' };
    return nextSync(confirmed, unreported.againAfterMs);
  };
}

/** A successor that exists already may be the released claim, which other finalizers keep. */
function recordCreated(
  succeeded: readonly Action[],
  failures: readonly FailedAction[],
  createdClaims: CreatedClaims,
): void {
  for (const action of succeeded) {
    if (action.kind === 'create') createdClaims.created(action.claim);
    if (action.kind === 'release' && action.successor) createdClaims.created(action.successor, action.claim);
  }
  for (const { action, error } of failures) {
    if (action.kind === 'create' && isAlreadyExists(error)) createdClaims.found(action.claim);
    if (!mayHaveActed(error)) continue;
    if (action.kind === 'create') createdClaims.unanswered(action.claim);
    if (action.kind === 'release' && action.successor) createdClaims.unanswered(action.successor, action.claim);
  }
}

function nextSync(actions: readonly Action[], ...others: (number | undefined)[]): SyncResult {
  const waits = actions.flatMap((action) => (action.kind === 'wait' ? (action.requeueAfterMs ?? []) : []));
  const times = [...waits, ...others.filter((time) => time !== undefined)];
  return times.length === 0 ? undefined : { requeueAfterMs: Math.min(...times) };
}

/**
 * Reports failures, and throws the one that has to be retried first. A claim for which a quota has no room is not an error: it waits.
 * @returns true if the workload is the one of its namespace that tries again
 */
function settleFailures(
  key: string,
  failures: readonly FailedAction[],
  observed: ObservedWorkload,
  deps: SyncDependencies,
): boolean {
  const { quotaWaits, writeFailures } = deps;
  const others = failures.filter(({ error }) => quotaRejectionOf(error) === undefined);
  let failingForMs = 0;
  if (failures.some(({ error }) => classifyError(error) === 'transient')) failingForMs = writeFailures.failed(key);
  else writeFailures.ended(key);
  for (const failure of failures) reportFailure(failure, failingForMs, observed, deps);
  const waitsForQuota = others.length < failures.length;
  const isFirst = waitsForQuota && quotaWaits.join(key);
  if (!waitsForQuota) quotaWaits.leave(key);
  const next = mostUrgent(others);
  if (next !== undefined) throw next.error;
  return isFirst;
}

/** The workload of a sync. `call` ends its requests if the process stops. */
interface SyncTarget {
  key: string;
  call: CallOptions;
}

/** While VMs are not served, no read can prove that an owner is gone: its claims stay, and an event says why. */
function deferUnconfirmable(actions: readonly Action[], deps: SyncDependencies): { planned: Action[]; held: Action[] } {
  if (deps.areWorkloadsServed()) return { planned: [...actions], held: [] };
  const held = actions.filter(needsConfirmation);
  for (const action of held) reportHeld(action, deps);
  return { planned: actions.filter((action) => !held.includes(action)), held };
}

/** Caches justify creating a claim, but not releasing one. */
async function confirmLive(target: SyncTarget, planned: Action[], deps: SyncDependencies): Promise<Confirmation> {
  if (!planned.some(needsConfirmation)) return { confirmed: planned, dropped: [] };
  const result = confirm(planned, await planLive(target, deps));
  for (const { kind, reason } of result.dropped) {
    deps.log.info({ workload: target.key, action: kind }, `not confirmed by a live read: ${reason}`);
  }
  return result;
}

async function planLive({ key, call }: SyncTarget, deps: SyncDependencies): Promise<Action[]> {
  const workload = await readLiveWorkload(key, deps.client, deps.launchers, call);
  return plan(observeKey(key, workload, deps));
}

function observeKey(key: string, workload: WorkloadObjects, deps: SyncDependencies): ObservedWorkload {
  const isGateOpen = deps.isGateOpen(splitKey(key).namespace);
  const now = deps.clock.wall();
  const times = { now, earliestNow: Math.min(now, deps.clock.now()) };
  const settings = { ...deps, ...times, isGateOpen, areNetworksKnown: deps.areNetworksKnown() };
  return observeWorkload(key, workload, deps.listers, settings);
}

/**
 * Checks the names of new claims, also against the API server. A second name is used only if a claim still holds the first one, because the webhook lets
 * pods refer to the first free name. No claim is created if kubevirt/ipam-extensions created one under another name.
 */
async function confirmNames(
  { key, call }: SyncTarget,
  { confirmed, dropped }: Confirmation,
  { client, createdClaims, log }: SyncDependencies,
): Promise<Confirmation & { unread: FailedAction[] }> {
  const rejected = new Set<Action>();
  const unread: FailedAction[] = [];
  for (const action of confirmed) {
    if (action.kind !== 'create') continue;
    try {
      const why =
        (createdClaims.isExpected(action.claim) ? 'it was created a moment ago' : undefined) ??
        (await findCreated(action.claim, createdClaims, { client, call })) ??
        (await findAdoptable(key, action.claim, { client, call })) ??
        (await checkPrimaryName(action, { client, call }));
      if (why === undefined) continue;
      rejected.add(action);
      log.info({ workload: key, claim: objectKey(action.claim) }, `not created: ${why}`);
    } catch (error) {
      unread.push({ action, error });
    }
  }
  const isDropped = (action: Action) => rejected.has(action) || unread.some((failure) => failure.action === action);
  const rest = confirmed.filter((action) => !isDropped(action));
  return { confirmed: rest, dropped: [...dropped, ...rejected], unread };
}

interface LiveClaimReader {
  client: Pick<SyncDependencies['client'], 'find'>;
  call: CallOptions;
}

/** Looks for the claim that a request without an answer may have created. To create it again would count twice against a quota. */
async function findCreated(
  claim: IPAMClaim,
  createdClaims: CreatedClaims,
  { client, call }: LiveClaimReader,
): Promise<string | undefined> {
  const attempt = createdClaims.unansweredFor(claim);
  const { namespace, name = '' } = attempt?.metadata ?? {};
  const found = attempt && (await client.find(IPAM_CLAIMS, { namespace, name }, call));
  if (found === undefined || !createdClaims.isAnswer(found)) return undefined;
  createdClaims.found(found);
  return 'a request without an answer created it';
}

async function checkPrimaryName(
  { firstNameHolder }: Extract<Action, { kind: 'create' }>,
  { client, call }: LiveClaimReader,
): Promise<string | undefined> {
  if (firstNameHolder === undefined) return undefined;
  const { namespace, name, uid } = firstNameHolder.metadata;
  const first = await client.find(IPAM_CLAIMS, { namespace, name }, call);
  return first?.metadata.uid === uid ? undefined : `the name ${name} is free now`;
}

/** Needs one read for each claim that kubevirt/ipam-extensions would have named differently. */
async function findAdoptable(
  key: string,
  claim: IPAMClaim,
  { client, call }: LiveClaimReader,
): Promise<string | undefined> {
  const { namespace, name: vm } = splitKey(key);
  const vmNetwork = claimVmNetworkOf(claim) ?? '';
  const owner = claimOwnerOf(claim);
  const name = ipamExtensionsClaimName(vm, vmNetwork);
  if (owner === undefined || name === claimName(vm, vmNetwork)) return undefined;
  const found = await client.find(IPAM_CLAIMS, { namespace, name }, call);
  const isAdoptable =
    found !== undefined &&
    isOwnedBy(found, owner) &&
    found.spec.network === claim.spec.network &&
    isForVmNetwork(found, vm, vmNetwork);
  return isAdoptable ? `IPAMClaim ${name} of kubevirt/ipam-extensions is for the same interface` : undefined;
}
