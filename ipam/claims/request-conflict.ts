import { type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { joinKey } from '../../api/meta.js';
import { AllocationReason, IPAM_CLAIM_KIND, REQUESTED_ADDRESSES_ANNOTATION } from '../../api/names.js';
import { type Address, sameAddress } from '../../addressing/address/address.js';
import type { AllocationResult, SpaceView } from '../../addressing/allocator/allocator.js';
import { readAddressRequest } from './shown/claim-addresses.js';

/** Where the holder of an address is looked up. */
export interface HolderViews {
  view: Pick<SpaceView, 'leaseAt'>;
  /** By key. */
  claims: { get(key: string): IPAMClaim | undefined };
}

/**
 * Says what to do if a requested address is not available. If another claim of the namespace holds and requests it, one VM may be a copy. KubeVirt copies a VM's
 * request into clones, restored VMs, and all VMs of a VirtualMachinePool; the copy does not get the address.
 */
export function explainRequestConflict(
  claim: IPAMClaim,
  result: AllocationResult,
  holders: HolderViews,
): AllocationResult {
  if (result.ok || result.refusal.reason !== AllocationReason.Conflict) return result;
  const { refusal } = result;
  if (refusal.address === undefined || !isRequested(refusal.address, claim)) return result;
  // the message says what to do about the host that has the address
  if (holders.view.leaseAt(refusal.address)?.quarantine !== undefined) return result;
  const copy = claimOwnerOf(claim)?.name;
  const source = sourceOf(refusal.address, claim, holders);
  const remedy =
    copy === undefined || source === undefined
      ? '. Request another address, or wait until this one is free'
      : `, which requests it too: if VM ${copy} is a copy of VM ${source}, remove the network from the annotation ` +
        `${REQUESTED_ADDRESSES_ANNOTATION} in the template of VM ${copy} to get another address, or request a free one there`;
  return { ok: false, refusal: { ...refusal, message: `${refusal.message}${remedy}` } };
}

/** Returns the name of the VM whose claim has requested the address and holds it. Objects of other namespaces are not named. */
function sourceOf(address: Address, { metadata }: IPAMClaim, { view, claims }: HolderViews): string | undefined {
  const { namespace } = metadata;
  const owner = view.leaseAt(address)?.owner;
  if (owner?.kind !== IPAM_CLAIM_KIND || owner.namespace !== namespace) return undefined;
  const holder = claims.get(joinKey(namespace, owner.name));
  if (holder?.metadata.uid !== owner.uid || !isRequested(address, holder)) return undefined;
  return claimOwnerOf(holder)?.name;
}

function isRequested(address: Address, claim: IPAMClaim): boolean {
  const request = readAddressRequest(claim);
  return request.kind === 'addresses' && request.addresses.some((other) => sameAddress(other, address));
}
