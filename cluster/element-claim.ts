import { type IPAMClaim, claimName, claimNadOf, claimOwnerOf, swappedClaimName } from '../api/ipam-claim.js';
import { describeValue } from '../api/json.js';
import { controllerOf, isBeingDeleted, joinKey, objectKey } from '../api/meta.js';
import type { NetworkConfig } from '../api/networks/network-attachment.js';
import type { NetworkSelection } from '../api/networks/network-selection.js';
import { ordinalInterfaceName } from '../api/pod.js';
import { describeClaimOwner, isAdoptable, isOwnedBy, ipamExtensionsClaimName, pickClaim } from '../api/vm-claims.js';
import type { ClusterView, Recheck } from './cluster-view.js';
import type { OwnedClaims } from './owned-claims.js';
import type { VmiNetwork, Workload } from './workload.js';

/** The claim to which a network element should refer. */
export type ElementClaim =
  | { kind: 'claim'; name: string }
  /** No claim. The warning is set if the interface may need addresses. */
  | { kind: 'none'; why: string; warning?: string }
  /** The NAD is missing or cannot be used, so nobody knows whether there will be a claim. `claim` is its usual name. */
  | { kind: 'unknown'; claim: string; reason: string; warning: string }
  /** The claim belongs to another workload, so the pod must wait. */
  | { kind: 'foreign'; claim: string; reason: string };

/** Input for the choice of a claim. `addRecheck` is called for each object that should be read live. */
export interface ClaimChoiceContext {
  workload: Workload;
  /** The interface names that the pod's elements ask for. */
  requested: ReadonlySet<string | undefined>;
  view: ClusterView;
  claims: OwnedClaims;
  addRecheck: (recheck: Recheck) => void;
}

/**
 * Finds the claim of one network element. Pure.
 * @param referenced the claim to which the pod already refers, on this interface and NAD
 */
export function chooseClaim(
  selection: NetworkSelection,
  referenced: string | undefined,
  choice: ClaimChoiceContext,
): ElementClaim {
  const network = matchNetwork(selection, choice);
  if (referenced !== undefined) {
    const seen = choice.view.claim(referenced);
    // no live read for a name that a tenant wrote for a network that the VM does not have
    if (seen === undefined && network !== undefined) choice.addRecheck({ kind: 'claim', key: referenced });
    if (seen !== undefined && isOwnedBy(seen, choice.workload.owner)) return { kind: 'claim', name: referenced };
  }
  const chosen = chooseNewClaim(selection, network, choice);
  // its VM was deleted with --cascade=orphan: the VMI inherits the claim and keeps running
  return chosen.kind === 'foreign' && chosen.claim === referenced ? { kind: 'claim', name: referenced } : chosen;
}

function chooseNewClaim(
  selection: NetworkSelection,
  network: VmiNetwork | undefined,
  choice: ClaimChoiceContext,
): ElementClaim {
  const { workload, addRecheck } = choice;
  if (network === undefined) {
    if (isNamedByKubeVirt(selection)) addRecheck({ kind: 'vmi', key: workload.vmi });
    const vmi = joinKey(workload.namespace, workload.vmi);
    return { kind: 'none', why: `VirtualMachineInstance ${vmi} has no such network` };
  }
  return chooseNetworkClaim(network, nadKey(selection.nad), choice);
}

/**
 * Finds the claim of a network of the VM. Pure.
 * @param nad the key, `namespace/name`, of the NAD that the pod uses for the network
 */
export function chooseNetworkClaim(network: VmiNetwork, nad: string, choice: ClaimChoiceContext): ElementClaim {
  const { workload, view, claims, addRecheck } = choice;
  const isVms = nad === nadKey(network.nad);
  const config = view.network(nad);
  if (config?.ok !== true && isVms) addRecheck({ kind: 'network', key: nad });

  const fitting = claimsForNad(claims.of(network), nad, config?.ok ? config.network.name : undefined);
  const kept = pickClaim(fitting);
  // a pod may still use the previous NAD of its VM's network
  if (kept !== undefined && (isVms || claimNadOf(kept) === nad)) return { kind: 'claim', name: kept.metadata.name };
  if (!isVms) {
    addRecheck({ kind: 'vmi', key: workload.vmi });
    return {
      kind: 'none',
      why: `network "${network.name}" of the VM uses NetworkAttachmentDefinition ${nadKey(network.nad)}, not ${nad}`,
    };
  }
  return expectClaim(network, config, choice);
}

/** Returns the claim that the controller will create for an interface, or why there will be none. */
function expectClaim(network: VmiNetwork, config: NetworkConfig | undefined, choice: ClaimChoiceContext): ElementClaim {
  const nad = `NetworkAttachmentDefinition ${nadKey(network.nad)}`;
  const { workload, view } = choice;
  if (network.isUnplugRequested) return { kind: 'none', why: `network "${network.name}" is being unplugged` };
  if (!view.allowsNewClaims) {
    return { kind: 'none', why: `new persistent addresses are disabled in namespace ${workload.namespace}` };
  }
  if (config?.ok !== true) {
    const reason = `${nad} ${unknownNad(config, view)}`;
    const warning = `network "${network.name}" gets no persistent addresses: ${reason}`;
    return { kind: 'unknown', claim: claimName(workload.owner.name, network.name), reason, warning };
  }
  if (!config.network.allowPersistentIPs) return { kind: 'none', why: `${nad} does not allow persistent addresses` };
  return predictClaim(network, config.network.name, choice);
}

