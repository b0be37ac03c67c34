import type { IPAMClaim } from '../../api/ipam-claim.js';
import { EventReason, IPS_ALLOCATED, REQUEST_HONOURED } from '../../api/names.js';
import type { EventRecorder, EventType } from '../../kube/events.js';
import { claimEventSubjects } from '../../cluster/claim-event-subjects.js';
import { conditionOf, isEquivalent } from './status.js';
import type { DesiredClaimStatus } from './step.js';

/** What users are told when a claim's status changes. */
export interface ClaimEvent {
  type: EventType;
  reason: EventReason;
  message: string;
}

/**
 * What is worth an event: refusals, their end, and new addresses for old ones. That a new claim has its addresses is expected; thousands may
 * come at once, and their status says it.
 */
export function claimEventsOf(claim: IPAMClaim, verdict: DesiredClaimStatus): ClaimEvent[] {
  const { request } = verdict;
  const notices = [allocationEvent(claim, verdict)];
  if (request !== undefined && !isEquivalent(conditionOf(claim, REQUEST_HONOURED), request)) {
    notices.push(warningEvent(EventReason.RequestedAddressesPending, `${request.reason}: ${request.message}`));
  }
  return notices.filter((notice) => notice !== undefined);
}

function allocationEvent(claim: IPAMClaim, { ips, allocated }: DesiredClaimStatus): ClaimEvent | undefined {
  const before = conditionOf(claim, IPS_ALLOCATED);
  if (allocated.status !== 'True') {
    if (isEquivalent(before, allocated)) return undefined;
    return warningEvent(EventReason.AddressesNotAllocated, `${allocated.reason}: ${allocated.message}`);
  }
  if (before?.status === 'False') return normalEvent(`${ips.join(', ')} ${allocated.message}`);
  const shown = claim.status?.ips ?? [];
  if (shown.length === 0 || shown.join() === ips.join()) return undefined;
  return normalEvent(`${ips.join(', ')} in place of ${shown.join(', ')}`);
}

export function recordClaimEvents(
  claim: IPAMClaim,
  verdict: DesiredClaimStatus,
  events: Pick<EventRecorder, 'event'>,
): void {
  for (const { type, reason, message } of claimEventsOf(claim, verdict)) {
    for (const subject of claimEventSubjects(claim)) events.event(subject, type, reason, message);
  }
}

function warningEvent(reason: EventReason, message: string): ClaimEvent {
  return { type: 'Warning', reason, message };
}

function normalEvent(message: string): ClaimEvent {
  return { type: 'Normal', reason: EventReason.AddressesAllocated, message };
}
