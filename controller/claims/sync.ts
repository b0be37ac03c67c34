import { type IPAMClaim, claimName, claimOwnerOf, claimVmNetworkOf } from '../../api/ipam-claim.js';
import { joinKey, objectKey, splitKey } from '../../api/meta.js';
import {
  EventReason,
  KUBEVIRT_API_VERSION,
  VIRTUAL_MACHINE_INSTANCE_KIND,
  VIRTUAL_MACHINE_KIND,
} from '../../api/names.js';
import { isForVmNetwork, isOwnedBy, ipamExtensionsClaimName } from '../../api/vm-claims.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { classifyError, messageOf } from '../../kube/errors.js';
import type { EventRecorder } from '../../kube/events.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import type { Logger } from '../../kube/log.js';
import { claimEventSubject } from '../../cluster/claim-event-subjects.js';
import type { KubeVirtControllerSource } from '../../cluster/kubevirt-controller.js';
import type { SyncResult } from '../../kube/controller-loop.js';
import { OWNER_KIND_NOT_SERVED } from '../../cluster/unserved-owner.js';
import type { ControllerMetrics } from './metrics.js';
import type { Action } from './action.js';
import type { WorkloadEvent } from './workload-event.js';
import { type ClaimClient, type FailedAction, applyAll, rejectionOf, mostUrgent } from './apply.js';
import { type Confirmation, confirm, isStillReleased, needsConfirmation } from './confirm.js';
import type { LauncherList } from './launcher-list.js';
import { readLiveWorkload } from './live-workload.js';
import { type Listers, type WorkloadObjects, observeWorkload, readWorkload } from './observe.js';
import { type ObservedWorkload } from './observed-workload.js';
import { plan } from './plan.js';
import type { BlockedWorkloads } from './blocked-workloads.js';

export interface SyncDependencies {
  listers: Listers;
  client: ClaimClient & Pick<Client, 'get'>;
  launchers: Pick<LauncherList, 'of'>;
  blockedWorkloads: BlockedWorkloads;
  /** False while the API server does not serve VMs or VMIs: an object that is not found may exist then. */
  areWorkloadsServed: () => boolean;
  isGateOpen: (namespace: string) => boolean;
  servesPrimaryNetworks: boolean;
  maxClaims: number;
  restoreWaitMs: number;
  clock: Pick<Clock, 'now'>;
  kubevirt: KubeVirtControllerSource;
  events: Pick<EventRecorder, 'event'>;
  metrics: ControllerMetrics;
  log: Logger;
}

/** Returns a function that reconciles the claims of one workload, `namespace/name`. It throws the error that has to be retried first. */
export function createSync(deps: SyncDependencies): (key: string, signal?: AbortSignal) => Promise<SyncResult> {
  return async (key, signal) => {
    const target = { key, call: signal === undefined ? {} : { signal } };
    const { listers, client, blockedWorkloads } = deps;
    const observed = observeKey(key, readWorkload(key, listers), deps);
    const { planned, held } = deferUnconfirmable(plan(observed), deps);
    const { confirmed, dropped } = await confirmNames(target, await confirmLive(target, planned, deps), deps);
    const blockers = confirmed.flatMap((action) => (action.kind === 'refuse' ? (action.blockedBy ?? []) : []));
    blockedWorkloads.set(
      key,
      blockers.map((claim) => joinKey(observed.namespace, claim)),
    );
    reportUnknownKubeVirt(observed, deps);
    for (const action of confirmed) reportAction(action, observed, deps);
    const failures = await applyAll(confirmed, client, {
      call: target.call,
      isStillDue: async (action) => isStillReleased(action.claim, await planLive(target, deps)),
    });
    for (const failure of failures) reportFailure(failure, observed, deps);
    const next = mostUrgent(failures);
    if (next !== undefined) throw next.error;
    if (held.length > 0) return { retry: OWNER_KIND_NOT_SERVED };
    if (dropped.length > 0) return { retry: 'the caches lag behind the API server' };
    return blockers.length > 0 ? { retry: `blocked by IPAMClaim ${blockers.join(', ')}` } : nextSync(confirmed);
  };
}

function nextSync(actions: readonly Action[]): SyncResult {
  const times = actions.flatMap((action) => (action.kind === 'wait' ? (action.requeueAfterMs ?? []) : []));
  return times.length === 0 ? undefined : { requeueAfterMs: Math.min(...times) };
}

/** The workload of a sync. `call` ends its requests if the process stops. */
interface SyncTarget {
  key: string;
  call: CallOptions;
}

