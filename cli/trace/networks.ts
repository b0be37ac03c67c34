import { dhcpNetworksOf, severalDefaultRoutes } from '../../api/networks/default-routes.js';
import { deliveryOf } from '../../api/networks/nad-guests.js';
import { readIpamDelegation, unintendedLoss } from '../../api/networks/ipam-delegation.js';
import { type ClaimOwner, type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import {
  DEVICE_NETWORK_PROBLEM,
  type SecondaryNetwork,
  type VmiSpec,
  deviceNetworksOf,
  vmiNetworksOf,
  podNetworkOf,
  secondaryNetworks,
} from '../../api/kubevirt.js';
import { asRecord } from '../../api/json.js';
import { controllerOf, isBeingDeleted, joinKey } from '../../api/meta.js';
import { EventReason } from '../../api/event-reasons.js';
import { DEFAULT_ROUTE_ANNOTATION, PERSISTENT_IPS_DISABLED, PERSISTENT_IPS_LABEL } from '../../api/names.js';
import { parseNetworkConfig, type NetworkConfigProblem } from '../../api/networks/network-attachment.js';
import {
  describeUnknownNetworks,
  describeUnsupportedNetwork,
  requestedAddresses,
  requestedNetworks,
} from '../../api/networks/requested-addresses.js';
import { describeClaimOwner, isForVmNetwork, isOwnedBy, possibleClaimNames } from '../../api/vm-claims.js';
import { type Read, isUnread, valueOf } from '../reader.js';
import { traceClaim } from './claims.js';
import { missingClaimEvent } from './events.js';
import type { ObservedVmTrace } from './observed.js';
import { type TraceFinding, type TraceNode, findingOf, traceNode, unreadFindings } from './tree.js';

/** A pod has at most 64 networks. */
const MAX_TRACED_NETWORKS = 64;
/** The controller creates a claim within a second. */
const PATIENCE_MS = 60_000;

/** A network of a VM that may have claims. */
export interface TracedNetwork {
  readonly name: string;
  /** Absent for the network that connects the VM to the pod's own network. */
  readonly nad?: SecondaryNetwork['nad'];
  /** A device of a ResourceClaim. */
  readonly isDevice?: true;
  readonly isUnplugRequested: boolean;
}

/** Returns the networks of a VM and its VMI, at most {@link MAX_TRACED_NETWORKS}, and the number of all. */
export function tracedNetworks(
  specs: readonly (VmiSpec | undefined)[],
  namespace: string,
): { shown: TracedNetwork[]; total: number } {
  const found = new Map<string, TracedNetwork>();
  for (const spec of specs) {
    for (const { name, nad, isUnplugRequested } of secondaryNetworks(spec, namespace))
      if (!found.has(name)) found.set(name, { name, nad, isUnplugRequested });
    const podNetwork = podNetworkOf(spec && { networks: vmiNetworksOf(spec) });
    if (podNetwork !== undefined && !found.has(podNetwork))
      found.set(podNetwork, { name: podNetwork, isUnplugRequested: false });
    for (const name of deviceNetworksOf(spec))
      if (!found.has(name)) found.set(name, { name, isDevice: true, isUnplugRequested: false });
  }
  return { shown: [...found.values()].slice(0, MAX_TRACED_NETWORKS), total: found.size };
}

/** Tells the story of one network; undefined for the pod's own network without a claim, which is Kubernetes' business. */
export function traceNetwork(
  observed: ObservedVmTrace,
  owner: ClaimOwner,
  network: TracedNetwork,
): TraceNode | undefined {
  const { name, nad } = network;
  if (network.isDevice) return traceDevice(observed, name);
  const forNetwork = valueOf(observed.claims, []).filter((claim) => isForVmNetwork(claim, observed.name, name));
  if (nad === undefined && forNetwork.length === 0) return undefined;
  const key = nad === undefined ? undefined : joinKey(nad.namespace, nad.name);
  const config = key === undefined ? undefined : readNad(observed, key);
  const own = forNetwork.filter((claim) => isOwnedBy(claim, owner));
  const given = { key, hasClaim: own.length > 0, isPersistent: config?.isPersistent };
  const requests = requestFindings(observed, name, given);
  const unclaimed = own.length === 0 ? unclaimedFindings(observed, owner, { network, config, claims: forNetwork }) : [];
  return traceNode({
    kind: 'Network',
    name,
    state: key === undefined ? 'the pod network' : describeNad(key, config),
    findings: [
      ...(config?.findings ?? []),
      ...requests,
      ...routeFindings(observed, name),
      // an event may say again what is wrong with the request
      ...unclaimed.filter(({ reason }) => reason === undefined || !requests.some((each) => each.reason === reason)),
    ],
    children: own.map((claim) => traceClaim(observed, claim, config?.isHoldfast)),
  });
}

function traceDevice(observed: ObservedVmTrace, name: string): TraceNode {
  const found = findingOf('warning', EventReason.NetworkNotServed, `it ${DEVICE_NETWORK_PROBLEM}`);
  const state = 'a device of a ResourceClaim';
  return traceNode({ kind: 'Network', name, state, findings: isOptedOut(observed) ? [] : [found] });
}

/** What a NAD says about a network. */
interface NadSummary {
  readonly network?: string;
  /** Undefined if the NAD is not known. */
  readonly isPersistent?: boolean;
  /** Whether it delegates to Holdfast's IPAM; undefined if the NAD is not known. */
  readonly isHoldfast?: boolean;
  /** Why VMs do not keep addresses on it although nobody has asked for that. */
  readonly loss?: string;
  readonly findings: readonly TraceFinding[];
}

/** Returns what the NAD of a network says; nothing if it is not read. */
export function readNad({ nads }: ObservedVmTrace, key: string): NadSummary {
  const read = nads.get(key);
  if (read === undefined) return { findings: [] };
  const wrong = (reason: string, message: string): NadSummary => ({ findings: [findingOf('wrong', reason, message)] });
  if (read.kind === 'absent')
    return wrong(
      EventReason.NetworkNotFound,
      `NetworkAttachmentDefinition ${key} does not exist: create it, or correct networkName in the VM`,
    );
  if (read.kind !== 'found') return { findings: unreadFindings(read) };
  const invalid = ({ field, message }: NetworkConfigProblem) =>
    wrong(EventReason.NetworkInvalid, `NetworkAttachmentDefinition ${key}: ${field} ${message}`);
  const config = parseNetworkConfig(read.value);
  if (!config.ok) return invalid(config.problem);
  const ipam = readIpamDelegation(read.value);
  if (ipam.kind === 'invalid') return invalid(ipam.problem);
  const { name, allowPersistentIPs } = config.network;
  const loss = unintendedLoss(config.network, ipam.kind);
  const summary = {
    network: name,
    isPersistent: allowPersistentIPs,
    findings: [],
    ...(loss !== undefined && { loss: `NetworkAttachmentDefinition ${key}: ${loss}` }),
  };
  // on a NAD without IPAM, the pool decides
  return deliveryOf(read.value).kind === 'guest' ? summary : { ...summary, isHoldfast: ipam.kind === 'holdfast' };
}

function describeNad(key: string, { network, isPersistent }: NadSummary = { findings: [] }): string {
  const states = [`NAD ${key}`];
  if (network !== undefined) states.push(`CNI network ${network}`);
  if (isPersistent === false) states.push('without persistent addresses');
  return states.join(', ');
}

function requestFindings(
  observed: ObservedVmTrace,
  network: string,
  given: { key: string | undefined; hasClaim: boolean; isPersistent: boolean | undefined },
): TraceFinding[] {
  const { key = '', hasClaim, isPersistent } = given;
  // without a claim, a request in a namespace that is opted out has deliberately no effect
  if (!hasClaim && isOptedOut(observed)) return [];
  const request = requestedAddresses(requestingAnnotations(observed), network);
  if (request.kind === 'invalid') return [invalidRequest(request.problem)];
  return request.kind === 'addresses' && !hasClaim && isPersistent === false
    ? [invalidRequest(describeUnsupportedNetwork(network, key))]
    : [];
}

/** Finds that DHCP gives the guest a default route on this network and on others. */
function routeFindings(observed: ObservedVmTrace, network: string): TraceFinding[] {
  if (isOptedOut(observed)) return [];
  const { vm, vmi, nads, namespace } = observed;
  const spec = vm.kind === 'found' ? vm.value.spec?.template?.spec : valueOf(vmi, undefined)?.spec;
  const wanted = requestingAnnotations(observed)?.[DEFAULT_ROUTE_ANNOTATION];
  const several = severalDefaultRoutes(dhcpNetworksOf(spec, secondaryNetworks(spec, namespace)), wanted, (key) => {
    const nad = nads.get(key);
    return nad?.kind === 'found' ? deliveryOf(nad.value) : undefined;
  });
  // once for all of them
  if (several?.networks.at(-1) !== network) return [];
  return [{ health: 'warning', reason: EventReason.SeveralDefaultRoutes, message: several.message }];
}

/** Finds requests for networks that the VM does not have. */
export function unknownNetworkFindings(observed: ObservedVmTrace, spec: VmiSpec | undefined): TraceFinding[] {
  if (isOptedOut(observed)) return [];
  const names = (spec?.networks ?? []).map(({ name }) => name);
  const unknown = requestedNetworks(requestingAnnotations(observed)).filter((name) => !names.includes(name));
  return unknown.length === 0 ? [] : [invalidRequest(describeUnknownNetworks(unknown, names))];
}

function requestingAnnotations({ vm, vmi }: ObservedVmTrace): Record<string, string> | undefined {
  const template = valueOf(vm, undefined)?.spec?.template?.metadata?.annotations;
  return vm.kind === 'found' ? template : valueOf(vmi, undefined)?.metadata.annotations;
}

function invalidRequest(message: string): TraceFinding {
  return { health: 'wrong', reason: EventReason.RequestedAddressesInvalid, message };
}

interface MissingClaim {
  readonly network: TracedNetwork;
  readonly config: NadSummary | undefined;
  /** Claims for the network, of any owner. */
  readonly claims: readonly IPAMClaim[];
}

function unclaimedFindings(observed: ObservedVmTrace, owner: ClaimOwner, missing: MissingClaim): TraceFinding[] {
  const loss = missing.config?.loss;
  if (loss === undefined || isOptedOut(observed)) return missingClaimFindings(observed, owner, missing);
  const message = `it does not keep its address: ${loss}`;
  return [{ health: 'warning', reason: EventReason.AddressNotPersistent, message }];
}

function missingClaimFindings(observed: ObservedVmTrace, owner: ClaimOwner, missing: MissingClaim): TraceFinding[] {
  if (isUnread(observed.claims)) return unreadFindings(observed.claims);
  const { network, config, claims } = missing;
  if (!mayNeedClaim(missing)) return [];
  const names = possibleClaimNames(observed.name, network.name, config?.network ?? '');
  const other = claims[0] ?? byName(observed.claims, names);
  if (other !== undefined) return [otherClaimFinding(observed, owner, other)];
  const event = missingClaimEvent(observed, network.name, names);
  if (event !== undefined) return [event];
  return config?.isPersistent === true ? [unexplainedFinding(observed)] : [];
}

/** False if the network gets no claim, or if its NAD says why. */
function mayNeedClaim({ network, config }: MissingClaim): boolean {
  if (network.nad === undefined || network.isUnplugRequested || config === undefined) return false;
  return config.isPersistent !== false && !config.findings.some(({ health }) => health === 'wrong');
}

function unexplainedFinding(observed: ObservedVmTrace): TraceFinding {
  const { namespace, now } = observed;
  if (isOptedOut(observed)) {
    const message = `namespace ${namespace} has the label ${PERSISTENT_IPS_LABEL}=${PERSISTENT_IPS_DISABLED}: new VMs get no persistent addresses`;
    return { health: 'warning', message, remedy: 'remove the label' };
  }
  const born = valueOf(observed.vm, undefined) ?? valueOf(observed.vmi, undefined);
  if (now - Date.parse(born?.metadata.creationTimestamp ?? '') < PATIENCE_MS)
    return { health: 'progress', message: 'it has no IPAMClaim yet: the controller creates one' };
  const remedy = "find out whether Holdfast's controller runs, and see its log";
  const why = observed.events.kind === 'found' ? ', and no event says why' : `: ${observed.events.why}`;
  const message = `it has no IPAMClaim${why}`;
  if (observed.isGateUnknown !== true) return { health: 'wrong', message, remedy };
  const gate = `The feature gate PersistentIPs may be closed: the KubeVirt object must list it`;
  return { health: 'warning', message: `${message}. ${gate}`, remedy };
}

function byName(claims: Read<readonly IPAMClaim[]>, names: readonly string[]): IPAMClaim | undefined {
  return valueOf(claims, []).find(({ metadata }) => names.includes(metadata.name));
}

/** A claim of another owner has the name: a foreign one, that of an earlier VM, or one that was restored. */
function otherClaimFinding({ namespace }: ObservedVmTrace, owner: ClaimOwner, claim: IPAMClaim): TraceFinding {
  const subject = `IPAMClaim ${joinKey(namespace, claim.metadata.name)}`;
  const recorded = claimOwnerOf(claim);
  if (
    controllerOf(claim) === undefined &&
    !isBeingDeleted(claim) &&
    (recorded === undefined || recorded.name === owner.name)
  ) {
    const message = `${subject} was restored from a backup, or has no owner: the controller assigns it to this ${owner.kind}`;
    return { health: 'progress', message };
  }
  if (recorded?.name === owner.name) {
    const message = `${subject} belongs to an earlier ${owner.kind} ${owner.name}`;
    return findingOf('progress', EventReason.PredecessorClaim, message);
  }
  const message = `${subject} ${describeClaimOwner(claim, owner)}`;
  const remedy = 'delete that claim, or rename the network of the interface in the VM; the VM then starts by itself';
  return { health: 'wrong', reason: EventReason.ForeignClaim, message, remedy };
}

/** True if the VMs of the namespace deliberately get no claims. */
export function isOptedOut({ namespaceObject }: Pick<ObservedVmTrace, 'namespaceObject'>): boolean {
  const labels = asRecord(valueOf(namespaceObject, undefined)?.metadata.labels);
  return labels[PERSISTENT_IPS_LABEL] === PERSISTENT_IPS_DISABLED;
}
