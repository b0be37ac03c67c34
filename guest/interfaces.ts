import type { Family } from '../addressing/address/address.js';
import type { Resolution } from '../addressing/directory/resolution.js';
import type { Pool } from '../addressing/pool/pool.js';
import { type ClaimOwner, type IPAMClaim, claimNadOf } from '../api/ipam-claim.js';
import { describeValue } from '../api/json.js';
import {
  type VmInterface,
  type VmiSpec,
  podNetworkOf,
  replacementOfPodNetwork,
  secondaryNetworks,
} from '../api/kubevirt.js';
import { parseMac } from '../api/mac-address.js';
import { joinKey } from '../api/meta.js';
import { DEFAULT_ROUTE_ANNOTATION, NO_DEFAULT_ROUTE } from '../api/names.js';
import { podInterfaceName } from '../api/pod.js';
import { isOwnedBy } from '../api/vm-claims.js';
import type { ClusterView } from '../cluster/cluster-view.js';
import { type ClaimChoiceContext, chooseNetworkClaim } from '../cluster/element-claim.js';
import { OwnedClaims } from '../cluster/owned-claims.js';
import type { ParsedNad } from '../cluster/transforms.js';
import type { VmiNetwork, Workload } from '../cluster/workload.js';

/** A workload whose guest Holdfast serves, from a VM's template or from a VMI. */
export interface GuestWorkload {
  readonly namespace: string;
  /** The VM, or the VMI without a VM. */
  readonly owner: ClaimOwner;
  readonly spec: VmiSpec | undefined;
}

/** Reads only memory. */
export interface GuestView extends ClusterView {
  nad(key: string): ParsedNad | undefined;
  resolve(claim: IPAMClaim): Resolution;
}

/** The MAC address that the spec gives an interface. */
type GuestMac =
  | { readonly kind: 'none' }
  /** Lower case, with colons. */
  | { readonly kind: 'mac'; readonly mac: string }
  | { readonly kind: 'invalid'; readonly text: string };

/** Who gives an interface its addresses. */
type AddressSource =
  /** Not Holdfast: DHCP of the network, or nobody. */
  | { readonly kind: 'other' }
  /** A claim that does not exist yet, that no pool can serve now, whose pool is not known yet, or whose NAD is missing or cannot be used. */
  | { readonly kind: 'pending'; readonly claim: string; readonly why: string }
  | { readonly kind: 'claim'; readonly claim: IPAMClaim; readonly pool: Pool; readonly nad: ParsedNad | undefined };

export interface GuestInterface {
  /** The name of its network in the VM's spec. */
  readonly vmNetwork: string;
  readonly isPodNetwork: boolean;
  /** The launcher has no interface for it. */
  readonly isSriov: boolean;
  /** Its owner wants the link down (`state: down`), so the guest cannot ask for addresses. */
  readonly isLinkDown: boolean;
  readonly mac: GuestMac;
  readonly source: AddressSource;
}

interface GuestChoice extends ClaimChoiceContext {
  readonly view: GuestView;
}

/** Returns all interfaces of a guest in the order of the VM's networks, without those that are being unplugged. Pure. */
export function guestInterfacesOf({ namespace, owner, spec }: GuestWorkload, view: GuestView): GuestInterface[] {
  const interfaces = new Map((spec?.domain?.devices?.interfaces ?? []).map((each) => [each.name, each]));
  const networks = secondaryNetworks(spec, namespace).map((network) => ({
    ...network,
    podInterface: podInterfaceName(network.name),
  }));
  const podNetworks = [podNetworkOf(spec), replacementOfPodNetwork(spec, namespace)?.name];
  const workload: Workload = { namespace, vmi: owner.name, owner, networks, podNetwork: podNetworks[0] };
  const claims = new OwnedClaims(workload, view);
  const choice = { workload, requested: new Set<string>(), view, claims, addRecheck: () => undefined };
  const secondary = new Map(networks.map((network) => [network.name, network]));
  return (spec?.networks ?? []).flatMap(({ name }): GuestInterface[] => {
    const given = interfaces.get(name);
    const network = secondary.get(name);
    if (network?.isUnplugRequested === true) return [];
    return [
      {
        vmNetwork: name,
        isPodNetwork: podNetworks.includes(name),
        isSriov: given?.sriov !== undefined,
        isLinkDown: given?.state === 'down',
        mac: specifiedMac(given),
        source: network === undefined ? { kind: 'other' } : sourceOf(network, choice),
      },
    ];
  });
}