/** While VMs are not served, no read can prove that an owner is gone: its claims stay, and an event says why. */
function deferUnconfirmable(
  actions: readonly Action[],
  { areWorkloadsServed, events, metrics, log }: SyncDependencies,
): { planned: Action[]; held: Action[] } {
  if (areWorkloadsServed()) return { planned: [...actions], held: [] };
  const held = actions.filter(needsConfirmation);
  for (const action of held) {
    if (action.kind !== 'release') continue;
    log.warn({ claim: objectKey(action.claim) }, OWNER_KIND_NOT_SERVED);
    metrics.notified(EventReason.OwnerKindNotServed);
    events.event(claimEventSubject(action.claim), 'Warning', EventReason.OwnerKindNotServed, OWNER_KIND_NOT_SERVED);
  }
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
  return observeWorkload(key, workload, deps.listers, { ...deps, isGateOpen, now: deps.clock.now() });
}

/**
 * Checks the names of new claims against the API server. A second name is used only if a claim still holds the first one, because the webhook lets
 * pods refer to the first free name. No claim is created if kubevirt/ipam-extensions created one under another name.
 */
async function confirmNames(
  { key, call }: SyncTarget,
  { confirmed, dropped }: Confirmation,
  { client, log }: SyncDependencies,
): Promise<Confirmation> {
  const rejected = new Set<Action>();
  for (const action of confirmed) {
    if (action.kind !== 'create') continue;
    const why =
      (await findAdoptable(key, action.claim, { client, call })) ?? (await checkPrimaryName(action, { client, call }));
    if (why === undefined) continue;
    rejected.add(action);
    log.info({ workload: key, claim: objectKey(action.claim) }, `not created: ${why}`);
  }
  return { confirmed: confirmed.filter((action) => !rejected.has(action)), dropped: [...dropped, ...rejected] };
}

interface LiveClaimReader {
  client: Pick<SyncDependencies['client'], 'find'>;
  call: CallOptions;
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

function reportAction(action: Action, observed: ObservedWorkload, deps: SyncDependencies): void {
  const { log, metrics } = deps;
  const { kind, reason } = action;
  const workload = joinKey(observed.namespace, observed.name);
  const claim = 'claim' in action ? objectKey(action.claim) : undefined;
  const level = kind === 'keep' || kind === 'wait' ? 'debug' : kind === 'refuse' ? 'warn' : 'info';
  log[level]({ workload, action: kind, ...(claim !== undefined && { claim }) }, reason);
  metrics.decided(kind);
  const event = 'event' in action ? action.event : undefined;
  if (event !== undefined) recordEvent(event, observed, deps, kind === 'wait' ? 'Normal' : 'Warning');
}

function recordEvent(
  { reason, message, regarding }: WorkloadEvent,
  observed: ObservedWorkload,
  { metrics, events }: Pick<SyncDependencies, 'metrics' | 'events'>,
  type: 'Normal' | 'Warning' = 'Warning',
): void {
  metrics.notified(reason);
  events.event(eventSubjectOf(regarding, observed), type, reason, message);
}

/** Launchers of this workload are admitted without the addresses of its claims. */
function reportUnknownKubeVirt(observed: ObservedWorkload, deps: SyncDependencies): void {
  const { problem } = deps.kubevirt.controller();
  if (problem === undefined || observed.claims.length === 0 || (observed.vm ?? observed.vmi) === undefined) return;
  const message = `Launcher pods get no addresses of their IPAMClaims: ${problem}`;
  const regarding = observed.vm === undefined ? 'vmi' : 'vm';
  recordEvent({ reason: EventReason.KubeVirtNamespaceUnknown, message, regarding }, observed, deps);
}

function reportFailure(failure: FailedAction, observed: ObservedWorkload, deps: SyncDependencies): void {
  const { log, metrics } = deps;
  const { action, error } = failure;
  const kind = classifyError(error);
  const workload = joinKey(observed.namespace, observed.name);
  log[kind === 'stale' ? 'debug' : 'warn'](
    { workload, action: action.kind, err: error },
    `failed: ${messageOf(error)}`,
  );
  metrics.failed(action.kind, kind);
  const message = rejectionOf(failure);
  const regarding = observed.vm?.metadata.uid === undefined ? 'vmi' : 'vm';
  if (message !== undefined) {
    recordEvent({ reason: EventReason.ClaimRefused, message, regarding }, observed, deps);
  }
}

function eventSubjectOf(regarding: WorkloadEvent['regarding'], { namespace, name, vm, vmi }: ObservedWorkload) {
  if (typeof regarding === 'object') return claimEventSubject(regarding);
  const isVm = regarding === 'vm';
  const uid = (isVm ? vm : vmi)?.metadata.uid;
  return {
    apiVersion: KUBEVIRT_API_VERSION,
    kind: isVm ? VIRTUAL_MACHINE_KIND : VIRTUAL_MACHINE_INSTANCE_KIND,
    metadata: { namespace, name, ...(uid !== undefined && { uid }) },
  };
}
