import {
  CLAIM_FINALIZER,
  CLAIM_GUEST_MAC,
  CLAIM_MAC,
  CLAIM_MAC_SINCE,
  CLAIM_NAD,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_REQUEST_ORIGIN,
  CLAIM_VM_LABEL,
  CLAIM_VM_NETWORK,
  IPAM_CLAIM_API_VERSION,
  IPAM_CLAIM_KIND,
  KUBEVIRT_API_VERSION,
  TEMPLATE_ORIGIN,
  VELERO_RESTORE_STATUS,
  VIRTUAL_MACHINE_KIND,
} from '../../../api/names.js';
import { formerRequest } from '../../../cluster/applied-claim.js';
import { type ClaimOwner, type IPAMClaim, labelValue } from '../../../api/ipam-claim.js';
import { type OwnerReference, controllerOf, isBeingDeleted } from '../../../api/meta.js';
import { isKubeVirtGroup } from '../../../api/kubevirt.js';
import { macSince, requestText } from './address-requests.js';
import type { DesiredClaim } from './desired-claim.js';

/** Changes to a claim. Lists are complete; maps hold only the keys that change, null for a key that is removed. */
export interface ClaimChanges {
  labels?: Record<string, string | null>;
  annotations?: Record<string, string | null>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  interface?: string;
}

/**
 * Builds the claim of an interface.
 * @param formerAddresses a JSON list of the addresses to request if the interface requests none itself
 */
export function newClaim(
  ref: { namespace: string; name: string },
  owner: ClaimOwner,
  desired: DesiredClaim,
  formerAddresses?: string,
): IPAMClaim {
  const annotations = {
    ...(formerAddresses !== undefined && formerRequest(formerAddresses)),
    ...ownerAnnotations(owner),
    ...interfaceAnnotations(desired),
  };
  return {
    apiVersion: IPAM_CLAIM_API_VERSION,
    kind: IPAM_CLAIM_KIND,
    metadata: {
      ...ref,
      labels: { [CLAIM_VM_LABEL]: labelValue(owner.name) },
      annotations,
      finalizers: [CLAIM_FINALIZER],
      ownerReferences: [ownerReferenceTo(owner)],
    },
    spec: { network: desired.network, interface: desired.podInterface },
  };
}

/** Builds the successor of a claim that a user deleted. It requests the same addresses, unless the VM requests others. */
export function successorOf(claim: IPAMClaim, owner: ClaimOwner, desired: DesiredClaim): IPAMClaim {
  const { namespace = '', name } = claim.metadata;
  const ips = claim.status?.ips ?? [];
  const { [CLAIM_REQUESTED_ADDRESSES]: request, [CLAIM_REQUEST_ORIGIN]: origin } = claim.metadata.annotations ?? {};
  const requested = ips.length > 0 ? JSON.stringify(ips) : origin === TEMPLATE_ORIGIN ? undefined : request;
  return newClaim({ namespace, name }, owner, desired, requested);
}

/**
 * Returns the changes that make an existing claim that of `owner` and `desired`; undefined if there are none.
 * @param isAdopted the claim's records are not those of this owner
 */
export function changesTo(
  claim: IPAMClaim,
  owner: ClaimOwner,
  desired?: DesiredClaim,
  isAdopted = false,
): ClaimChanges | undefined {
  const changes = { ...ownerChanges(claim, owner), ...(isBeingDeleted(claim) ? {} : metadataChanges(claim, owner)) };
  const annotations = difference<string | null>(claim.metadata.annotations, {
    ...ownerAnnotations(owner),
    // MAC addresses and request are removed once the VM no longer specifies or has them
    ...(desired &&
      !isBeingDeleted(claim) && {
        [CLAIM_MAC]: null,
        [CLAIM_GUEST_MAC]: null,
        [CLAIM_MAC_SINCE]: macSince(claim, desired, isAdopted) ?? null,
        ...withdrawnRequest(claim, desired),
        ...interfaceAnnotations(desired),
      }),
  });
  if (annotations !== undefined) changes.annotations = annotations;
  if (desired && !isBeingDeleted(claim) && desired.podInterface !== claim.spec.interface) {
    changes.interface = desired.podInterface;
  }
  return Object.keys(changes).length === 0 ? undefined : changes;
}

