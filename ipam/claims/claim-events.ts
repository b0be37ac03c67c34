import type { IPAMClaim } from '../../api/ipam-claim.js';
import { EventReason } from '../../api/event-reasons.js';
import { ADDRESS_DRAINING, IPS_ALLOCATED, REQUEST_HONOURED } from '../../api/names.js';
import type { EventRecorder, EventType } from '../../kube/events.js';
import { claimEventSubjects } from '../../cluster/event-subjects.js';
import { conditionOf } from '../../cluster/claim-conditions.js';
import { isEquivalent } from './status.js';
import type { DesiredClaimStatus } from './step.js';

/** An event about a change of a claim's status. */
export interface ClaimEvent {
  type: EventType;
  reason: EventReason;
  message: string;
  /** Not on the owner: the controller reports what a VM's claims got, one event for all of them. */
  isOnClaimOnly?: true;
}

/** Returns the events for a new status: refusals, their end, and changed addresses. A claim that is served at once shows it in its status. */
export function claimEventsOf(claim: IPAMClaim, desired: DesiredClaimStatus): ClaimEvent[] {
  const { request } = desired;
  const events = [allocationEvent(claim, desired)];
  if (request !== undefined && !isEquivalent(conditionOf(claim, REQUEST_HONOURED), request)) {
    events.push(warningEvent(EventReason.RequestedAddressesPending, `${request.reason}: ${request.message}`));
  }
  const { draining } = desired;
  if (draining !== undefined && !isEquivalent(conditionOf(claim, ADDRESS_DRAINING), draining)) {
    events.push({
      type: 'Normal',
      reason: EventReason.AddressDraining,
      message: `${draining.reason}: ${draining.message}`,
    });
  }
  return events.filter((event) => event !== undefined);
}

function allocationEvent(claim: IPAMClaim, { ips, allocated }: DesiredClaimStatus): ClaimEvent | undefined {
  const before = conditionOf(claim, IPS_ALLOCATED);
  if (allocated.status !== 'True') {
    if (isEquivalent(before, allocated)) return undefined;
    return warningEvent(EventReason.AddressesNotAllocated, `${allocated.reason}: ${allocated.message}`);
  }
  if (before?.status === 'False') {
    return { ...normalEvent(`Allocated ${ips.join(', ')}. ${allocated.message}`), isOnClaimOnly: true };
  }
  const shown = claim.status?.ips ?? [];
  if (shown.length === 0 || shown.join() === ips.join()) return undefined;
  return normalEvent(`Changed from ${shown.join(', ')} to ${ips.join(', ')}`);
}

export function recordClaimEvents(
  claim: IPAMClaim,
  desired: DesiredClaimStatus,
  events: Pick<EventRecorder, 'event'>,
): void {
  for (const { type, reason, message, isOnClaimOnly } of claimEventsOf(claim, desired)) {
    const subjects = claimEventSubjects(claim);
    for (const subject of isOnClaimOnly ? subjects.slice(0, 1) : subjects) events.event(subject, type, reason, message);
  }
}

function warningEvent(reason: EventReason, message: string): ClaimEvent {
  return { type: 'Warning', reason, message };
}

function normalEvent(message: string): ClaimEvent {
  return { type: 'Normal', reason: EventReason.AddressesAllocated, message };
}
