import { claimMacOf } from '../../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { EventReason } from '../../api/event-reasons.js';
import { AllocationReason } from '../../api/names.js';
import { formatAddresses, sameAddress } from '../../addressing/address/address.js';
import type { AllocationRefusal } from '../../addressing/allocator/allocator.js';
import { type LeaseRecord, isReservation } from '../../addressing/lease/lease.js';
import { leaseOwnerOf } from '../../addressing/lease/lease-record.js';
import { type Resolution, namespaceRefusal } from '../../addressing/directory/resolution.js';
import type { ClaimObservation } from './observe.js';
import { mustReadOwner, ownerPodOf, vmisToVerify } from './owner-pod.js';
import { isWaitingFor } from './running/claim-pods.js';
import { readShownAddresses, formatStatusIp } from './shown/claim-addresses.js';
import { conditionMessage, statusChanges } from './status.js';
import {
  type DesiredAddresses,
  desiredAddressesOf,
  drainingConditionOf,
  replaceableAddresses,
} from './desired-addresses.js';
import { probeStep } from './probing.js';
import type { ConditionOf } from '../../cluster/claim-conditions.js';
import type { DesiredClaimStatus, ClaimStep } from './step.js';
import type { Findings } from './sync-state.js';

/**
 * Plans the next step for a claim. Pure. The process may stop after any step, because each plan starts from the stored state: addresses are allocated before the
 * status shows them, and released after it has stopped showing them.
 */
export function plan(given: ClaimObservation, findings: Findings): ClaimStep {
  const observed = withoutFailedMove(given, findings);
  const reason = skipReason(observed.resolution);
  if (reason !== undefined) return { kind: 'none', reason };
  const verification = verificationStep(observed);
  if (verification !== undefined) return verification;
  const wanted = desiredAddressesOf(observed);
  if (isBeingDeleted(observed.claim) && observed.held.length + wanted.shown.length === 0) {
    return { kind: 'none', reason: 'it is being deleted and never had an address' };
  }
  const refusal = refusalOf(observed, wanted, findings);
  if (refusal === undefined && wanted.missing.addresses.length + wanted.missing.families.length > 0) {
    return allocationStep(wanted, findings);
  }
  // requested addresses may be free even if the shown ones are not
  const requestCondition = evaluateRequest(observed, wanted, findings);
  if (requestCondition === 'allocate') return moveStep({ addresses: wanted.unleased, families: [] }, findings);
  const request = refusal === undefined ? requestCondition : undefined;
  return drainStepOf(observed, wanted, findings) ?? finalStep(observed, wanted, { refusal, request, findings });
}

/** Nothing is to be allocated: verifies launchers, ends probes, writes the status, records the MAC address and releases leases. */
function finalStep(observed: ClaimObservation, wanted: DesiredAddresses, input: StatusInput): ClaimStep {
  const { claim, pods, launcherVmis } = observed;
  if (mustReadOwner(claim, pods, input.findings.readOwner))
    return { kind: 'read-owner-pod', reason: 'no cache has its owner pod, which may run' };
  const uids = vmisToVerify(claim, pods, launcherVmis);
  if (uids.length > 0) return { kind: 'read-vmi', claim, uids, reason: 'the VMI of its launcher must be verified' };
  const probe = input.refusal === undefined ? probeStep(observed, wanted, input.findings.isLive) : undefined;
  if (probe !== undefined) return probe;
  const desired = desiredStatusOf(observed, wanted, input);
  const changes = statusChanges(observed.claim, desired, observed.canUpdateCounts);
  if (changes.length > 0)
    return { kind: 'write-status', desired, reason: `its status differs in ${changes.join(', ')}` };
  const { refusal, findings } = input;
  return macStep(observed, wanted) ?? workloadStep(observed) ?? surplusStep(observed, { wanted, refusal }, findings);
}

/** A claim that cannot have the addresses of its running VM keeps those that it shows. */
function withoutFailedMove(observed: ClaimObservation, { move }: Findings): ClaimObservation {
  const keeps = move !== undefined && readShownAddresses(observed.claim).addresses.length > 0;
  return keeps ? { ...observed, running: { kind: 'none' } } : observed;
}

function verificationStep({ claim, running }: ClaimObservation): ClaimStep | undefined {
  switch (running.kind) {
    case 'unverified': {
      const reason = 'the VMI of a launcher that has addresses must be verified';
      return { kind: 'read-vmi', claim, uids: running.uids, reason };
    }
    case 'unknown':
      return { kind: 'none', reason: running.reason };
    default:
      return undefined;
  }
}

function allocationStep({ running, shown, missing }: DesiredAddresses, findings: Findings): ClaimStep {
  if (running.length > 0 && shown.length > 0) return moveStep(missing, findings);
  return { kind: 'allocate', purpose: 'need', ...missing, reason: 'it lacks some of its addresses' };
}

