import { severalDefaultRoutes } from '../../../api/networks/default-routes.js';
import { EventReason } from '../../../api/event-reasons.js';
import { type ClaimOwner, type IPAMClaim, claimNadOf } from '../../../api/ipam-claim.js';
import { DEVICE_NETWORK_PROBLEM } from '../../../api/kubevirt.js';
import { type KubeObject, isBeingDeleted } from '../../../api/meta.js';
import { unintendedLoss } from '../../../api/networks/ipam-delegation.js';
import { DEFAULT_ROUTE_ANNOTATION, VIRTUAL_MACHINE_KIND } from '../../../api/names.js';
import { podInterfaceName } from '../../../api/pod.js';
import { requestedNetworks } from '../../../api/networks/requested-addresses.js';
import { isForVmNetwork } from '../../../api/vm-claims.js';
import { PRIMARY_POD_INTERFACE } from '../../../cluster/primary-network.js';
import { addressRequestOf, readSpecifiedMac, requestingSpecOf, unservedRequests } from './address-requests.js';
import { type DesiredClaim, type InterfaceProblem, findGuestMacs } from './desired-claim.js';
import type { NetworkLookup, ObservedWorkload, OwnerSpec } from './observed-workload.js';
import { type OwnedClaim, runningVmiOf } from './ownership.js';

/** What one living owner wants. */
export interface OwnerClaims {
  owner: ClaimOwner;
  claims: DesiredClaim[];
  problems: InterfaceProblem[];
}

type Report = (reason: EventReason, message: string) => void;

/**
 * Returns the claims that the living owners of the workload's name should have, in the order in which they are created. There is one owner, unless
 * a VM and a VMI that does not belong to it share the name: then the VMI comes first because it runs. An owner that is being deleted gets no new
 * claims.
 * @param owned the claims that exist: they stay desired even if no new ones would be created
 */
export function findDesiredClaims(observed: ObservedWorkload, owned: readonly OwnedClaim[]): OwnerClaims[] {
  const { vm } = observed;
  const running = unlessDeleted(runningVmiOf(observed));
  const living = unlessDeleted(vm);
  const found: OwnerClaims[] = [];
  if (running !== undefined && running.owner.uid !== vm?.metadata.uid) {
    found.push(desiredClaimsOf(running.owner, [running.spec], observed, owned));
  }
  if (living !== undefined) {
    const { name, uid = '' } = living.metadata;
    // both specs count, so that a hotplugged interface gets its claim at once and a swapped network has both of its claims
    const specs = running?.owner.uid === uid ? [running.spec, living.spec] : [living.spec];
    found.push(desiredClaimsOf({ kind: VIRTUAL_MACHINE_KIND, name, uid }, specs, observed, owned));
  }
  return found;
}

function unlessDeleted<T extends KubeObject>(object: T | undefined): T | undefined {
  return object === undefined || isBeingDeleted(object) ? undefined : object;
}

function desiredClaimsOf(
  owner: ClaimOwner,
  specs: readonly OwnerSpec[],
  observed: ObservedWorkload,
  owned: readonly OwnedClaim[],
): OwnerClaims {
  const existing = owned.filter((claim) => claim.owner.uid === owner.uid).map(({ claim }) => claim);
  const claims = new Map<string, DesiredClaim>();
  const problems = new Map<string, InterfaceProblem>();
  const report: Report = (reason, message) => problems.set(message, { reason, message });
  for (const served of specs.flatMap((spec) => [...spec.servedNetworks.values()])) {
    const { name: vmNetwork, nadKey: nad } = served;
    if (served.isUnplugRequested) continue;
    const lookup = observed.networks.get(nad) ?? { found: false };
    const own = existing.filter((claim) => isForVmNetwork(claim, observed.name, vmNetwork));
    const networks = desiredCniNetworks(lookup, nad, own, observed);
    for (const network of networks) {
      const key = `${vmNetwork}\n${network}`;
      if (claims.has(key)) continue;
      const podInterface = served.isPrimary
        ? primaryInterface(own, network)
        : (reportedInterface(owner, vmNetwork, observed) ?? podInterfaceName(vmNetwork));
      const settings = readSettings(owner, { vmNetwork, nad }, observed, report);
      claims.set(key, { vmNetwork, network, nad, podInterface, ...settings });
    }
    if (!observed.canCreateClaims) continue;
    reportNadProblem(vmNetwork, nad, lookup, report);
    if (networks.length === 0) reportUnintendedLoss(vmNetwork, nad, lookup, report);
  }
  const servedNames = new Set([...claims.values()].map(({ vmNetwork }) => vmNetwork));
  for (const { reason, message } of otherNetworkProblems(owner, observed)) report(reason, message);
  for (const problem of unservedRequests(owner, servedNames, observed))
    report(EventReason.RequestedAddressesInvalid, problem);
  return { owner, claims: [...claims.values()], problems: [...problems.values()] };
}