function ownerChanges(claim: IPAMClaim, owner: ClaimOwner): ClaimChanges {
  return isControlledBy(claim, owner) ? {} : { ownerReferences: withController(claim, owner) };
}

/** These changes are of no use to a claim that is being deleted, and the API server would reject a new finalizer. */
function metadataChanges(claim: IPAMClaim, owner: ClaimOwner): ClaimChanges {
  const labels = difference(claim.metadata.labels, { [CLAIM_VM_LABEL]: labelValue(owner.name) });
  const finalizers = claim.metadata.finalizers ?? [];
  return {
    ...(labels && { labels }),
    ...(!finalizers.includes(CLAIM_FINALIZER) && { finalizers: [...finalizers, CLAIM_FINALIZER] }),
  };
}

function ownerAnnotations(owner: ClaimOwner): Record<string, string> {
  return {
    [CLAIM_OWNER_NAME]: owner.name,
    [CLAIM_OWNER_UID]: owner.uid,
    // a restored claim without its addresses would get others
    [VELERO_RESTORE_STATUS]: 'true',
  };
}

/** Requests of other origins stay: those of a predecessor, or of the creator of the claim. */
function withdrawnRequest({ metadata }: IPAMClaim, { request }: DesiredClaim): Record<string, null> {
  const isWithdrawn = request === undefined && metadata.annotations?.[CLAIM_REQUEST_ORIGIN] === TEMPLATE_ORIGIN;
  return isWithdrawn ? { [CLAIM_REQUESTED_ADDRESSES]: null, [CLAIM_REQUEST_ORIGIN]: null } : {};
}

function interfaceAnnotations(desired: DesiredClaim): Record<string, string> {
  const requested = requestText(desired);
  return {
    [CLAIM_VM_NETWORK]: desired.vmNetwork,
    [CLAIM_NAD]: desired.nad,
    ...(requested !== undefined && { [CLAIM_REQUESTED_ADDRESSES]: requested, [CLAIM_REQUEST_ORIGIN]: TEMPLATE_ORIGIN }),
    ...(desired.mac !== undefined && { [CLAIM_MAC]: desired.mac }),
    ...(desired.guestMac !== undefined && { [CLAIM_GUEST_MAC]: desired.guestMac }),
  };
}

/**
 * The foreground deletion of a VMI must not wait for its claims, because the claims wait for the VMI. That of a VM may, because the VMIs and pods
 * for which its claims wait end first.
 */
function ownerReferenceTo(owner: ClaimOwner): OwnerReference {
  return {
    apiVersion: KUBEVIRT_API_VERSION,
    ...owner,
    controller: true,
    blockOwnerDeletion: owner.kind === VIRTUAL_MACHINE_KIND,
  };
}

function isControlledBy(claim: IPAMClaim, owner: ClaimOwner): boolean {
  const controller = controllerOf(claim);
  if (controller === undefined) return false;
  const expected = ownerReferenceTo(owner);
  return (
    isKubeVirtGroup(controller.apiVersion) &&
    controller.kind === expected.kind &&
    controller.name === expected.name &&
    controller.uid === expected.uid &&
    (controller.blockOwnerDeletion ?? false) === expected.blockOwnerDeletion
  );
}

function withController(claim: IPAMClaim, owner: ClaimOwner): OwnerReference[] {
  const others = (claim.metadata.ownerReferences ?? []).filter(
    ({ controller, uid }) => !controller && uid !== owner.uid,
  );
  return [...others, ownerReferenceTo(owner)];
}

function difference<V extends string | null>(
  current: Record<string, string> | undefined,
  wanted: Record<string, V>,
): Record<string, V> | undefined {
  const changed = Object.entries(wanted).filter(([key, value]) => (current?.[key] ?? null) !== value);
  return changed.length === 0 ? undefined : Object.fromEntries(changed);
}