function unknownNad(config: Exclude<NetworkConfig, { ok: true }> | undefined, { lookupFailure }: ClusterView): string {
  if (config !== undefined) return `cannot be used: ${config.problem.field} ${config.problem.message}`;
  return lookupFailure === undefined ? 'does not exist: create it' : `could not be read: ${lookupFailure}`;
}

/** Finds the network by the interface's name, which is unique in a pod; several interfaces may share a NAD. */
export function matchNetwork(
  selection: NetworkSelection,
  { workload, requested }: Pick<ClaimChoiceContext, 'workload' | 'requested'>,
): VmiNetwork | undefined {
  const { networks } = workload;
  const wanted = selection.interface;
  if (wanted === undefined) {
    // such an element may also belong to a network binding plugin, in addition to that of the interface
    return networks.find((one) => one.position === selection.position && !requested.has(one.podInterface));
  }
  return (
    networks.find(({ podInterface }) => podInterface === wanted) ??
    networks.find(({ position }) => ordinalInterfaceName(position) === wanted)
  );
}

function isNamedByKubeVirt(selection: NetworkSelection): boolean {
  return /^(pod[0-9a-f]{11}|net[1-9]\d*)$/.test(selection.interface ?? '');
}

/** Returns the claims for the NAD. If the NAD cannot be read, their annotation decides; claims of ipam-extensions have none. */
function claimsForNad(own: readonly IPAMClaim[], nad: string, cniNetwork: string | undefined): IPAMClaim[] {
  return own.filter((claim) =>
    cniNetwork === undefined ? (claimNadOf(claim) ?? nad) === nad : claim.spec.network === cniNetwork,
  );
}

/** Returns the claim that the controller creates. Its name is known before it exists. */
function predictClaim(network: VmiNetwork, cniNetwork: string, choice: ClaimChoiceContext): ElementClaim {
  const { workload, view, addRecheck } = choice;
  const { owner } = workload;
  const { name: vmNetwork } = network;
  const former = findIpamExtensionsClaim(network, cniNetwork, choice);
  if (former !== undefined) return { kind: 'claim', name: former };
  const second = swappedClaimName(owner.name, vmNetwork, cniNetwork);
  for (const name of [claimName(owner.name, vmNetwork), second]) {
    const seen = view.claim(name);
    if (seen === undefined) {
      addRecheck({ kind: 'claim', key: name });
      return { kind: 'claim', name: isAdoptable(view.claim(second), cniNetwork) ? second : name };
    }
    if (isUsable(seen, owner, cniNetwork)) return { kind: 'claim', name };
    if (!isOwnedBy(seen, owner)) {
      addRecheck({ kind: 'claim', key: name });
      return { kind: 'foreign', claim: name, reason: describeForeign(seen, owner, cniNetwork) };
    }
    // ours, but for the previous network of the interface: the second claim has the next name, unless the first one is gone
    addRecheck({ kind: 'claim', key: name });
  }
  return {
    kind: 'none',
    why: `both claims of network "${vmNetwork}" are for other CNI networks than ${describeValue(cniNetwork)}`,
  };
}

function describeForeign(claim: IPAMClaim, owner: Workload['owner'], cniNetwork: string): string {
  const subject = `IPAMClaim ${objectKey(claim)}`;
  const isOwnerless = controllerOf(claim) === undefined && !isBeingDeleted(claim);
  if (isOwnerless && claimOwnerOf(claim)?.name === owner.name && claim.spec.network === cniNetwork) {
    return `${subject} was restored from a backup: the VM starts when the controller has assigned the claim to it`;
  }
  return `${subject} ${describeClaimOwner(claim, owner)}; the VM starts when that claim is gone`;
}

/** Returns the claim of kubevirt/ipam-extensions that the controller adopts under its old name; the index by owner may not have it yet. */
function findIpamExtensionsClaim(
  network: VmiNetwork,
  cniNetwork: string,
  choice: ClaimChoiceContext,
): string | undefined {
  const { workload, view, addRecheck } = choice;
  const { owner } = workload;
  const name = ipamExtensionsClaimName(owner.name, network.name);
  if (name === claimName(owner.name, network.name)) return undefined;
  const seen = view.claim(name);
  if (seen === undefined) addRecheck({ kind: 'claim', key: name });
  const isIt = seen !== undefined && isOwnedBy(seen, owner) && seen.spec.network === cniNetwork;
  return isIt && choice.claims.isServing(seen, network) ? name : undefined;
}

/** True if the claim is ours, or the controller can adopt it. */
function isUsable(claim: IPAMClaim, owner: Workload['owner'], cniNetwork: string): boolean {
  return isAdoptable(claim, cniNetwork) || (claim.spec.network === cniNetwork && isOwnedBy(claim, owner));
}

function nadKey(nad: { namespace: string; name: string }): string {
  return joinKey(nad.namespace, nad.name);
}
