import { joinKey, objectKey } from '../../api/meta.js';
import { EventReason } from '../../api/event-reasons.js';
import { KUBEVIRT_API_VERSION, VIRTUAL_MACHINE_INSTANCE_KIND, VIRTUAL_MACHINE_KIND } from '../../api/names.js';
import { claimEventSubject, claimEventSubjects } from '../../cluster/event-subjects.js';
import type { KubeVirtControllerSource } from '../../cluster/kubevirt-controller.js';
import { OWNER_KIND_NOT_SERVED } from '../../cluster/claim-conditions.js';
import { type ErrorClass, classifyError, messageOf } from '../../kube/errors.js';
import type { EventRecorder, EventSubject } from '../../kube/events.js';
import type { Logger } from '../../kube/log.js';
import type { Action, ActionKind, WorkloadEvent } from './plan/action.js';
import { type FailedAction, failureEventOf } from './apply.js';
import type { LifeEvent } from './life-events.js';
import type { ObservedWorkload } from './plan/observed-workload.js';
import type { Metrics } from '../../process/metrics.js';

export type ControllerMetrics = ReturnType<typeof createControllerMetrics>;

/** Creates every metric of the controller. */
export function createControllerMetrics(metrics: Pick<Metrics, 'counter'>) {
  const actions = metrics.counter('claim_actions_total', 'Actions planned for claims, by kind.', ['action']);
  const failures = metrics.counter(
    'claim_action_failures_total',
    'Actions for claims that failed, by kind and class of error.',
    ['action', 'class'],
  );
  const notices = metrics.counter('claim_notices_total', 'Events recorded for users, by reason.', ['reason']);
  return {
    decided: (action: ActionKind) => actions.inc({ action }),
    failed: (action: ActionKind, error: ErrorClass) => failures.inc({ action, class: error }),
    notified: (reason: EventReason) => notices.inc({ reason }),
  };
}

/** Where the controller says what it decides and does: log, metrics, and events for users. */
export interface ReportDependencies {
  kubevirt: KubeVirtControllerSource;
  events: Pick<EventRecorder, 'event'>;
  metrics: ControllerMetrics;
  log: Logger;
}

export function reportAction(action: Action, observed: ObservedWorkload, deps: ReportDependencies): void {
  const { log, metrics } = deps;
  const { kind, reason } = action;
  const workload = joinKey(observed.namespace, observed.name);
  const claim = 'claim' in action ? objectKey(action.claim) : undefined;
  const level = kind === 'keep' || kind === 'wait' ? 'debug' : kind === 'refuse' ? 'warn' : 'info';
  log[level]({ workload, action: kind, ...(claim !== undefined && { claim }) }, reason);
  metrics.decided(kind);
  const event = 'event' in action ? action.event : undefined;
  reportEvent(event, observed, deps, kind === 'wait' ? 'Normal' : 'Warning');
}

/** A claim stays because no read can prove that its owner is gone. */
export function reportHeld(action: Action, { events, metrics, log }: ReportDependencies): void {
  if (action.kind !== 'release') return;
  log.warn({ claim: objectKey(action.claim) }, OWNER_KIND_NOT_SERVED);
  metrics.notified(EventReason.OwnerKindNotServed);
  events.event(claimEventSubject(action.claim), 'Warning', EventReason.OwnerKindNotServed, OWNER_KIND_NOT_SERVED);
}

/** Launchers of this workload are admitted without the addresses of its claims. */
export function reportUnknownKubeVirt(observed: ObservedWorkload, deps: ReportDependencies): void {
  const { problem } = deps.kubevirt.controller();
  if (problem === undefined || observed.claims.length === 0 || (observed.vm ?? observed.vmi) === undefined) return;
  const message = `Launcher pods get no addresses of their IPAMClaims: ${problem}`;
  const regarding = observed.vm === undefined ? 'vmi' : 'vm';
  reportEvent({ reason: EventReason.KubeVirtNamespaceUnknown, message, regarding }, observed, deps);
}

/** @param failingForMs how long writes for the workload have failed */
export function reportFailure(
  failure: FailedAction,
  failingForMs: number,
  observed: ObservedWorkload,
  deps: ReportDependencies,
): void {
  const { log, metrics } = deps;
  const { action, error } = failure;
  const kind = classifyError(error);
  const workload = joinKey(observed.namespace, observed.name);
  log[kind === 'stale' ? 'debug' : 'warn'](
    { workload, action: action.kind, err: error },
    `failed: ${messageOf(error)}`,
  );
  metrics.failed(action.kind, kind);
  const event = failureEventOf(failure, failingForMs);
  const regarding = observed.vm?.metadata.uid === undefined ? 'vmi' : 'vm';
  reportEvent(event && { ...event, regarding }, observed, deps);
}

export function reportLife(
  found: readonly LifeEvent[],
  { events, metrics }: Pick<ReportDependencies, 'events' | 'metrics'>,
): void {
  for (const { subject, reason, message } of found) {
    metrics.notified(reason);
    events.event(subject, 'Normal', reason, message);
  }
}

export function reportEvent(
  event: WorkloadEvent | undefined,
  observed: ObservedWorkload,
  { metrics, events }: Pick<ReportDependencies, 'metrics' | 'events'>,
  type: 'Normal' | 'Warning' = 'Warning',
): void {
  if (event === undefined) return;
  const { reason, message, regarding } = event;
  metrics.notified(reason);
  for (const subject of eventSubjectsOf(regarding, observed)) events.event(subject, type, reason, message);
}

function eventSubjectsOf(
  regarding: WorkloadEvent['regarding'],
  { namespace, name, vm, vmi }: ObservedWorkload,
): EventSubject[] {
  if (typeof regarding === 'object') {
    return 'claimAndOwner' in regarding ? claimEventSubjects(regarding.claimAndOwner) : [claimEventSubject(regarding)];
  }
  const isVm = regarding === 'vm';
  const uid = (isVm ? vm : vmi)?.metadata.uid;
  const kind = isVm ? VIRTUAL_MACHINE_KIND : VIRTUAL_MACHINE_INSTANCE_KIND;
  return [{ apiVersion: KUBEVIRT_API_VERSION, kind, metadata: { namespace, name, ...(uid !== undefined && { uid }) } }];
}
