import {
  type ClaimOwner,
  type IPAMClaim,
  claimName,
  isWorkloadClaim,
  claimOwnerOf,
  swappedClaimName,
} from './ipam-claim.js';
import { type VirtualMachineInstance, controllingVm } from './kubevirt.js';
import { controllerOf, isBeingDeleted } from './meta.js';
import { CLAIM_VM_NETWORK, VIRTUAL_MACHINE_INSTANCE_KIND, VIRTUAL_MACHINE_KIND } from './names.js';

/** Which claims are whose: what controller and webhook must see alike. */

/** Whose claims a VMI uses: its VM's, or its own. KubeVirt gives a VMI the name of its VM: another name is no VM of it. */
export function ownerOfVmi(vmi: VirtualMachineInstance): ClaimOwner {
  const { name, uid = '' } = vmi.metadata;
  const vm = controllingVm(vmi);
  if (vm?.name !== name) return { kind: VIRTUAL_MACHINE_INSTANCE_KIND, name, uid };
  return { kind: VIRTUAL_MACHINE_KIND, ...vm };
}

/** True where the claim names that owner. A UID alone proves nothing: whoever makes a VMI writes its ownerReferences. */
export function isOwnedBy(claim: IPAMClaim, { name, uid }: Pick<ClaimOwner, 'name' | 'uid'>): boolean {
  const owner = claimOwnerOf(claim);
  return owner?.uid === uid && owner.name === name;
}

/** True where the claim was made for that network of the VM's spec, by us or by kubevirt/ipam-extensions. */
export function isForVmNetwork(claim: IPAMClaim, vm: string, vmNetwork: string): boolean {
  const noted = claim.metadata.annotations?.[CLAIM_VM_NETWORK];
  if (noted !== undefined) return noted === vmNetwork;
  return [claimName(vm, vmNetwork), ipamExtensionsClaimName(vm, vmNetwork)].includes(claim.metadata.name);
}

/** The names under which a claim for that network of the VM's spec may be found: for those who cannot look through all claims. */
export function possibleClaimNames(vm: string, vmNetwork: string, cniNetwork: string): readonly string[] {
  return [
    ...new Set([
      claimName(vm, vmNetwork),
      ipamExtensionsClaimName(vm, vmNetwork),
      swappedClaimName(vm, vmNetwork, cniNetwork),
    ]),
  ];
}

/** What kubevirt/ipam-extensions calls the claim (`ComposeKey`): valid runs joined by dots. Several networks of a VM may share a name. */
export function ipamExtensionsClaimName(vm: string, vmNetwork: string): string {
  const runs = `${vm}.${vmNetwork}`.toLowerCase().match(/[a-z0-9]([-a-z0-9]*[a-z0-9])?/g) ?? [];
  return runs.join('.').slice(0, 253);
}

/**
 * Which of the VM's networks a claim serves.
 * @param networks those on the claim's CNI network, in the order of the spec
 * @returns its name. If kubevirt/ipam-extensions made one claim for several networks, its interface decides, then the exact name, then the order.
 */
export function servedVmNetwork(
  claim: IPAMClaim,
  vm: string,
  networks: readonly { readonly name: string; readonly podInterface: string }[],
): string | undefined {
  const fitting = networks.filter(({ name }) => isForVmNetwork(claim, vm, name));
  const best =
    fitting.find(({ podInterface }) => podInterface === claim.spec.interface) ??
    fitting.find(({ name }) => claimName(vm, name) === claim.metadata.name) ??
    fitting[0];
  return best?.name;
}

/** Nobody owns it, and nobody is remembered to have owned it. */
export function hasNoOwner(claim: IPAMClaim): boolean {
  return claimOwnerOf(claim) === undefined;
}

/**
 * Why a claim is in the way, as the rest of a sentence about it: the same words for events, logs and refusals. Without UIDs, because anybody
 * may be refused.
 * @param requester who wants the claim's name; another owner of the same kind and name is an earlier or a later one
 */
export function describeClaimOwner(claim: IPAMClaim, requester?: Pick<ClaimOwner, 'kind' | 'name'>): string {
  const owner = claimOwnerOf(claim);
  if (owner === undefined) {
    return isBeingDeleted(claim)
      ? 'belongs to nobody and is being deleted'
      : `belongs to nobody and is for network "${claim.spec.network}"`;
  }
  const kind = controllerOf(claim)?.kind ?? (isWorkloadClaim(claim) ? VIRTUAL_MACHINE_KIND : 'owner');
  const another = requester?.kind === kind && requester.name === owner.name ? 'another ' : '';
  return `belongs to ${another}${kind} ${owner.name}`;
}
