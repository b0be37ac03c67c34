import { type ClaimOwner, type IPAMClaim, claimNadOf } from '../../api/ipam-claim.js';
import {
  type SecondaryNetwork,
  type VirtualMachine,
  type VirtualMachineInstance,
  secondaryNetworks,
} from '../../api/kubevirt.js';
import { type KubeObject, isBeingDeleted, joinKey } from '../../api/meta.js';
import { EventReason, VIRTUAL_MACHINE_KIND } from '../../api/names.js';
import { podInterfaceName } from '../../api/pod-interface.js';
import { isForVmNetwork, ownerOfVmi } from '../../api/vm-claims.js';
import { addressRequestOf, unservedRequests } from './address-requests.js';
import { readSpecifiedMac } from './mac-addresses.js';
import type { NetworkLookup, ObservedWorkload } from './observed-workload.js';
import type { OwnedClaim } from './ownership.js';
import type { DesiredClaim } from './desired-claim.js';

/** A NAD, a request or a MAC address that cannot be used; it stops nothing but its own interface. */
export interface InterfaceProblem {
  reason: EventReason;
  message: string;
}

/** What one living owner wants. */
export interface OwnerClaims {
  owner: ClaimOwner;
  claims: DesiredClaim[];
  problems: InterfaceProblem[];
}

/**
 * The claims that the owners of this name want, in the order in which they are served. There is one owner, unless a VM and a VMI
 * that is not the VM's (yet) share the name: then the VMI, which runs, comes first. An owner that is being deleted wants nothing new.
 * @param owned the claims that exist: they stay wanted where no new one would be made
 */
export function findDesiredClaims(observed: ObservedWorkload, owned: readonly OwnedClaim[]): OwnerClaims[] {
  const { vm } = observed;
  const running = unlessDeleted(observed.vmi);
  const living = unlessDeleted(vm);
  const runningOwner = running && ownerOfVmi(running);
  const demands: OwnerClaims[] = [];
  if (runningOwner !== undefined && runningOwner.uid !== vm?.metadata.uid) {
    demands.push(desiredClaimsOf(runningOwner, networksOf(running, undefined), observed, owned));
  }
  if (living !== undefined) {
    const { name, uid = '' } = living.metadata;
    const networks = networksOf(runningOwner?.uid === uid ? running : undefined, living);
    demands.push(desiredClaimsOf({ kind: VIRTUAL_MACHINE_KIND, name, uid }, networks, observed, owned));
  }
  return demands;
}

function unlessDeleted<T extends KubeObject>(object: T | undefined): T | undefined {
  return object === undefined || isBeingDeleted(object) ? undefined : object;
}

/** Both sides count, so that a hotplug is served at once and a swapped network has both its claims; what runs comes first. */
function networksOf(vmi: VirtualMachineInstance | undefined, vm: VirtualMachine | undefined): SecondaryNetwork[] {
  return [
    ...secondaryNetworks(vmi?.spec, vmi?.metadata.namespace ?? ''),
    ...secondaryNetworks(vm?.spec?.template?.spec, vm?.metadata.namespace ?? ''),
  ];
}