/** Reads addresses and MAC address of an interface from the owner's spec, and its guest's MAC address. Invalid values are reported and left out. */
function readSettings(
  owner: ClaimOwner,
  { vmNetwork, nad }: Pick<DesiredClaim, 'vmNetwork' | 'nad'>,
  observed: ObservedWorkload,
  report: Report,
): Omit<DesiredClaim, 'vmNetwork' | 'network' | 'nad' | 'podInterface'> {
  const request = addressRequestOf(owner, vmNetwork, nad, observed);
  const mac = readSpecifiedMac(owner, vmNetwork, observed);
  if (request.kind === 'invalid') report(EventReason.RequestedAddressesInvalid, request.problem);
  if (mac.kind === 'invalid') report(EventReason.MacAddressInvalid, mac.problem);
  return {
    ...(request.kind !== 'none' && { request }),
    ...(mac.kind === 'mac' && { mac: mac.mac }),
    ...findGuestMacs(owner, { vmNetwork, nad }, observed),
    observedAt: observed.now,
  };
}

/** Returns the CNI networks on which an interface should have a claim. If the NAD cannot be read, those are the networks of its existing claims. */
function desiredCniNetworks(
  lookup: NetworkLookup,
  nad: string,
  own: readonly IPAMClaim[],
  { canCreateClaims, areNetworksKnown }: ObservedWorkload,
): string[] {
  if (!areNetworksKnown) return own.filter((claim) => !isBeingDeleted(claim)).map((claim) => claim.spec.network);
  const isOnNad = (claim: IPAMClaim) => (claimNadOf(claim) ?? nad) === nad;
  if (!lookup.found || !lookup.config.ok) return own.filter(isOnNad).map((claim) => claim.spec.network);
  const { name, allowPersistentIPs } = lookup.config.network;
  if (canCreateClaims && allowPersistentIPs) return [name];
  // the flag is read when a claim is created: if the NAD loses it, or changes its network's name, existing claims keep their addresses
  return own
    .filter((claim) => !isBeingDeleted(claim) && (claim.spec.network === name || isOnNad(claim)))
    .map((claim) => claim.spec.network);
}

/** Never changed: the write would collide with the first status of OVN-Kubernetes. */
function primaryInterface(own: readonly IPAMClaim[], network: string): string {
  return own.find((claim) => claim.spec.network === network)?.spec.interface ?? PRIMARY_POD_INTERFACE;
}

function reportedInterface(owner: ClaimOwner, vmNetwork: string, { vmi }: ObservedWorkload): string | undefined {
  if (vmi?.owner.uid !== owner.uid) return undefined;
  return vmi.reported.find(({ name }) => name === vmNetwork)?.podInterfaceName;
}

function reportNadProblem(vmNetwork: string, nad: string, lookup: NetworkLookup, report: Report): void {
  const subject = `Network "${vmNetwork}": NetworkAttachmentDefinition ${nad}`;
  if (!lookup.found) {
    report(
      EventReason.NetworkNotFound,
      `${subject} does not exist: create it, or correct networkName in the VM's spec`,
    );
  } else if (!lookup.config.ok) {
    const { field, message } = lookup.config.problem;
    report(EventReason.NetworkInvalid, `${subject}: ${field} ${message}`);
  }
}

