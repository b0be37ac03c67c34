import type { ClaimOwner, IPAMClaim } from '../../../api/ipam-claim.js';
import { describeValue } from '../../../api/json.js';
import { controllerOf, isBeingDeleted, objectKey } from '../../../api/meta.js';
import { EventReason } from '../../../api/event-reasons.js';
import { CLAIM_RESTORED, VELERO_RESTORE_NAME } from '../../../api/names.js';
import { appliedAddressesOf, appliedRequestOf, formerRequest } from '../../../cluster/applied-claim.js';
import type { Action, WorkloadEvent } from './action.js';
import { requestText } from './address-requests.js';
import { type ClaimChanges, changesTo, newClaim, successorOf } from './claim-object.js';
import type { DesiredClaim } from './desired-claim.js';
import type { ObservedWorkload } from './observed-workload.js';
import { type OwnedClaim, isInUse } from './ownership.js';

/**
 * Returns true for a claim that may have been restored from a backup: the owner that it names is gone, but did not take the claim with it. Backup tools
 * drop owner references. kubectl keeps them, so the garbage collector deletes the claim sooner or later. The claim of a stopped VM that was deleted
 * with `--cascade=orphan` looks the same. A VM of that name may adopt either.
 */
export function isRestored({ claim, owner, recordedOwnerUid, state }: OwnedClaim): boolean {
  if (state !== 'gone' || owner.uid !== recordedOwnerUid) return false;
  if (controllerOf(claim) === undefined) {
    if (!isBeingDeleted(claim)) return true;
    // later, only a user deletes a claim without an owner reference
    if (ageAtDeletion(claim) > COLLECTED_WITHIN_MS) return false;
  }
  return appliedAddressesOf(claim, recordedOwnerUid) !== undefined;
}

/** The garbage collector may delete a claim just after its owner reference was removed: if the claim changes meanwhile, it repeats its request without the version. */
const COLLECTED_WITHIN_MS = 60_000;

function ageAtDeletion({ metadata: { creationTimestamp = '', deletionTimestamp = '' } }: IPAMClaim): number {
  return Date.parse(deletionTimestamp) - Date.parse(creationTimestamp);
}

/**
 * Returns true if such a claim may wait for its owner, because a tool recorded the restore. The policy claim-guard accepts the records only from users
 * who may restore claims. A claim that is being deleted must not keep its namespace.
 */
export function waitsForOwner(
  { claim, recordedOwnerUid }: OwnedClaim,
  { isNamespaceDeleted }: ObservedWorkload,
): boolean {
  if (isNamespaceDeleted && isBeingDeleted(claim)) return false;
  const { labels, annotations } = claim.metadata;
  return (
    (labels?.[VELERO_RESTORE_NAME] ?? '') !== '' ||
    annotations?.[CLAIM_RESTORED] === 'true' ||
    appliedAddressesOf(claim, recordedOwnerUid) !== undefined
  );
}

/** Keeps a restored claim, and so its addresses, for a VM that is restored later. */
export function keepRestored(owned: OwnedClaim, observed: ObservedWorkload): Action {
  const { claim, owner } = owned;
  const { earliestNow, restoreWaitMs } = observed;
  const claimName = claim.metadata.name;
  if (isInUse(owned, observed)) {
    return { kind: 'wait', claimName, reason: 'it was restored, but a launcher of an earlier VM may use it' };
  }
  const leftMs = Date.parse(claim.metadata.creationTimestamp ?? '') + restoreWaitMs - earliestNow;
  if (leftMs <= 0) {
    const reason =
      `it was restored, and no ${owner.kind} ${owner.name} has needed it for ${restoreWaitMs / 1000} s ` +
      '(controller flag --restore-wait)';
    const message = `IPAMClaim ${objectKey(claim)} is released: ${reason}`;
    return {
      kind: 'release',
      claim,
      reason,
      event: { reason: EventReason.RestoredClaimReleased, message, regarding: claim },
    };
  }
  const set = withoutOwner(owned);
  if (set !== undefined) return { kind: 'update', claim, owner, set, reason: 'it was restored, and its owner is gone' };
  const reason =
    `IPAMClaim ${objectKey(claim)} was restored and keeps its addresses until ${owner.kind} ${owner.name} is restored too ` +
    `and has an interface on network ${describeValue(claim.spec.network)}`;
  const event = { reason: EventReason.RestoredClaimWaiting, message: reason, regarding: claim };
  return { kind: 'wait', claimName, reason, event, requeueAfterMs: Math.min(leftMs, restoreWaitMs) };
}