function desiredClaimsOf(
  owner: ClaimOwner,
  networks: readonly SecondaryNetwork[],
  observed: ObservedWorkload,
  owned: readonly OwnedClaim[],
): OwnerClaims {
  const held = owned.filter((claim) => claim.owner.uid === owner.uid).map(({ claim }) => claim);
  const interfaces = new Map<string, DesiredClaim>();
  const problems = new Map<string, InterfaceProblem>();
  for (const network of networks) {
    if (network.isUnplugRequested) continue;
    const nad = joinKey(network.nad.namespace, network.nad.name);
    const lookup = observed.networks.get(nad) ?? { found: false };
    const its = held.filter((claim) => isForVmNetwork(claim, observed.name, network.name));
    for (const cniNetwork of desiredCniNetworks({ lookup, nad, its, enabled: observed.canCreateClaims })) {
      const key = `${network.name}\n${cniNetwork}`;
      if (interfaces.has(key)) continue;
      const podInterface = reportedInterface(owner, network.name, observed) ?? podInterfaceName(network.name);
      const { wishes, vain } = readRequestedValues(owner, network.name, nad, observed);
      interfaces.set(key, { vmNetwork: network.name, network: cniNetwork, nad, podInterface, ...wishes });
      for (const problem of vain) problems.set(problem.message, problem);
    }
    const problem = observed.canCreateClaims ? nadProblemOf(network.name, nad, lookup) : undefined;
    if (problem !== undefined) problems.set(problem.message, problem);
  }
  const served = new Set([...interfaces.values()].map(({ vmNetwork }) => vmNetwork));
  for (const problem of unservedRequests(owner, served, observed)) problems.set(problem, problemOfRequest(problem));
  return { owner, claims: [...interfaces.values()], problems: [...problems.values()] };
}

/** What the owner's spec says of an interface's addresses; `vain`: what of it cannot be read. */
function readRequestedValues(
  owner: ClaimOwner,
  vmNetwork: string,
  nad: string,
  observed: ObservedWorkload,
): { wishes: Pick<DesiredClaim, 'request' | 'mac'>; vain: InterfaceProblem[] } {
  const request = addressRequestOf(owner, vmNetwork, nad, observed);
  const named = readSpecifiedMac(owner, vmNetwork, observed);
  return {
    wishes: { ...(request.kind !== 'none' && { request }), ...(named.kind === 'mac' && { mac: named.mac }) },
    vain: [
      ...(request.kind === 'invalid' ? [problemOfRequest(request.problem)] : []),
      ...(named.kind === 'invalid' ? [problemOfMac(named.problem)] : []),
    ],
  };
}

/** The CNI networks on which an interface shall have a claim: none, one, or where the NAD cannot be read those of its claims. */
function desiredCniNetworks(given: {
  lookup: NetworkLookup;
  nad: string;
  its: readonly IPAMClaim[];
  enabled: boolean;
}): string[] {
  const { lookup, nad, its, enabled } = given;
  if (!lookup.found || !lookup.config.ok) {
    return its.filter((claim) => (claimNadOf(claim) ?? nad) === nad).map((claim) => claim.spec.network);
  }
  const { name, allowPersistentIPs } = lookup.config.network;
  if (enabled && allowPersistentIPs) return [name];
  // the flag counts when a claim is made: a NAD that loses it, even with its name, costs nobody their addresses
  const kept = its.filter((claim) => !isBeingDeleted(claim));
  return kept
    .filter((claim) => claim.spec.network === name || (claimNadOf(claim) ?? nad) === nad)
    .map((claim) => claim.spec.network);
}

function reportedInterface(owner: ClaimOwner, vmNetwork: string, { vmi }: ObservedWorkload): string | undefined {
  if (vmi === undefined || ownerOfVmi(vmi).uid !== owner.uid) return undefined;
  return vmi.status?.interfaces?.find(({ name }) => name === vmNetwork)?.podInterfaceName;
}

function problemOfRequest(message: string): InterfaceProblem {
  return { reason: EventReason.RequestedAddressesInvalid, message };
}

function problemOfMac(message: string): InterfaceProblem {
  return { reason: EventReason.MacAddressInvalid, message };
}

function nadProblemOf(vmNetwork: string, nad: string, lookup: NetworkLookup): InterfaceProblem | undefined {
  const subject = `network "${vmNetwork}": NetworkAttachmentDefinition ${nad}`;
  if (!lookup.found) {
    const message = `${subject} does not exist: create it, or correct networkName in the VM's spec`;
    return { reason: EventReason.NetworkNotFound, message };
  }
  if (lookup.config.ok) return undefined;
  const { field, message } = lookup.config.problem;
  return { reason: EventReason.NetworkInvalid, message: `${subject}: ${field} ${message}` };
}