/** Returns why networks without a secondary NAD get no persistent addresses: the pod network although its namespace, its NAD or a request says so, and devices. */
function otherNetworkProblems(owner: ClaimOwner, observed: ObservedWorkload): InterfaceProblem[] {
  const spec = requestingSpecOf(owner, observed);
  if (!observed.canCreateClaims || spec === undefined) return [];
  const devices = spec.deviceNetworks.map((name) => ({
    reason: EventReason.NetworkNotServed,
    message: `Network "${name}" ${DEVICE_NETWORK_PROBLEM}`,
  }));
  const others = [findReplacementProblem, findPrimaryProblem, findRouteProblem].map((find) => find(spec, observed));
  return [...others.filter((problem) => problem !== undefined), ...devices];
}

function findRouteProblem(
  { annotations, dhcpNetworks }: OwnerSpec,
  { networks }: ObservedWorkload,
): InterfaceProblem | undefined {
  const several = severalDefaultRoutes(dhcpNetworks, annotations?.[DEFAULT_ROUTE_ANNOTATION], (nad) => {
    const lookup = networks.get(nad);
    return lookup?.found === true ? lookup.delivery : undefined;
  });
  return several && { reason: EventReason.SeveralDefaultRoutes, message: several.message };
}

/** Silent if nobody expects persistent addresses of the network. */
function findReplacementProblem(
  { replacement, annotations }: OwnerSpec,
  { networks }: ObservedWorkload,
): InterfaceProblem | undefined {
  if (replacement === undefined) return undefined;
  const { name, nadKey } = replacement;
  const lookup = networks.get(nadKey);
  const isPersistent = lookup?.found === true && lookup.config.ok && lookup.config.network.allowPersistentIPs;
  if (!isPersistent && !requestedNetworks(annotations).includes(name)) return undefined;
  const message =
    `Network "${name}" replaces the pod network (multus.default), which gets no persistent addresses. Make ` +
    `NetworkAttachmentDefinition ${nadKey} a secondary network of the VM. With OVN-Kubernetes, you can also use a primary ` +
    'user-defined network with the feature gate PrimaryUserDefinedNetwork';
  return { reason: EventReason.NetworkNotServed, message };
}

function findPrimaryProblem(
  { podNetwork }: OwnerSpec,
  { namespace, needsPrimaryNetwork, primaryNetwork }: ObservedWorkload,
): InterfaceProblem | undefined {
  if (podNetwork === undefined || !needsPrimaryNetwork) return undefined;
  if (primaryNetwork === undefined) {
    const message =
      `Network "${podNetwork}": namespace ${namespace} is labelled for a primary user-defined network, but has no valid ` +
      'NetworkAttachmentDefinition with "role": "primary": create a UserDefinedNetwork with role Primary';
    return { reason: EventReason.NetworkNotFound, message };
  }
  if (primaryNetwork.others === 0) return undefined;
  const message =
    `Network "${podNetwork}": namespace ${namespace} has ${primaryNetwork.others + 1} NetworkAttachmentDefinitions with ` +
    `"role": "primary", and ${primaryNetwork.nadKey} is used, the first by name: delete the others`;
  return { reason: EventReason.NetworkInvalid, message };
}

/** The VM has another address at each start, and nothing else would say so. */
function reportUnintendedLoss(vmNetwork: string, nad: string, lookup: NetworkLookup, report: Report): void {
  const loss = lookup.found && lookup.config.ok ? unintendedLoss(lookup.config.network, lookup.delegation) : undefined;
  if (loss === undefined) return;
  const message = `Network "${vmNetwork}" does not keep its address: NetworkAttachmentDefinition ${nad}: ${loss}`;
  report(EventReason.AddressNotPersistent, message);
}