/** The claim's MAC address is new or has changed since its leases were allocated. Once the claim is gone, only its leases know it. */
function macStep({ claim, pools }: ClaimObservation, { keep }: DesiredAddresses): ClaimStep | undefined {
  const mac = claimMacOf(claim);
  if (mac === undefined) return undefined;
  const stickyPools = new Set(
    pools.flatMap(({ name, stickyMs, isStickyForClaims }) => (stickyMs > 0 && isStickyForClaims ? [name] : [])),
  );
  const leases = keep.filter((lease) => lease.mac !== mac && !isReservation(lease) && stickyPools.has(lease.pool));
  return leases.length === 0 ? undefined : { kind: 'record-mac', leases, mac, reason: 'its MAC address has changed' };
}

/** A VM that adopts a claim may have its addresses without a cool-down later, as one for which they were allocated. */
function workloadStep({ claim, held }: ClaimObservation): ClaimStep | undefined {
  const { workloadUID } = leaseOwnerOf(claim);
  if (workloadUID === undefined) return undefined;
  const leases = held.filter(({ owner }) => owner?.workloadUID !== workloadUID);
  if (leases.length === 0) return undefined;
  return { kind: 'record-workload', leases, workloadUID, reason: 'its owner has changed' };
}

/** @returns why the claim must not be touched; undefined if Holdfast serves it */
function skipReason(resolution: Resolution): string | undefined {
  const isOurs = resolution.kind === 'served' || (resolution.kind === 'unserved' && !resolution.isUncertain);
  return isOurs ? undefined : resolution.message;
}

/**
 * Plans the release of leases of earlier claims with the same name. Only a live read proves that such a claim is gone.
 * @param gone UIDs of claims that a live read has proven gone
 */
export function planEarlierClaims(earlier: readonly LeaseRecord[], gone: ReadonlySet<string>): ClaimStep | undefined {
  if (earlier.length === 0) return undefined;
  const leases = earlier.filter(({ owner }) => owner !== undefined && gone.has(owner.uid));
  return leases.length > 0
    ? { kind: 'release', leases, reason: 'the claim of these leases is gone' }
    : { kind: 'read-claim', reason: 'an earlier claim of this name has leases' };
}

function refusalOf(
  { resolution, held, running }: ClaimObservation,
  wanted: DesiredAddresses,
  { need }: Findings,
): AllocationRefusal | undefined {
  if (running.kind === 'refused') return running.refusal;
  const { missing, shown, problems } = wanted;
  const isComplete = missing.addresses.length + missing.families.length === 0;
  // without a pool it is unknown which families a claim without addresses needs
  if (resolution.kind === 'unserved' && !(isComplete && shown.length > 0)) {
    return { reason: AllocationReason.PoolNotFound, message: resolution.message };
  }
  if (isComplete && held.length > 0) return undefined;
  if (held.length > 0) return need;
  if (problems.status !== undefined) return { reason: AllocationReason.Internal, message: problems.status };
  if (shown.length + wanted.running.length > 0 || problems.request === undefined) return need;
  return { reason: AllocationReason.InvalidRequest, message: problems.request };
}

/** @returns the condition for a request that is not fulfilled, or `allocate` if the requested addresses can be tried */
function evaluateRequest(
  observed: ClaimObservation,
  wanted: DesiredAddresses,
  { need, move }: Findings,
): ConditionOf<'RequestHonoured'> | 'allocate' | undefined {
  const { claim, pods, resolution } = observed;
  const { pending, problems, isMovable, keep, unleased } = wanted;
  if (problems.request !== undefined) return falseCondition(AllocationReason.InvalidRequest, problems.request);
  if (pending.length === 0) return undefined;
  if (!isMovable) {
    const pod = pods[0]?.metadata.name ?? '';
    const message = `${formatAddresses(pending)} is requested, but pod ${pod} uses ${formatAddresses(keep.map(({ address }) => address))}: stop the VM to change its addresses, or remove the request`;
    return falseCondition('ClaimInUse', message);
  }
  if (resolution.kind !== 'served') return falseCondition(AllocationReason.PoolNotFound, resolution.message);
  const closed = unleased.length > 0 ? namespaceRefusal(claim, resolution.pool) : undefined;
  if (closed !== undefined) return falseCondition(AllocationReason.PoolNotFound, closed);
  const refusal = move ?? (wanted.isRequestMissing ? need : undefined);
  return refusal === undefined ? 'allocate' : falseCondition(refusal.reason, refusal.message);
}