/** Gives a restored claim, which nothing uses, to the owner that needs it. One that is being deleted is replaced by a claim with the same addresses. */
export function adoptRestored(owned: OwnedClaim, newOwner: ClaimOwner, desired: DesiredClaim): Action {
  const { claim, owner } = owned;
  const { namespace = '', name } = claim.metadata;
  const requested = appliedRequestOf(claim, owned.recordedOwnerUid);
  if (isBeingDeleted(claim)) {
    const successor =
      requested === undefined
        ? successorOf(claim, newOwner, desired)
        : newClaim({ namespace, name }, newOwner, desired, requested);
    return {
      kind: 'release',
      claim,
      successor,
      reason: 'it was restored with an owner that is gone: it is created again',
    };
  }
  const set = adoptionOf(claim, newOwner, desired);
  const request = requestText(desired) === undefined ? requestOf(requested) : {};
  const changes = { ...set, annotations: { ...set.annotations, ...request } };
  const reason = `it was restored: ${newOwner.kind} ${newOwner.uid} adopts it from ${owner.uid}, which is gone`;
  return { kind: 'update', claim, owner: newOwner, set: changes, reason };
}

/**
 * Returns the changes with which an interface adopts a claim. They remove the records of a restore: otherwise the claim would count as restored again if
 * its new owner is deleted without it.
 */
export function adoptionOf(claim: IPAMClaim, newOwner: ClaimOwner, desired: DesiredClaim): ClaimChanges {
  const { annotations, labels, ...set } = changesTo(claim, newOwner, desired, true) ?? {};
  const withoutRecords = {
    annotations: { ...annotations, ...removed(claim.metadata.annotations, CLAIM_RESTORED) },
    labels: { ...labels, ...removed(claim.metadata.labels, VELERO_RESTORE_NAME) },
  };
  const changed = Object.entries(withoutRecords).filter(([, changes]) => Object.keys(changes).length > 0);
  return { ...set, ...Object.fromEntries(changed) };
}

function removed(map: Record<string, string> | undefined, key: string): Record<string, null> {
  return map?.[key] === undefined ? {} : { [key]: null };
}

/** Replaces a restored claim, which nothing uses, if the interface of its name is on another network now. */
export function replaceRestored(
  { claim }: OwnedClaim,
  newOwner: ClaimOwner,
  desired: DesiredClaim,
  regarding: WorkloadEvent['regarding'],
): Action {
  const { namespace = '', name } = claim.metadata;
  const message =
    `IPAMClaim ${objectKey(claim)} was restored for network ${describeValue(claim.spec.network)}, but interface "${desired.vmNetwork}" is on network ` +
    `${describeValue(desired.network)}: it gets other addresses`;
  return {
    kind: 'release',
    claim,
    successor: newClaim({ namespace, name }, newOwner, desired),
    reason: 'it was restored, and its interface is on another network now',
    event: { reason: EventReason.RestoredClaimReleased, message, regarding },
  };
}

/** Saves a claim that `kubectl apply` restored from the garbage collector, and requests the addresses that it had. */
function withoutOwner(owned: OwnedClaim): ClaimChanges | undefined {
  const { claim } = owned;
  const controller = controllerOf(claim);
  if (controller === undefined || isBeingDeleted(claim)) return undefined;
  const others = (claim.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== controller.uid);
  return { ownerReferences: others, annotations: requestOf(appliedRequestOf(claim, owned.recordedOwnerUid)) };
}

function requestOf(addresses: string | undefined): Record<string, string> {
  return addresses === undefined ? {} : formerRequest(addresses);
}
