import { claimMacOf } from '../../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { AllocationReason, KUBEVIRT_NAMESPACE_UNKNOWN, RequestReason } from '../../api/names.js';
import type { Address } from '../core/address.js';
import { formatAddress, sameAddress } from '../core/address.js';
import type { AllocationRefusal } from '../core/allocator.js';
import { type LeaseRecord, isReservation } from '../core/lease.js';
import { type Resolution, namespaceRefusal } from '../directory/resolution.js';
import { formatStatusIp } from './status-ip.js';
import type { ClaimObservation } from './observe.js';
import { ownerPodOf, vmisToVerify } from './owner-pod.js';
import { statusChanges } from './status.js';
import type { DesiredClaimStatus, ClaimStep, ConditionValue } from './step.js';
import { type DesiredAddresses, desiredAddressesOf } from './desired-addresses.js';

/** What has been found out in the course of this sync, beyond what the caches say. */
export interface Findings {
  /** The claim is what the API server has answered. */
  isLive: boolean;
  /** So are its pods, since its status was last written. */
  arePodsLive: boolean;
  /** Why it cannot have the addresses that it needs, or those that it asks for. */
  need?: AllocationRefusal;
  move?: AllocationRefusal;
}

/**
 * The next step of a claim. Pure; every step can be the last one that the process takes, since the next plan is made from what is left:
 * addresses are taken before the status shows them, and released after it has ceased to.
 */
export function plan(observed: ClaimObservation, findings: Findings): ClaimStep {
  const { resolution } = observed;
  const reason = skipReason(resolution);
  if (reason !== undefined) return { kind: 'none', reason };
  const wanted = desiredAddressesOf(observed);
  if (isBeingDeleted(observed.claim) && observed.held.length + wanted.shown.length === 0) {
    return { kind: 'none', reason: 'it ends without ever having had an address' };
  }
  const refusal = refusalOf(observed, wanted, findings);
  const { addresses, families } = wanted.missing;
  if (refusal === undefined && addresses.length + families.length > 0) {
    return { kind: 'take', purpose: 'need', addresses, families, reason: 'it has not all of its addresses' };
  }
  // what it asks for may be had, too, where what it shows cannot be had back
  const requestResult = evaluateRequest(observed, wanted, findings);
  if (requestResult === 'take') return moveStep(wanted, findings);
  const { claim, pods, launcherVmis } = observed;
  const uids = vmisToVerify(claim, pods, launcherVmis);
  if (uids.length > 0)
    return { kind: 'look-at-vmi', claim, uids, reason: 'is the VMI of its launcher that of its owner?' };
  const verdict = desiredStatusOf(observed, wanted, {
    refusal,
    request: refusal === undefined ? requestResult : undefined,
  });
  const changes = statusChanges(observed.claim, verdict, observed.canUpdateCounts);
  if (changes.length > 0) return { kind: 'write', verdict, reason: `its status differs in ${changes.join(', ')}` };
  return macStep(observed, wanted) ?? surplusStep(observed, { wanted, refusal }, findings);
}

/** The claim was not told its MAC address, or another one, when its leases were taken: once it is gone, nobody knows it. */
function macStep({ claim, pools }: ClaimObservation, { keep }: DesiredAddresses): ClaimStep | undefined {
  const mac = claimMacOf(claim);
  if (mac === undefined) return undefined;
  const stickyPools = new Set(
    pools.flatMap(({ name, stickyMs, retainsClaims }) => (stickyMs > 0 && retainsClaims ? [name] : [])),
  );
  const leases = keep.filter((lease) => lease.mac !== mac && !isReservation(lease) && stickyPools.has(lease.pool));
  return leases.length === 0 ? undefined : { kind: 'note-mac', leases, mac, reason: 'its MAC address is a new one' };
}

/** @returns undefined where the claim is ours */
function skipReason(resolution: Resolution): string | undefined {
  const isOurs = resolution.kind === 'served' || (resolution.kind === 'unserved' && !resolution.isUncertain);
  return isOurs ? undefined : resolution.message;
}

/**
 * Claims that had the name before are gone for sure only where the API server says so.
 * @param gone UIDs of those of which it has
 */
export function planEarlierClaims(
  leasesOfEarlier: readonly LeaseRecord[],
  gone: ReadonlySet<string>,
): ClaimStep | undefined {
  if (leasesOfEarlier.length === 0) return undefined;
  const leases = leasesOfEarlier.filter(({ owner }) => owner !== undefined && gone.has(owner.uid));
  return leases.length > 0
    ? { kind: 'release', leases, reason: 'their claim is gone' }
    : { kind: 'look', reason: 'is it gone?' };
}

function refusalOf(
  { resolution, held }: ClaimObservation,
  wanted: DesiredAddresses,
  { need }: Findings,
): AllocationRefusal | undefined {
  const { missing, shown, problems } = wanted;
  const isComplete = missing.addresses.length + missing.families.length === 0;
  // without a pool nobody knows how many families a claim shall have that shows none
  if (resolution.kind === 'unserved' && !(isComplete && shown.length > 0)) {
    return { reason: AllocationReason.PoolNotFound, message: resolution.message };
  }
  if (isComplete && held.length > 0) return undefined;
  if (held.length > 0) return need;
  if (problems.status !== undefined) return { reason: AllocationReason.Internal, message: problems.status };
  if (shown.length > 0 || problems.request === undefined) return need;
  return { reason: AllocationReason.InvalidRequest, message: problems.request };
}