/** Returns the interfaces as candidates for the default route. */
export function routeCandidates(interfaces: readonly GuestInterface[]): RouteCandidate[] {
  return interfaces.map(({ vmNetwork, isPodNetwork, source }) => ({
    vmNetwork,
    isPodNetwork,
    isServed: source.kind === 'claim',
    gateways: source.kind === 'claim' ? gatewayFamilies(source.pool) : [],
  }));
}

function gatewayFamilies({ families, subnets }: Pool): Family[] {
  return families.filter((family) =>
    subnets.some(({ cidr, gateway }) => cidr.family === family && gateway !== undefined),
  );
}

function sourceOf(network: VmiNetwork, choice: GuestChoice): AddressSource {
  const { workload, view } = choice;
  const key = joinKey(network.nad.namespace, network.nad.name);
  const chosen = chooseNetworkClaim(network, key, choice);
  if (chosen.kind === 'none') return { kind: 'other' };
  if (chosen.kind !== 'claim') return { kind: 'pending', claim: chosen.claim, why: chosen.reason };
  const claim = view.claim(chosen.name);
  if (claim === undefined) return { kind: 'pending', claim: chosen.name, why: 'it does not exist yet' };
  if (!isOwnedBy(claim, workload.owner))
    return { kind: 'pending', claim: chosen.name, why: 'it is not assigned to the VM yet' };
  const resolution = view.resolve(claim);
  if (resolution.kind === 'foreign' && resolution.isUncertain !== true) return { kind: 'other' };
  if (resolution.kind !== 'served') return { kind: 'pending', claim: chosen.name, why: resolution.message };
  return { kind: 'claim', claim, pool: resolution.pool, nad: view.nad(claimNadOf(claim) ?? key) };
}

function specifiedMac(given: VmInterface | undefined): GuestMac {
  const text = given?.macAddress ?? '';
  if (text === '') return { kind: 'none' };
  const mac = parseMac(text);
  return mac === undefined ? { kind: 'invalid', text } : { kind: 'mac', mac };
}

/** An interface that may have the guest's default route. */
export interface RouteCandidate {
  /** The name of its network in the VM's spec. */
  readonly vmNetwork: string;
  readonly isPodNetwork: boolean;
  /** Holdfast serves its addresses. Other interfaces get their routes from somebody else. */
  readonly isServed: boolean;
  /** The families whose subnet has a gateway. */
  readonly gateways: readonly Family[];
}

export type DefaultRoute =
  | {
      readonly kind: 'interface';
      readonly vmNetwork: string;
      readonly by: 'annotation' | 'pod-network' | 'first-gateway';
    }
  | { readonly kind: 'none' }
  /** `message` says what to correct in the annotation. */
  | { readonly kind: 'invalid'; readonly message: string };

/** Networks that a message lists. */
const MAX_LISTED = 8;

/**
 * Chooses the one interface that has the guest's default route, of both families. A guest with two of them sends answers through the
 * wrong one.
 * @param candidates in the order of the VM's networks
 * @param requested the annotation of the VM's template
 */
export function chooseDefaultRoute(candidates: readonly RouteCandidate[], requested: string | undefined): DefaultRoute {
  if (requested === NO_DEFAULT_ROUTE && !candidates.some(({ vmNetwork }) => vmNetwork === NO_DEFAULT_ROUTE))
    return { kind: 'none' };
  if (requested !== undefined) return requestedRoute(candidates, requested);
  const pod = candidates.find(({ isPodNetwork }) => isPodNetwork);
  if (pod !== undefined) return { kind: 'interface', vmNetwork: pod.vmNetwork, by: 'pod-network' };
  const first = candidates.find(({ gateways }) => gateways.length > 0);
  return first === undefined
    ? { kind: 'none' }
    : { kind: 'interface', vmNetwork: first.vmNetwork, by: 'first-gateway' };
}

function requestedRoute(candidates: readonly RouteCandidate[], requested: string): DefaultRoute {
  const found = candidates.find(({ vmNetwork }) => vmNetwork === requested);
  const subject = `Annotation ${DEFAULT_ROUTE_ANNOTATION}: ${describeValue(requested)}`;
  if (found === undefined) {
    const names = candidates.slice(0, MAX_LISTED).map(({ vmNetwork }) => describeValue(vmNetwork));
    return {
      kind: 'invalid',
      message: `${subject} is not a network of the VM: write one of ${[...names, `"${NO_DEFAULT_ROUTE}"`].join(', ')}`,
    };
  }
  if (found.isServed && found.gateways.length === 0) {
    return {
      kind: 'invalid',
      message: `${subject} has no gateway: name another network, or ask the administrator to set subnets[].gateway in its AddressPool`,
    };
  }
  return { kind: 'interface', vmNetwork: found.vmNetwork, by: 'annotation' };
}
