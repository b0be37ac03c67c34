import { objectKey } from '../../api/meta.js';
import type { ReasonOf } from '../../api/conditions.js';
import { EventReason } from '../../api/event-reasons.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { MAX_NAMED } from './named-leases.js';
import type { NadEvent, RequestedPool } from './requested-pools.js';

/** Whether the derived pool and its NADs agree: a condition of the pool. */
export interface NadAgreement {
  agree: boolean;
  reason: ReasonOf<'NetworksAgree'>;
  message: string;
}

/** Whether the NADs of a network agree with the oldest one, which defines the pool. */
export function agreementOf(
  oldest: RequestedPool,
  disagreeing: readonly RequestedPool[],
  invalid: readonly ParsedNad[],
): NadAgreement {
  const definedBy = `NAD ${objectKey(oldest.nad)} defines the pool`;
  const keys = (nads: readonly ParsedNad[]) => {
    const more = nads.length > MAX_NAMED ? ` and ${nads.length - MAX_NAMED} more` : '';
    return `${nads.slice(0, MAX_NAMED).map(objectKey).join(', ')}${more}`;
  };
  if (disagreeing.length > 0) {
    const message = `${definedBy}; other NADs request other addresses: ${keys(disagreeing.map(({ nad }) => nad))}`;
    return { agree: false, reason: 'NetworksDisagree', message };
  }
  if (invalid.length > 0) {
    return {
      agree: false,
      reason: 'NetworkInvalid',
      message: `${definedBy}; other NADs are invalid: ${keys(invalid)}`,
    };
  }
  return { agree: true, reason: 'NetworksAgree', message: definedBy };
}

export function disagreementEvent(nad: ParsedNad, older: ParsedNad, network: string): NadEvent {
  const message = `The older NAD ${objectKey(older)} of network ${network} defines the pool and requests other addresses: make both NADs equal, or name another network`;
  return { nad, reason: EventReason.NetworksDisagree, message };
}
