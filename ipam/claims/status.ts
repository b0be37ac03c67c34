import { EventReason } from '../../api/event-reasons.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Condition } from '../../api/meta.js';
import {
  ADDRESS_DRAINING,
  AllocationReason,
  IPS_ALLOCATED,
  LAUNCHERS_VERIFIED,
  REQUEST_HONOURED,
} from '../../api/names.js';
import { type ConditionValue, conditionOf, conditionsAfter } from '../../cluster/claim-conditions.js';
import { claimEventSubjects } from '../../cluster/event-subjects.js';
import type { EventRecorder, EventType } from '../../kube/events.js';
import type { DesiredClaimStatus } from './step.js';

/**
 * Returns the parts of a claim's status that are out of date.
 * @param canUpdateCounts whether the status may show what has changed after the colon of a message; called only if it differs
 */
export function statusChanges(claim: IPAMClaim, desired: DesiredClaimStatus, canUpdateCounts = () => false): string[] {
  const { ips, allocated, request, launchers, draining, ownerPod } = desired;
  const shown = claim.status?.ips;
  const shows = (condition: Condition | undefined, wanted: ConditionValue | undefined) =>
    isEquivalent(condition, wanted) && (condition?.message === wanted?.message || !canUpdateCounts());
  const others = [
    [LAUNCHERS_VERIFIED, launchers],
    [ADDRESS_DRAINING, draining],
  ] as const;
  return [
    ...(shown?.length === ips.length && ips.every((ip, index) => shown[index] === ip) ? [] : ['ips']),
    ...(shows(conditionOf(claim, IPS_ALLOCATED), allocated) ? [] : [IPS_ALLOCATED]),
    ...(shows(conditionOf(claim, REQUEST_HONOURED), request) ? [] : [REQUEST_HONOURED]),
    ...others.filter(([type, wanted]) => !isEquivalent(conditionOf(claim, type), wanted)).map(([type]) => type),
    ...(claim.status?.ownerPod?.name === ownerPod ? [] : ['ownerPod']),
  ];
}

/**
 * Creates a merge patch (RFC 7386) of the status, with the version of the claim as its precondition. Conditions of other writers stay.
 * @param now milliseconds since the epoch
 */
export function statusPatch(claim: IPAMClaim, desired: DesiredClaimStatus, now: number): object {
  const { uid, resourceVersion } = claim.metadata;
  const { allocated, request, launchers, draining } = desired;
  const own = {
    [IPS_ALLOCATED]: allocated,
    [REQUEST_HONOURED]: request,
    [LAUNCHERS_VERIFIED]: launchers,
    [ADDRESS_DRAINING]: draining,
  };
  const conditions = conditionsAfter(claim, own, now);
  const { ownerPod } = desired;
  const owner = ownerPod === undefined ? null : { name: ownerPod };
  return {
    metadata: { uid, resourceVersion },
    status: { ips: desired.ips, conditions, ...(ownerPod !== claim.status?.ownerPod?.name && { ownerPod: owner }) },
  };
}

/** The end of a cool-down in a message. */
const TIME = / until \d{4}-\d\d-\d\dT[\d:.]+Z/;

/** Their messages change with each attempt, after a colon: the counts of a full pool, and the error of an API server that rejects one lease after the other. */
const CHANGING_REASONS: ReadonlySet<string> = new Set([AllocationReason.Exhausted, AllocationReason.Internal]);

/**
 * Compares a condition without what changes with each attempt, and without the end of a cool-down, which each process counts by its own clock.
 * They must not cause events, nor a write of the status, which would cause the next attempt.
 */
function isEquivalent(found: Condition | undefined, desired: ConditionValue | undefined): boolean {
  if (found === undefined || desired === undefined) return found === desired;
  if (found.status !== desired.status || found.reason !== desired.reason) return false;
  return CHANGING_REASONS.has(found.reason)
    ? messagePrefix(found.message) === messagePrefix(desired.message)
    : found.message.replace(TIME, '') === desired.message.replace(TIME, '');
}

/** `Pool blue is full` of `Pool blue is full: 254 of 254 leased`. */
function messagePrefix(message: string): string {
  return message.split(':')[0] ?? '';
}

/** An event about a change of a claim's status. */
interface ClaimEvent {
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

/** A first word that is neither a field, a name nor an IPv6 address. */
const FIRST_WORD = /^[a-z]+(?= )/;

/** Begins a message with a capital, as those of conditions do. CNI errors and logs quote the same text in lower case. */
export function conditionMessage(message: string): string {
  return message.replace(FIRST_WORD, (word) => word.charAt(0).toUpperCase() + word.slice(1));
}
