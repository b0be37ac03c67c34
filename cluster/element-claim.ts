import { type IPAMClaim, claimName, claimNadOf, swappedClaimName } from '../api/ipam-claim.js';
import { isBeingDeleted, joinKey } from '../api/meta.js';
import type { NetworkConfig } from '../api/network-attachment.js';
import type { NetworkSelection } from '../api/network-selection.js';
import { ordinalInterfaceName } from '../api/pod-interface.js';
import {
  describeClaimOwner,
  isForVmNetwork,
  isOwnedBy,
  hasNoOwner,
  ipamExtensionsClaimName,
  servedVmNetwork,
} from '../api/vm-claims.js';
import type { ClusterView, Recheck } from './cluster-view.js';
import type { VmiNetwork, Workload } from './workload.js';

/** What a network element should refer to. */
export type ElementClaim =
  | { kind: 'claim'; name: string }
  /** Nothing. The warning is for an interface that may miss its addresses for it. */
  | { kind: 'none'; why: string; warning?: string }
  /** A claim that is not the workload's: the pod has to wait. */
  | { kind: 'foreign'; claim: string; reason: string };

/** What a choice is made from. `doubt` is told of each object that a younger look could show differently. */
export interface ClaimChoiceContext {
  workload: Workload;
  /** The interface names that the pod's elements ask for. */
  requested: ReadonlySet<string | undefined>;
  view: ClusterView;
  doubt: (doubt: Recheck) => void;
}

/**
 * Finds the claim of one network element. Pure.
 * @param referenced the claim to which the pod points already, on this interface and NAD
 */
export function chooseClaim(
  selection: NetworkSelection,
  referenced: string | undefined,
  choice: ClaimChoiceContext,
): ElementClaim {
  const network = matchNetwork(selection, choice);
  if (referenced !== undefined) {
    const seen = choice.view.claim(referenced);
    // a name that a tenant wrote beside none of the VM's networks is worth no live read
    if (seen === undefined && network !== undefined) choice.doubt({ kind: 'claim', key: referenced });
    if (seen !== undefined && isOwnedBy(seen, choice.workload.owner)) return { kind: 'claim', name: referenced };
  }
  const chosen = chooseNewClaim(selection, network, choice);
  // its VM was deleted with --cascade=orphan: the VMI, which inherits the claim, runs on
  return chosen.kind === 'foreign' && chosen.claim === referenced ? { kind: 'claim', name: referenced } : chosen;
}

function chooseNewClaim(
  selection: NetworkSelection,
  network: VmiNetwork | undefined,
  choice: ClaimChoiceContext,
): ElementClaim {
  const { workload, view, doubt } = choice;
  if (network === undefined) {
    if (isNamedByKubeVirt(selection)) doubt({ kind: 'vmi', key: workload.vmi });
    const vmi = joinKey(workload.namespace, workload.vmi);
    return { kind: 'none', why: `it is none of the networks of VirtualMachineInstance ${vmi}` };
  }
  const nad = nadKey(selection.nad);
  const isVms = nad === nadKey(network.nad);
  const config = view.network(nad);
  if (config === undefined && isVms) doubt({ kind: 'network', key: nad });

  const own = view
    .claimsOf(workload.owner.uid)
    .filter((claim) => isOwnedBy(claim, workload.owner) && servesNetwork(claim, network, choice));
  const kept = pickOwnClaim(own, nad, config?.ok ? config.network.name : undefined);
  // a pod may still run on the NAD that its VM's network had before
  if (kept !== undefined && (isVms || claimNadOf(kept) === nad)) return { kind: 'claim', name: kept.metadata.name };
  if (!isVms) {
    doubt({ kind: 'vmi', key: workload.vmi });
    return { kind: 'none', why: `the VM has network "${network.name}" on ${nadKey(network.nad)}, not on ${nad}` };
  }
  return expectClaim(network, config, choice);
}

/** What an interface without a claim comes to: a claim that the controller makes, or none. */
function expectClaim(network: VmiNetwork, config: NetworkConfig | undefined, choice: ClaimChoiceContext): ElementClaim {
  const nad = `NetworkAttachmentDefinition ${nadKey(network.nad)}`;
  if (config?.ok !== true) {
    const why = `${nad} ${config === undefined ? 'does not exist: create it' : `cannot be used: ${config.problem.field} ${config.problem.message}`}`;
    return { kind: 'none', why, warning: `network "${network.name}" gets no persistent addresses: ${why}` };
  }
  if (network.isUnplugRequested) return { kind: 'none', why: `network "${network.name}" is being unplugged` };
  if (!config.network.allowPersistentIPs) return { kind: 'none', why: `${nad} does not allow persistent addresses` };
  if (!choice.view.allowsNewClaims) {
    return { kind: 'none', why: `namespace ${choice.workload.namespace} takes no new persistent addresses` };
  }
  return predictClaim(network, config.network.name, choice);
}