/** @returns what the claim is told about its request for other addresses than it has, or that they can be tried for */
function evaluateRequest(
  observed: ClaimObservation,
  wanted: DesiredAddresses,
  { move }: Findings,
): ConditionValue | 'take' | undefined {
  const { claim, pods, resolution } = observed;
  const { pending, problems, isMovable, keep, unleased } = wanted;
  if (problems.request !== undefined) return falseCondition(AllocationReason.InvalidRequest, problems.request);
  if (pending.length === 0) return undefined;
  if (!isMovable) {
    const pod = pods[0]?.metadata.name ?? '';
    const message = `${formatAddresses(pending)} is asked for, and pod ${pod} uses ${formatAddresses(keep.map(({ address }) => address))}: stop the VM to change its addresses, or take the request back`;
    return falseCondition(RequestReason.InUse, message);
  }
  if (resolution.kind !== 'served') return falseCondition(AllocationReason.PoolNotFound, resolution.message);
  const closed = unleased.length > 0 ? namespaceRefusal(claim, resolution.pool) : undefined;
  if (closed !== undefined) return falseCondition(AllocationReason.PoolNotFound, closed);
  return move === undefined ? 'take' : falseCondition(move.reason, move.message);
}

/** What a claim has is changed only on a fresh look: caches may not show yet that it is in use again, or that the request was taken back. */
function moveStep({ unleased }: DesiredAddresses, { isLive, arePodsLive }: Findings): ClaimStep {
  const reason = 'it asks for other addresses';
  if (!isLive) return { kind: 'look', reason };
  if (!arePodsLive) return { kind: 'look-at-pods', reason };
  return { kind: 'take', purpose: 'move', addresses: unleased, families: [], reason };
}

interface StatusInput {
  refusal: AllocationRefusal | undefined;
  request: ConditionValue | undefined;
}

function desiredStatusOf(
  observed: ClaimObservation,
  wanted: DesiredAddresses,
  { refusal, request }: StatusInput,
): DesiredClaimStatus {
  const { claim, pods, launcherVmis } = observed;
  const ownerPod = ownerPodOf(claim, pods, launcherVmis);
  const { problem } = launcherVmis;
  const rest = {
    ...(request && { request }),
    ...(problem !== undefined && { launchers: falseCondition(KUBEVIRT_NAMESPACE_UNKNOWN, problem) }),
    ...(ownerPod !== undefined && { ownerPod }),
  };
  if (refusal !== undefined) {
    return {
      ips: ipsWhileRefused(observed, wanted),
      allocated: falseCondition(refusal.reason, refusal.message),
      ...rest,
    };
  }
  const pools = [...new Set(wanted.keep.map(({ pool }) => pool))].join(', ');
  const allocated: ConditionValue = {
    status: 'True',
    reason: AllocationReason.Success,
    message: `leased from AddressPool ${pools}`,
  };
  return { ips: wanted.keep.map(({ address }) => formatStatusIp(address, observed)), allocated, ...rest };
}

/** What a claim that is refused still shows: what it has been given and still has a right to, which nothing else may remember. */
function ipsWhileRefused(
  observed: ClaimObservation,
  { keep, missing, shown, problems }: DesiredAddresses,
): readonly string[] {
  if (problems.status !== undefined) return observed.claim.status?.ips ?? [];
  if (shown.length === 0) return [];
  const lost = missing.addresses.filter((address) => shown.some((other) => sameAddress(address, other)));
  return [...keep.map(({ address }) => address), ...lost]
    .sort((a, b) => a.family - b.family)
    .map((address) => formatStatusIp(address, observed));
}

/**
 * Two processes may have taken addresses for one claim, a move leaves the old ones, and of two families one may be had alone. While a pod uses the
 * claim nobody knows which of them it has, unless the status shows none: then no pod was told any.
 */
function surplusStep(
  { claim, pods: users, resolution }: ClaimObservation,
  { wanted, refusal }: { wanted: DesiredAddresses; refusal: AllocationRefusal | undefined },
  { isLive, arePodsLive }: Findings,
): ClaimStep {
  const { surplus, shown, keep } = wanted;
  const incomplete = refusal !== undefined && shown.length === 0 && resolution.kind === 'served';
  const leases = incomplete ? [...keep, ...surplus] : surplus;
  if (leases.length === 0) return { kind: 'none', reason: 'all is as it shall be' };
  if (isBeingDeleted(claim)) return { kind: 'none', reason: 'it keeps what it has until it is gone' };
  if (shown.length > 0 && users.length > 0) return { kind: 'none', reason: 'a pod may use what is too much' };
  const reason = incomplete ? 'it cannot have all of its addresses' : `${objectKey(claim)} has others`;
  if (!isLive) return { kind: 'look', reason };
  if (shown.length > 0 && !arePodsLive) return { kind: 'look-at-pods', reason };
  return { kind: 'release', leases, reason };
}

function falseCondition(reason: string, message: string): ConditionValue {
  return { status: 'False', reason, message };
}

function formatAddresses(addresses: readonly Address[]): string {
  return addresses.map(formatAddress).join(', ');
}