/** Allocates another address for one that is draining. One family does not wait for the other. */
function drainStepOf(observed: ClaimObservation, wanted: DesiredAddresses, findings: Findings): ClaimStep | undefined {
  const next = replaceableAddresses(observed, wanted).find(({ family }) => findings.drain?.[family] === undefined);
  return next && moveStep({ addresses: [], families: [next.family] }, findings, 'drain');
}

/** Addresses change only after live reads: caches may not show yet that a pod uses the claim again or that the request was withdrawn. */
function moveStep(
  missing: DesiredAddresses['missing'],
  { isLive, arePodsLive }: Findings,
  purpose: 'move' | 'drain' = 'move',
): ClaimStep {
  const reason = 'its addresses must change';
  if (!isLive) return { kind: 'read-claim', reason };
  if (!arePodsLive) return { kind: 'list-pods', reason };
  return { kind: 'allocate', purpose, ...missing, reason };
}

interface StatusInput {
  refusal: AllocationRefusal | undefined;
  request: ConditionOf<'RequestHonoured'> | undefined;
  findings: Findings;
}

function desiredStatusOf(
  observed: ClaimObservation,
  wanted: DesiredAddresses,
  { refusal, request, findings }: StatusInput,
): DesiredClaimStatus {
  const { claim, pods, launcherVmis } = observed;
  const ownerPod = ownerPodOf(claim, pods, launcherVmis);
  const { problem } = launcherVmis;
  const draining = refusal === undefined ? drainingConditionOf(observed, wanted, findings.drain) : undefined;
  const rest = {
    ...(request && { request }),
    ...(draining && { draining }),
    ...(problem !== undefined && { launchers: falseCondition('KubeVirtNamespaceUnknown', problem) }),
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
  const unprobed = wanted.keep.filter(({ probe }) => probe === 'skipped').map(({ address }) => address);
  const skipped =
    unprobed.length === 0
      ? ''
      : `. ${EventReason.ProbeSkipped}: ${formatAddresses(unprobed)} was not probed for other hosts`;
  const allocated: ConditionOf<'IPsAllocated'> = {
    status: 'True',
    reason: AllocationReason.Success,
    message: `Leased from AddressPool ${pools}${skipped}`,
  };
  return { ips: wanted.keep.map(({ address }) => formatStatusIp(address, observed)), allocated, ...rest };
}

/** The addresses that a refused claim keeps showing. It still has a right to them, and no other object may record it. */
function ipsWhileRefused(observed: ClaimObservation, wanted: DesiredAddresses): readonly string[] {
  const { keep, missing, shown, problems } = wanted;
  if (problems.status !== undefined) return observed.claim.status?.ips ?? [];
  if (shown.length === 0) return [];
  const lost = missing.addresses.filter((address) => shown.some((other) => sameAddress(address, other)));
  return [...keep.map(({ address }) => address), ...lost]
    .sort((a, b) => a.family - b.family)
    .map((address) => formatStatusIp(address, observed));
}

/**
 * Releases leases that the claim does not need: after a move, after two processes have allocated for it, or if it gets only one of two families. While a pod uses
 * the claim, it may have any of these addresses. If the status shows none, a pod that waits for the claim has none of them.
 */
function surplusStep(
  { claim, pods, resolution, running }: ClaimObservation,
  { wanted, refusal }: { wanted: DesiredAddresses; refusal: AllocationRefusal | undefined },
  { isLive, arePodsLive }: Findings,
): ClaimStep {
  const { surplus, shown, keep } = wanted;
  const incomplete = resolution.kind === 'served' && shown.length === 0 && mustGiveUp(refusal);
  const leases = incomplete ? [...keep, ...surplus] : surplus;
  if (leases.length === 0) return { kind: 'none', reason: 'nothing to do' };
  if (isBeingDeleted(claim)) return { kind: 'none', reason: 'it keeps its leases until it is deleted' };
  // a launcher may have got them before the claim took over their leases, and a reference later
  const mayHaveAny = shown.length > 0 || running.kind !== 'none';
  if (pods.some((pod) => mayHaveAny || !isWaitingFor(pod, claim)))
    return { kind: 'none', reason: 'a pod may use the surplus addresses' };
  const reason = incomplete ? 'some of its addresses are not available' : `${objectKey(claim)} has other addresses`;
  if (!isLive) return { kind: 'read-claim', reason };
  if (!arePodsLive) return { kind: 'list-pods', reason };
  return { kind: 'release', leases, reason };
}

/** While it waits for a host to leave its address, a claim keeps the others: each new attempt would let another one cool down. */
function mustGiveUp(refusal: AllocationRefusal | undefined): boolean {
  return refusal !== undefined && refusal.isQuarantined !== true;
}

function falseCondition<const Reason>(reason: Reason, message: string) {
  return { status: 'False' as const, reason, message: conditionMessage(message) };
}
