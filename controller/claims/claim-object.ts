import {
  CLAIM_FINALIZER,
  CLAIM_MAC,
  CLAIM_NAD,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_VM_LABEL,
  CLAIM_VM_NETWORK,
  IPAM_CLAIM_API_VERSION,
  IPAM_CLAIM_KIND,
  KUBEVIRT_API_VERSION,
  VIRTUAL_MACHINE_KIND,
} from '../../api/names.js';
import { type ClaimOwner, type IPAMClaim, labelValue } from '../../api/ipam-claim.js';
import { type OwnerReference, controllerOf, isBeingDeleted } from '../../api/meta.js';
import { isKubeVirtGroup } from '../../api/kubevirt.js';
import { requestText } from './address-requests.js';
import type { DesiredClaim } from './desired-claim.js';

/** What shall differ in a claim; lists are whole, maps hold only what changes: null is what goes. */
export interface ClaimChanges {
  labels?: Record<string, string>;
  annotations?: Record<string, string | null>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  interface?: string;
}

/**
 * The claim of an interface, as it is created.
 * @param formerAddresses the addresses that it asks for, as a JSON list, where its interface asks for none itself
 */
export function newClaim(
  ref: { namespace: string; name: string },
  owner: ClaimOwner,
  wanted: DesiredClaim,
  formerAddresses?: string,
): IPAMClaim {
  const annotations = {
    ...(formerAddresses !== undefined && { [CLAIM_REQUESTED_ADDRESSES]: formerAddresses }),
    ...ownerAnnotations(owner),
    ...interfaceAnnotations(wanted),
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
    spec: { network: wanted.network, interface: wanted.podInterface },
  };
}

/** The claim that follows one which a user deleted: it asks for the same addresses, unless the VM asks for others. */
export function successorOf(claim: IPAMClaim, owner: ClaimOwner, wanted: DesiredClaim): IPAMClaim {
  const { namespace = '', name } = claim.metadata;
  const ips = claim.status?.ips ?? [];
  const requested = ips.length > 0 ? JSON.stringify(ips) : claim.metadata.annotations?.[CLAIM_REQUESTED_ADDRESSES];
  return newClaim({ namespace, name }, owner, wanted, requested);
}

/** What makes an existing claim that of `owner` and `wanted`; undefined where it is so already. */
export function changesTo(claim: IPAMClaim, owner: ClaimOwner, wanted?: DesiredClaim): ClaimChanges | undefined {
  const changes = { ...ownerChanges(claim, owner), ...(isBeingDeleted(claim) ? {} : metadataChanges(claim, owner)) };
  const annotations = difference<string | null>(claim.metadata.annotations, {
    ...ownerAnnotations(owner),
    // it names a MAC address for as long as the VM does
    ...(wanted && !isBeingDeleted(claim) && { [CLAIM_MAC]: null, ...interfaceAnnotations(wanted) }),
  });
  if (annotations !== undefined) changes.annotations = annotations;
  if (wanted && !isBeingDeleted(claim) && wanted.podInterface !== claim.spec.interface) {
    changes.interface = wanted.podInterface;
  }
  return Object.keys(changes).length === 0 ? undefined : changes;
}

function ownerChanges(claim: IPAMClaim, owner: ClaimOwner): ClaimChanges {
  return isControlledBy(claim, owner) ? {} : { ownerReferences: withController(claim, owner) };
}

/** What a claim that is being deleted has no use for; the API server would refuse it a finalizer, too. */
function metadataChanges(claim: IPAMClaim, owner: ClaimOwner): ClaimChanges {
  const labels = difference(claim.metadata.labels, { [CLAIM_VM_LABEL]: labelValue(owner.name) });
  const finalizers = claim.metadata.finalizers ?? [];
  return {
    ...(labels && { labels }),
    ...(!finalizers.includes(CLAIM_FINALIZER) && { finalizers: [...finalizers, CLAIM_FINALIZER] }),
  };
}

function ownerAnnotations(owner: ClaimOwner): Record<string, string> {
  return { [CLAIM_OWNER_NAME]: owner.name, [CLAIM_OWNER_UID]: owner.uid };
}

function interfaceAnnotations(wanted: DesiredClaim): Record<string, string> {
  const requested = requestText(wanted);
  return {
    [CLAIM_VM_NETWORK]: wanted.vmNetwork,
    [CLAIM_NAD]: wanted.nad,
    ...(requested !== undefined && { [CLAIM_REQUESTED_ADDRESSES]: requested }),
    ...(wanted.mac !== undefined && { [CLAIM_MAC]: wanted.mac }),
  };
}

/**
 * A VMI does not wait for its claims: its foreground deletion would wait for the claim, and the claim for the VMI.
 * A VM may: what its claims wait for ends before it.
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
