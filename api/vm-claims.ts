import {
  type ClaimOwner,
  type IPAMClaim,
  claimName,
  claimVmNetworkOf,
  isWorkloadClaim,
  claimOwnerOf,
  swappedClaimName,
} from './ipam-claim.js';
import { describeValue } from './json.js';
import { type VirtualMachineInstance, controllingVm } from './kubevirt.js';
import { byAge, controllerOf, isBeingDeleted } from './meta.js';
import { podInterfaceName } from './pod.js';
import { CLAIM_VM_NETWORK, VIRTUAL_MACHINE_INSTANCE_KIND, VIRTUAL_MACHINE_KIND } from './names.js';

/** Rules for the ownership of claims, which controller and webhook share. */

/** Returns the owner of a VMI's claims: its VM, or the VMI itself. A VMI has the name of its VM, so a controller of another name is not its VM. */
export function ownerOfVmi(vmi: VirtualMachineInstance): ClaimOwner {
  const { name, uid = '' } = vmi.metadata;
  const vm = controllingVm(vmi);
  if (vm?.name !== name) return { kind: VIRTUAL_MACHINE_INSTANCE_KIND, name, uid };
  return { kind: VIRTUAL_MACHINE_KIND, ...vm };
}

/** True if the claim names that owner. The UID alone proves nothing, because the creator of a VMI writes its ownerReferences. */
export function isOwnedBy(claim: IPAMClaim, { name, uid }: Pick<ClaimOwner, 'name' | 'uid'>): boolean {
  const owner = claimOwnerOf(claim);
  return owner?.uid === uid && owner.name === name;
}

/** True if the claim was created for that network of the VM's spec, by Holdfast or by kubevirt/ipam-extensions. */
export function isForVmNetwork(claim: IPAMClaim, vm: string, vmNetwork: string): boolean {
  const noted = claim.metadata.annotations?.[CLAIM_VM_NETWORK];
  if (noted !== undefined) return noted === vmNetwork;
  return unnotedClaimNames(vm, vmNetwork).includes(claim.metadata.name);
}

/** Returns the names by which a claim without an annotation is recognized as one for that network of the VM's spec. */
export function unnotedClaimNames(vm: string, vmNetwork: string): readonly string[] {
  return [...new Set([claimName(vm, vmNetwork), ipamExtensionsClaimName(vm, vmNetwork)])];
}

/** Returns the names that a claim for that network of the VM's spec may have, for callers that cannot list all claims. */
export function possibleClaimNames(vm: string, vmNetwork: string, cniNetwork: string): readonly string[] {
  return [...unnotedClaimNames(vm, vmNetwork), swappedClaimName(vm, vmNetwork, cniNetwork)];
}

/** Returns the name that kubevirt/ipam-extensions gives the claim (`ComposeKey`): valid runs joined by dots. Networks of a VM may share it. */
export function ipamExtensionsClaimName(vm: string, vmNetwork: string): string {
  const runs = `${vm}.${vmNetwork}`.toLowerCase().match(/[a-z0-9]([-a-z0-9]*[a-z0-9])?/g) ?? [];
  return runs.join('.').slice(0, 253);
}

/**
 * Returns the name of the VM's network that a claim serves. If kubevirt/ipam-extensions made one claim for several networks, the claim's
 * interface decides, then the exact name, then the order.
 * @param networks the VM's networks on the claim's CNI network, in the order of the spec
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

/**
 * Returns the claim that serves an interface if several could: one that is being deleted is the last choice. Of the others, the oldest one that Holdfast
 * created or adopted comes first. A second claim beside it is a late one of Holdfast, or one of kubevirt/ipam-extensions.
 */
export function pickClaim(claims: readonly IPAMClaim[]): IPAMClaim | undefined {
  const rank = (claim: IPAMClaim) =>
    (isBeingDeleted(claim) ? 2 : 0) + (claim.metadata.annotations?.[CLAIM_VM_NETWORK] === undefined ? 1 : 0);
  return claims.toSorted((a, b) => rank(a) - rank(b) || byAge(a, b))[0];
}

/** True if the claim has no owner and its annotations name none. */
export function hasNoOwner(claim: IPAMClaim): boolean {
  return claimOwnerOf(claim) === undefined;
}

/** True if there is a claim of the interface's name that it may adopt, because nobody owns it. */
export function isAdoptable(claim: IPAMClaim | undefined, cniNetwork: string): boolean {
  return claim !== undefined && hasNoOwner(claim) && !isBeingDeleted(claim) && claim.spec.network === cniNetwork;
}

/**
 * Describes the owner of a claim that blocks another one, as the rest of a sentence about the claim, for events, logs and denials. Contains no
 * UIDs, because every user may read it.
 * @param requester the owner that needs the claim's name; another owner of the same kind and name is an earlier or later one
 */
export function describeClaimOwner(claim: IPAMClaim, requester?: Pick<ClaimOwner, 'kind' | 'name'>): string {
  const owner = claimOwnerOf(claim);
  if (owner === undefined) {
    const state = isBeingDeleted(claim) ? 'being deleted' : `for network ${describeValue(claim.spec.network)}`;
    return `has no owner and is ${state}`;
  }
  const kind = controllerOf(claim)?.kind ?? (isWorkloadClaim(claim) ? VIRTUAL_MACHINE_KIND : 'owner');
  const another = requester?.kind === kind && requester.name === owner.name ? 'another ' : '';
  return `belongs to ${another}${kind} ${owner.name}`;
}

/** Returns the names that the claim's interface may have in a launcher, except names by position. */
export function claimInterfaces(claim: IPAMClaim): Set<string> {
  const vmNetwork = claimVmNetworkOf(claim);
  const names = [claim.spec.interface, ...(vmNetwork === undefined ? [] : [podInterfaceName(vmNetwork)])];
  return new Set(names.filter((name) => name !== ''));
}
