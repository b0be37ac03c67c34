import { PoolCondition } from '../../api/conditions.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { Condition } from '../../api/meta.js';
import { EventReason } from '../../api/event-reasons.js';
import { poolEventSubject } from '../../cluster/event-subjects.js';
import type { Clock } from '../../kube/clock.js';
import { type EventRecorder, LASTING_EVENT_MS } from '../../kube/events.js';
import { setMostRecent } from '../../kube/informers/cache.js';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import { apiVersionOf } from '../../kube/resource.js';
import type { NadEvent } from './requested-pools.js';

const MAX_REMEMBERED_EVENTS = 4096;

type Events = Pick<EventRecorder, 'event'>;

/** Records events on NADs, which have no status that would keep them: each once, and again before the API server deletes it. */
export class NadEvents {
  readonly #events: Events;
  readonly #clock: Pick<Clock, 'now'>;
  /** By UID and reason. */
  readonly #recorded = new Map<string, { readonly text: string; readonly at: number }>();

  constructor(events: Events, clock: Pick<Clock, 'now'>) {
    this.#events = events;
    this.#clock = clock;
  }

  record({ nad, reason, message }: NadEvent): void {
    const { name, namespace, uid = '', resourceVersion } = nad.metadata;
    const key = `${uid}\n${reason}`;
    const text = `${resourceVersion ?? ''}\n${message}`;
    const at = this.#clock.now();
    const known = this.#recorded.get(key);
    if (known?.text === text && at - known.at < LASTING_EVENT_MS) return;
    setMostRecent(this.#recorded, key, { text, at }, MAX_REMEMBERED_EVENTS);
    const { kind } = NETWORK_ATTACHMENT_DEFINITIONS;
    const subject = {
      apiVersion: apiVersionOf(NETWORK_ATTACHMENT_DEFINITIONS),
      kind,
      metadata: { name, uid, ...(namespace !== undefined && { namespace }) },
    };
    this.#events.event(subject, 'Warning', reason, message);
  }
}

/** `Draining` has no event: an administrator wants it. */
const EVENT_OF_CONDITION: Readonly<Record<string, EventReason>> = {
  [PoolCondition.Conflict]: EventReason.PoolConflict,
  [PoolCondition.NetworksAgree]: EventReason.NetworksDisagree,
  [PoolCondition.NotPermitted]: EventReason.NetworkNotPermitted,
  [PoolCondition.DeletionBlocked]: EventReason.PoolInUse,
  [PoolCondition.OverlapsOnWire]: EventReason.PoolOverlap,
  [PoolCondition.UsedByOthers]: EventReason.PoolUsedByOthers,
  [PoolCondition.ProbingStopped]: EventReason.ProbingStopped,
};

/** Records events on a pool for conditions that have become bad. */
export function recordConditionEvents({ metadata }: AddressPool, turned: readonly Condition[], events: Events): void {
  const subject = poolEventSubject(metadata);
  for (const { type, status, reason, message } of turned) {
    if (type === PoolCondition.Ready) {
      const isBad = reason === 'InvalidSpec' || reason === 'LeasedOutside';
      if (isBad) events.event(subject, 'Warning', EventReason.PoolInvalid, message);
    } else if (status === (type === PoolCondition.NetworksAgree ? 'False' : 'True') && reason !== 'NetworkGone') {
      const event = EVENT_OF_CONDITION[type];
      if (event !== undefined) events.event(subject, 'Warning', event, message);
    }
  }
}
