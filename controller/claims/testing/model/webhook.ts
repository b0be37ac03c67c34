import { claimName, claimOwnerOf, swappedClaimName, claimVmNetworkOf } from '../../../../api/ipam-claim.js';
import { type SecondaryNetwork, type VirtualMachineInstance, secondaryNetworks } from '../../../../api/kubevirt.js';
import { isBeingDeleted, joinKey, objectKey } from '../../../../api/meta.js';
import { parseNetworkConfig } from '../../../../api/networks/network-attachment.js';
import { PERSISTENT_IPS_LABEL } from '../../../../api/names.js';
import { podInterfaceName } from '../../../../api/pod.js';
import { ownerOfVmi } from '../../../../api/vm-claims.js';
import type { ClaimsWorld } from './world.js';

export interface SelectionElement {
  name: string;
  namespace: string;
  interface: string;
  'ipam-claim-reference'?: string;
}

/** Returns the network elements of a VMI's launcher with the claim references that the webhook sets; undefined if it denies the pod. */
export function admitElements(
  world: ClaimsWorld,
  vmi: VirtualMachineInstance,
  held: readonly SelectionElement[],
): SelectionElement[] | undefined {
  const elements: SelectionElement[] = [];
  for (const network of secondaryNetworks(vmi.spec, vmi.metadata.namespace ?? '')) {
    if (network.isUnplugRequested) continue;
    const element: SelectionElement = { ...network.nad, interface: podInterfaceName(network.name) };
    const before = held.find((other) => other.interface === element.interface && other.name === element.name);
    const claim = chooseClaim(world, vmi, network, before?.['ipam-claim-reference']);
    if (claim === 'foreign') return undefined;
    elements.push(claim === undefined ? element : { ...element, 'ipam-claim-reference': claim });
  }
  return elements;
}

function chooseClaim(world: ClaimsWorld, vmi: VirtualMachineInstance, network: SecondaryNetwork, held?: string) {
  const { namespace = '' } = vmi.metadata;
  // a running launcher keeps its claim
  if (held !== undefined && world.get('claims', joinKey(namespace, held)) !== undefined) return held;
  const config = networkOf(world, joinKey(network.nad.namespace, network.nad.name));
  if (config?.ok !== true) return undefined;
  const { uid } = ownerOfVmi(vmi);
  const own = world
    .list('claims')
    .filter((claim) => claimOwnerOf(claim)?.uid === uid && claimVmNetworkOf(claim) === network.name)
    .filter((claim) => claim.spec.network === config.network.name)
    .sort((a, b) => Number(isBeingDeleted(a)) - Number(isBeingDeleted(b)));
  if (own[0] !== undefined) return own[0].metadata.name;
  const optedOut = world.get('namespaces', namespace)?.metadata.labels?.[PERSISTENT_IPS_LABEL] !== undefined;
  return optedOut || !config.network.allowPersistentIPs
    ? undefined
    : predictClaimName(world, vmi, network.name, config.network.name);
}

/** Predicts the name of a claim that does not exist yet. */
function predictClaimName(world: ClaimsWorld, vmi: VirtualMachineInstance, network: string, cni: string): string {
  const { namespace, name } = vmi.metadata;
  const first = claimName(name, network);
  const names = [first, swappedClaimName(name, network, cni)];
  for (const candidate of names) {
    const occupant = world.get('claims', joinKey(namespace, candidate));
    if (occupant === undefined) return candidate;
    if (claimOwnerOf(occupant)?.uid !== ownerOfVmi(vmi).uid) return 'foreign';
  }
  return 'foreign';
}

export function networkOf(world: ClaimsWorld, nad: string) {
  const found = world.list('networks').find((object) => objectKey(object) === nad);
  return found === undefined ? undefined : parseNetworkConfig(found);
}
