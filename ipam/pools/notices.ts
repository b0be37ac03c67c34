import { type AddressPool, PoolCondition } from '../../api/address-pool.js';
import type { Condition } from '../../api/meta.js';
import { ADDRESS_POOL_KIND, EventReason, IPAM_API_VERSION } from '../../api/names.js';
import type { EventRecorder } from '../../kube/events.js';
import { rememberRecent } from '../../kube/recent-entries.js';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import { apiVersionOf } from '../../kube/resource.js';
import type { NadNotice } from './wishes.js';

const REMEMBERED = 4096;

type Events = Pick<EventRecorder, 'event'>;

/** Events on NADs. A NAD has no status that would say what its owner was told already. */
export class Notices {
  readonly #events: Events;
  /** By UID and reason. */
  readonly #told = new Map<string, string>();

  constructor(events: Events) {
    this.#events = events;
  }

  tell({ nad, reason, message }: NadNotice): void {
    const { name, namespace, uid = '', resourceVersion } = nad.metadata;
    const key = `${uid}\n${reason}`;
    const text = `${resourceVersion ?? ''}\n${message}`;
    if (this.#told.get(key) === text) return;
    rememberRecent(this.#told, key, text, REMEMBERED);
    const { kind } = NETWORK_ATTACHMENT_DEFINITIONS;
    const subject = {
      apiVersion: apiVersionOf(NETWORK_ATTACHMENT_DEFINITIONS),
      kind,
      metadata: { name, uid, ...(namespace !== undefined && { namespace }) },
    };
    this.#events.event(subject, 'Warning', reason, message);
  }
}

const REASONS: Readonly<Record<string, EventReason>> = {
  [PoolCondition.Conflict]: EventReason.PoolConflict,
  [PoolCondition.NetworksAgree]: EventReason.NetworksDisagree,
  [PoolCondition.NotPermitted]: EventReason.NetworkNotPermitted,
  [PoolCondition.DeletionBlocked]: EventReason.PoolInUse,
  [PoolCondition.OverlapsOnWire]: EventReason.PoolOverlap,
};

/** Events on a pool, for conditions that have turned bad. */
export function tellOfConditions({ metadata }: AddressPool, turned: readonly Condition[], events: Events): void {
  const { name, uid } = metadata;
  const subject = { apiVersion: IPAM_API_VERSION, kind: ADDRESS_POOL_KIND, metadata: { name, ...(uid && { uid }) } };
  for (const { type, status, reason, message } of turned) {
    if (type === PoolCondition.Ready) {
      const isBad = reason === 'InvalidSpec' || reason === 'LeasedOutside';
      if (isBad) events.event(subject, 'Warning', EventReason.PoolInvalid, message);
    } else if (status === (type === PoolCondition.NetworksAgree ? 'False' : 'True') && reason !== 'NetworkGone') {
      events.event(subject, 'Warning', REASONS[type] ?? EventReason.PoolInvalid, message);
    }
  }
}
