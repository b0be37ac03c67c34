import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Condition } from '../../api/meta.js';
import { AllocationReason, IPS_ALLOCATED, LAUNCHERS_VERIFIED, REQUEST_HONOURED } from '../../api/names.js';
import type { DesiredClaimStatus, ConditionValue } from './step.js';

/**
 * What of a claim's status would be written anew; empty if it says all that it should.
 * @param canUpdateCounts whether the counts in the message of a full pool may be written again; asked only if they differ
 */
export function statusChanges(claim: IPAMClaim, verdict: DesiredClaimStatus, canUpdateCounts = () => false): string[] {
  const { ips, allocated, request, launchers, ownerPod } = verdict;
  const shown = claim.status?.ips;
  const shows = (condition: Condition | undefined, wanted: ConditionValue | undefined) =>
    isEquivalent(condition, wanted) && (condition?.message === wanted?.message || !canUpdateCounts());
  return [
    ...(shown?.length === ips.length && ips.every((ip, index) => shown[index] === ip) ? [] : ['ips']),
    ...(shows(conditionOf(claim, IPS_ALLOCATED), allocated) ? [] : [IPS_ALLOCATED]),
    ...(shows(conditionOf(claim, REQUEST_HONOURED), request) ? [] : [REQUEST_HONOURED]),
    ...(isEquivalent(conditionOf(claim, LAUNCHERS_VERIFIED), launchers) ? [] : [LAUNCHERS_VERIFIED]),
    ...(claim.status?.ownerPod?.name === ownerPod ? [] : ['ownerPod']),
  ];
}

/**
 * A merge patch (RFC 7386) of the status subresource, on condition that the claim is still as it was read. The conditions of others stay.
 * @param now milliseconds since the epoch
 */
export function statusPatch(claim: IPAMClaim, verdict: DesiredClaimStatus, now: number): object {
  const { uid, resourceVersion } = claim.metadata;
  const own = [IPS_ALLOCATED, REQUEST_HONOURED, LAUNCHERS_VERIFIED];
  const conditions = [
    ...(claim.status?.conditions ?? []).filter(({ type }) => !own.includes(type)),
    toCondition(claim, IPS_ALLOCATED, { verdict: verdict.allocated, now }),
    ...(verdict.request ? [toCondition(claim, REQUEST_HONOURED, { verdict: verdict.request, now })] : []),
    ...(verdict.launchers ? [toCondition(claim, LAUNCHERS_VERIFIED, { verdict: verdict.launchers, now })] : []),
  ];
  const { ownerPod } = verdict;
  const owner = ownerPod === undefined ? null : { name: ownerPod };
  return {
    metadata: { uid, resourceVersion },
    status: {
      ips: verdict.ips,
      conditions,
      ...(ownerPod !== claim.status?.ownerPod?.name && { ownerPod: owner }),
    },
  };
}

export function conditionOf(claim: IPAMClaim, type: string): Condition | undefined {
  return claim.status?.conditions?.find((found) => found.type === type);
}

/** True if it says the same but for the counts of a full pool, which change all the time: they are no reason for an event. */
export function isEquivalent(found: Condition | undefined, verdict: ConditionValue | undefined): boolean {
  if (found === undefined || verdict === undefined) return found === verdict;
  if (found.status !== verdict.status || found.reason !== verdict.reason) return false;
  return found.reason === AllocationReason.Exhausted
    ? messagePrefix(found.message) === messagePrefix(verdict.message)
    : found.message === verdict.message;
}

/** `pool blue is full` of `pool blue is full: 254 of 254 leased`. */
function messagePrefix(message: string): string {
  return message.split(':')[0] ?? '';
}

function toCondition(
  claim: IPAMClaim,
  type: string,
  { verdict, now }: { verdict: ConditionValue; now: number },
): Condition {
  const before = conditionOf(claim, type);
  if (before !== undefined && isEquivalent(before, verdict) && before.message === verdict.message) return before;
  const { generation } = claim.metadata;
  const isSame = before?.status === verdict.status;
  return {
    type,
    ...verdict,
    lastTransitionTime: isSame ? before.lastTransitionTime : `${new Date(now).toISOString().slice(0, 19)}Z`,
    ...(generation !== undefined && { observedGeneration: generation }),
  };
}