/** By the interface's name, which is unique in a pod; several interfaces may share a NAD. */
export function matchNetwork(
  selection: NetworkSelection,
  { workload, requested }: Pick<ClaimChoiceContext, 'workload' | 'requested'>,
): VmiNetwork | undefined {
  const { networks } = workload;
  const wanted = selection.interface;
  if (wanted === undefined) {
    // such an element may also be a network binding's own, beside that of the interface
    return networks.find(
      ({ podInterface, position }) => position === selection.position && !requested.has(podInterface),
    );
  }
  return (
    networks.find(({ podInterface }) => podInterface === wanted) ??
    networks.find(({ position }) => ordinalInterfaceName(position) === wanted)
  );
}

function isNamedByKubeVirt(selection: NetworkSelection): boolean {
  return /^(pod[0-9a-f]{11}|net[1-9]\d*)$/.test(selection.interface ?? '');
}

/** Without a readable NAD, the claim that was made for that NAD; ipam-extensions noted none. */
function pickOwnClaim(own: readonly IPAMClaim[], nad: string, cniNetwork: string | undefined): IPAMClaim | undefined {
  const fitting = own.filter((claim) =>
    cniNetwork === undefined ? (claimNadOf(claim) ?? nad) === nad : claim.spec.network === cniNetwork,
  );
  fitting.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  return fitting.find((claim) => !isBeingDeleted(claim)) ?? fitting[0];
}

/** The claim is for this network of the VM's spec, and for no other one that kubevirt/ipam-extensions gave the same name. */
function servesNetwork(
  claim: IPAMClaim,
  network: VmiNetwork,
  { workload, view }: Pick<ClaimChoiceContext, 'workload' | 'view'>,
): boolean {
  const vm = workload.owner.name;
  if (!isForVmNetwork(claim, vm, network.name)) return false;
  const isBeside = ({ nad, isUnplugRequested }: VmiNetwork) => {
    const config = isUnplugRequested ? undefined : view.network(nadKey(nad));
    return config?.ok === true && config.network.name === claim.spec.network;
  };
  const networks = workload.networks.filter((other) => other === network || isBeside(other));
  return servedVmNetwork(claim, vm, networks) === network.name;
}

/** The claim that the controller makes, or is about to make: its name is known before it exists. */
function predictClaim(network: VmiNetwork, cniNetwork: string, choice: ClaimChoiceContext): ElementClaim {
  const { workload, view, doubt } = choice;
  const { owner } = workload;
  const { name: vmNetwork } = network;
  const former = findIpamExtensionsClaim(network, cniNetwork, choice);
  if (former !== undefined) return { kind: 'claim', name: former };
  for (const name of [claimName(owner.name, vmNetwork), swappedClaimName(owner.name, vmNetwork, cniNetwork)]) {
    const seen = view.claim(name);
    if (seen === undefined) doubt({ kind: 'claim', key: name });
    if (seen === undefined || isUsable(seen, owner, cniNetwork)) return { kind: 'claim', name };
    if (!isOwnedBy(seen, owner)) {
      doubt({ kind: 'claim', key: name });
      const reason = `IPAMClaim ${joinKey(workload.namespace, name)} ${describeClaimOwner(seen, owner)}; the VM starts once it is gone`;
      return { kind: 'foreign', claim: name, reason };
    }
    // ours, but for the network on which the interface was before: the next name is that of the second claim, unless the first is gone
    doubt({ kind: 'claim', key: name });
  }
  return { kind: 'none', why: `both claims of network "${vmNetwork}" are for other CNI networks than "${cniNetwork}"` };
}

/** The claim of kubevirt/ipam-extensions that the controller adopts under its name; the index by owner may not show it yet. */
function findIpamExtensionsClaim(
  network: VmiNetwork,
  cniNetwork: string,
  choice: ClaimChoiceContext,
): string | undefined {
  const { workload, view, doubt } = choice;
  const { owner } = workload;
  const name = ipamExtensionsClaimName(owner.name, network.name);
  if (name === claimName(owner.name, network.name)) return undefined;
  const seen = view.claim(name);
  if (seen === undefined) doubt({ kind: 'claim', key: name });
  const isIt = seen !== undefined && isOwnedBy(seen, owner) && seen.spec.network === cniNetwork;
  return isIt && servesNetwork(seen, network, choice) ? name : undefined;
}

/** Ours, or free for the controller to adopt. */
function isUsable(claim: IPAMClaim, owner: Workload['owner'], cniNetwork: string): boolean {
  if (claim.spec.network !== cniNetwork) return false;
  return hasNoOwner(claim) ? !isBeingDeleted(claim) : isOwnedBy(claim, owner);
}

function nadKey(nad: { namespace: string; name: string }): string {
  return joinKey(nad.namespace, nad.name);
}
