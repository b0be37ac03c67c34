import type { IPAMClaim } from '../../api/ipam-claim.js';
import { EventReason, IPS_ALLOCATED, REQUEST_HONOURED } from '../../api/names.js';
import type { EventRecorder, EventType } from '../../kube/events.js';
import { subjectsOf } from '../../cluster/claim-subjects.js';
import { conditionOf, says } from './status.js';
import type { ClaimVerdict } from './step.js';

/** What users are told when a claim's status changes. */
export interface Notice {
  type: EventType;
  reason: EventReason;
  message: string;
}

/**
 * What is worth an event: refusals, their end, and new addresses for old ones. That a new claim has its addresses is expected; thousands may
 * come at once, and their status says it.
 */
export function noticesOf(claim: IPAMClaim, verdict: ClaimVerdict): Notice[] {
  const { request } = verdict;
  const notices = [noticeOfAllocation(claim, verdict)];
  if (request !== undefined && !says(conditionOf(claim, REQUEST_HONOURED), request)) {
    notices.push(warning(EventReason.RequestedAddressesPending, `${request.reason}: ${request.message}`));
  }
  return notices.filter((notice) => notice !== undefined);
}

function noticeOfAllocation(claim: IPAMClaim, { ips, allocated }: ClaimVerdict): Notice | undefined {
  const before = conditionOf(claim, IPS_ALLOCATED);
  if (allocated.status !== 'True') {
    if (says(before, allocated)) return undefined;
    return warning(EventReason.AddressesRefused, `${allocated.reason}: ${allocated.message}`);
  }
  if (before?.status === 'False') return normal(`${ips.join(', ')} ${allocated.message}`);
  const shown = claim.status?.ips ?? [];
  if (shown.length === 0 || shown.join() === ips.join()) return undefined;
  return normal(`${ips.join(', ')} in place of ${shown.join(', ')}`);
}

export function report(claim: IPAMClaim, verdict: ClaimVerdict, events: Pick<EventRecorder, 'event'>): void {
  for (const { type, reason, message } of noticesOf(claim, verdict)) {
    for (const subject of subjectsOf(claim)) events.event(subject, type, reason, message);
  }
}

function warning(reason: EventReason, message: string): Notice {
  return { type: 'Warning', reason, message };
}

function normal(message: string): Notice {
  return { type: 'Normal', reason: EventReason.AddressesAllocated, message };
}
