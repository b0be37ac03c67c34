import type { EventReason } from '../../api/event-reasons.js';
import type { ErrorClass } from '../../kube/errors.js';
import type { Metrics } from '../../process/metrics.js';
import type { ActionKind } from './plan/action.js';

/** Every metric of the controller. */
export interface ControllerMetrics {
  decided(action: ActionKind): void;
  failed(action: ActionKind, error: ErrorClass): void;
  notified(reason: EventReason): void;
}

export function createControllerMetrics(metrics: Pick<Metrics, 'counter'>): ControllerMetrics {
  const actions = metrics.counter('claim_actions_total', 'Actions planned for claims, by kind.', ['action']);
  const failures = metrics.counter(
    'claim_action_failures_total',
    'Actions for claims that failed, by kind and class of error.',
    ['action', 'class'],
  );
  const notices = metrics.counter('claim_notices_total', 'Events recorded for users, by reason.', ['reason']);
  return {
    decided: (action) => actions.inc({ action }),
    failed: (action, error) => failures.inc({ action, class: error }),
    notified: (reason) => notices.inc({ reason }),
  };
}
