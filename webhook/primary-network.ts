import { formatAddress, formatFamily, parseAddressOrPrefix, parseIfValid } from '../addressing/address/address.js';
import { type Cidr, containsAddress, networkOf } from '../addressing/address/cidr.js';
import { describeValue } from '../api/json.js';
import type { VirtualMachineInstance } from '../api/kubevirt.js';
import { parseMac } from '../api/mac-address.js';
import { joinKey } from '../api/meta.js';
import {
  CLAIM_REFERENCE_KEY,
  DEFAULT_NETWORK_ANNOTATION,
  PRIMARY_CLAIM_ANNOTATION,
  REQUESTED_ADDRESSES_ANNOTATION,
} from '../api/names.js';
import { isLauncher } from '../api/pod.js';
import { requestedAddresses } from '../api/networks/requested-addresses.js';
import { ipamExtensionsClaimName } from '../api/vm-claims.js';
import type { ClusterView, Recheck } from '../cluster/cluster-view.js';
import { chooseNetworkClaim } from '../cluster/element-claim.js';
import { OwnedClaims } from '../cluster/owned-claims.js';
import { PRIMARY_POD_INTERFACE, type PrimaryNetwork } from '../cluster/primary-network.js';
import { type Workload, findWorkload } from '../cluster/workload.js';
import { type AnnotationChanges, annotationPatch } from './networks-annotation.js';
import {
  type PodAdmission,
  type PodCheck,
  type PodDecision,
  type PodRefusal,
  type PodReview,
  UNCHANGED,
  checkCreator,
  describeReviewedPod,
} from './pod-decision.js';

/** The primary network of the pod's namespace. */
interface PrimaryReviewSettings {
  network: PrimaryNetwork | undefined;
  /** The namespace of OVN-Kubernetes' NAD `default`. */
  nadNamespace: string;
}

interface PrimaryReviewContext extends PrimaryReviewSettings {
  view: ClusterView;
  addRecheck: (recheck: Recheck) => void;
}

/**
 * Sets the claim of a launcher on the primary user-defined network of its namespace, with the addresses and the MAC address that its VM requests. Pure.
 * The API server calls it only for namespaces with the label of OVN-Kubernetes.
 */
export function reviewPrimaryNetwork(
  review: PodReview,
  view: ClusterView,
  settings: PrimaryReviewSettings,
): PodDecision {
  const rechecks: Recheck[] = [];
  const context = { ...settings, view, addRecheck: (recheck: Recheck) => void rechecks.push(recheck) };
  const outcome = review.oldPod === undefined ? decideNewPod(review, context) : keepPrimaryNetwork(review);
  return { ...outcome, rechecks };
}

/** OVN-Kubernetes reads both annotations when the pod starts, and may forbid changes. So they stay as they were when the pod was created. */
function keepPrimaryNetwork({ pod, oldPod }: PodReview): PodAdmission {
  const [annotations, before] = [pod, oldPod].map((each) => each?.metadata.annotations ?? {});
  const isManaged = before?.[PRIMARY_CLAIM_ANNOTATION] !== undefined;
  const changes: AnnotationChanges = new Map();
  for (const key of isManaged ? [PRIMARY_CLAIM_ANNOTATION, DEFAULT_NETWORK_ANNOTATION] : [PRIMARY_CLAIM_ANNOTATION]) {
    if (annotations?.[key] !== before?.[key]) changes.set(key, before?.[key]);
  }
  const warnings = [...changes.keys()].map(
    (key) => `annotation ${key} of a running pod does not change: it stays as it was`,
  );
  return { allowed: true, patch: annotationPatch(pod, changes), warnings };
}

function decideNewPod(review: PodReview, context: PrimaryReviewContext): PodAdmission | PodRefusal {
  const { pod, namespace, requester } = review;
  if (!isLauncher(pod)) return UNCHANGED;
  const lookup = findWorkload(pod, namespace, context);
  if (!lookup.found && lookup.check === 'controlled-by-vmi') {
    return withoutClaim(review, 'no VirtualMachineInstance controls the pod');
  }
  if (!lookup.found) return refuse(review, lookup.check, lookup.reason);
  const { workload } = lookup;
  if (workload.podNetwork === undefined) return withoutClaim(review, 'the VM has no pod network');
  const { network } = context;
  if (network === undefined) {
    const reason =
      `needs the primary network of namespace ${namespace}, which has no valid NetworkAttachmentDefinition with "role": "primary" yet: ` +
      'the VM starts when its UserDefinedNetwork exists';
    return refuse(review, 'primary-network', reason);
  }
  const creator = checkCreator(pod, undefined, requester, true);
  if (creator.kind === 'refused') return refuse(review, 'created-by-kubevirt', creator.reason);
  const claim = choosePrimaryClaim(workload, workload.podNetwork, network, context);
  if (claim.kind === 'foreign') return { allowed: false, check: 'claim-free', reason: claim.reason };
  if (claim.kind === 'unknown') return refuse(review, 'primary-network', `waits: ${claim.reason}`);
  if (claim.kind === 'none') return withoutClaim(review, claim.why);
  if (creator.kind === 'unverified') return withoutClaim(review, creator.reason);
  return withClaim(review, { claim: claim.name, workload, podNetwork: workload.podNetwork, network }, context);
}

function choosePrimaryClaim(
  found: Workload,
  podNetwork: string,
  { nad, nadKey }: PrimaryNetwork,
  context: PrimaryReviewContext,
) {
  const primary = { name: podNetwork, position: 0, nad, isUnplugRequested: false, podInterface: PRIMARY_POD_INTERFACE };
  const workload = { ...found, networks: [...found.networks, primary] };
  const choice = {
    workload,
    requested: new Set<string>(),
    claims: new OwnedClaims(workload, context.view),
    ...context,
  };
  return chooseNetworkClaim(primary, nadKey, choice);
}

interface ChosenClaim {
  claim: string;
  workload: Workload;
  podNetwork: string;
  network: PrimaryNetwork;
}

function withClaim(
  review: PodReview,
  { claim, workload, podNetwork, network }: ChosenClaim,
  { view, nadNamespace }: PrimaryReviewContext,
): PodAdmission | PodRefusal {
  const vmi = view.vmi(workload.vmi);
  const selection = vmi === undefined ? undefined : readPrimarySelection(vmi, podNetwork, network);
  if (selection?.ok === false) {
    const vmiKey = joinKey(workload.namespace, workload.vmi);
    const reason = `cannot have what VirtualMachineInstance ${vmiKey} requests: ${selection.problem}`;
    return refuse(review, 'address-request', reason);
  }
  const textFor = (name: string) => selection && primarySelectionText(selection, { nadNamespace, claim: name });
  const wanted = textFor(claim);
  // kubevirt/ipam-extensions may have set it, with the name that it gives to the claim
  const isKnown = (text: string) =>
    [wanted, textFor(ipamExtensionsClaimName(workload.owner.name, podNetwork))].includes(text);
  const { [DEFAULT_NETWORK_ANNOTATION]: given, [PRIMARY_CLAIM_ANNOTATION]: current } =
    review.pod.metadata.annotations ?? {};
  // the API server may call the webhook again, after another one has changed the pod
  if (given !== undefined && !isKnown(given)) {
    const reason =
      `multus default network annotation "${DEFAULT_NETWORK_ANNOTATION}" is not allowed on pod creation: the webhook sets it if the VM ` +
      'requests a MAC address or addresses; remove it from the template of the VM';
    return { allowed: false, check: 'default-network', reason };
  }
  const changes: AnnotationChanges = new Map();
  if (current !== claim) changes.set(PRIMARY_CLAIM_ANNOTATION, claim);
  if (given !== wanted) changes.set(DEFAULT_NETWORK_ANNOTATION, wanted);
  return { allowed: true, patch: annotationPatch(review.pod, changes), warnings: [] };
}

/** OVN-Kubernetes trusts the annotation, which a template may contain: a pod without a claim must not name that of another VM. */
function withoutClaim({ pod }: PodReview, why: string): PodAdmission {
  if (pod.metadata.annotations?.[PRIMARY_CLAIM_ANNOTATION] === undefined) return UNCHANGED;
  const patch = annotationPatch(pod, new Map([[PRIMARY_CLAIM_ANNOTATION, undefined]]));
  return { allowed: true, patch, warnings: [`annotation ${PRIMARY_CLAIM_ANNOTATION} is removed: ${why}`] };
}

function refuse(review: PodReview, check: PodCheck, reason: string): PodRefusal {
  return { allowed: false, check, reason: `${describeReviewedPod(review)} ${reason}` };
}

/** What a VM requests on its primary network: addresses with prefix lengths, and a MAC address; or why it cannot have them. */
export type PrimarySelection = { ok: true; ips: readonly string[]; macAddress: string | undefined } | InvalidSelection;

interface InvalidSelection {
  ok: false;
  /** Names the annotation or field, the network and the value, and says what to do. */
  problem: string;
}

/** @param podNetwork the name of the VMI's pod network in its spec */
export function readPrimarySelection(
  { metadata, spec }: VirtualMachineInstance,
  podNetwork: string,
  network: PrimaryNetwork,
): PrimarySelection {
  const macAddress = spec?.domain?.devices?.interfaces?.find(({ name }) => name === podNetwork)?.macAddress;
  if (macAddress && parseMac(macAddress) === undefined) {
    const remedy = 'write one like 02:00:00:00:00:01';
    const problem = `interface "${podNetwork}": macAddress ${describeValue(macAddress)} is not a MAC address: ${remedy}`;
    return { ok: false, problem };
  }
  const request = readAddresses(metadata.annotations, podNetwork, network);
  return request.ok ? { ...request, macAddress } : request;
}

/**
 * Checks the requested addresses against the subnets of the primary network. The core of each problem is worded as in kubevirt/ipam-extensions.
 */
function readAddresses(
  annotations: Record<string, string> | undefined,
  podNetwork: string,
  { nadKey, network }: PrimaryNetwork,
): { ok: true; ips: readonly string[] } | InvalidSelection {
  const request = requestedAddresses(annotations, podNetwork);
  if (request.kind === 'none') return { ok: true, ips: [] };
  if (request.kind === 'invalid') return { ok: false, problem: request.problem };
  const subject = `${REQUESTED_ADDRESSES_ANNOTATION}: network "${podNetwork}"`;
  const subnets = readSubnets(network.primary.subnets);
  if (!Array.isArray(subnets)) {
    const field = `spec.config.subnets of NetworkAttachmentDefinition ${nadKey}`;
    return { ok: false, problem: `${subject}: ${subnets.problem} in ${field}: correct it, or remove the request` };
  }
  const ips: string[] = [];
  for (const text of request.addresses) {
    const { address, prefixLength } = parseAddressOrPrefix(text);
    const ofFamily = subnets.filter(({ family }) => family === address.family);
    const family = formatFamily(address.family);
    if (ofFamily.length === 0) {
      const remedy = `NetworkAttachmentDefinition ${nadKey} has ${network.primary.subnets || 'no subnets'}: remove the address`;
      return {
        ok: false,
        problem: `${subject}: no ${family} subnet configured for ${family} IP request: ${text}; ${remedy}`,
      };
    }
    const subnet = ofFamily.find((each) => containsAddress(each, address));
    if (subnet === undefined) {
      const remedy = `request an address in a subnet of NetworkAttachmentDefinition ${nadKey}: ${network.primary.subnets}`;
      return { ok: false, problem: `${subject}: ${text} is outside the ${family} subnet: ${remedy}` };
    }
    const withPrefix = `${formatAddress(address)}/${subnet.prefixLength}`;
    if (prefixLength !== undefined && prefixLength !== subnet.prefixLength) {
      const remedy = `write ${withPrefix}, or leave the prefix length out`;
      return { ok: false, problem: `${subject}: ${text} has not the prefix length of its subnet: ${remedy}` };
    }
    ips.push(withPrefix);
  }
  return { ok: true, ips };
}

/** Reads CIDRs separated by commas, with or without host bits. Empty ones are ignored. */
function readSubnets(text: string): Cidr[] | { problem: string } {
  const subnets: Cidr[] = [];
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '') continue;
    const subnet = readSubnet(part);
    if (subnet === undefined) return { problem: `invalid subnet format: ${part}` };
    subnets.push(subnet);
  }
  return subnets;
}

function readSubnet(text: string): Cidr | undefined {
  const { address, prefixLength } = parseIfValid(parseAddressOrPrefix, text) ?? {};
  return address === undefined || prefixLength === undefined ? undefined : networkOf(address, prefixLength);
}

/**
 * Returns the value of the default-network annotation, with the same bytes as from kubevirt/ipam-extensions; undefined if nothing is requested.
 * @param target.nadNamespace the namespace of OVN-Kubernetes' NAD `default`
 */
export function primarySelectionText(
  { ips, macAddress }: Extract<PrimarySelection, { ok: true }>,
  { nadNamespace, claim }: { nadNamespace: string; claim: string },
): string | undefined {
  if (ips.length === 0 && !macAddress) return undefined;
  const element = {
    name: 'default',
    namespace: nadNamespace,
    ...(ips.length > 0 && { ips }),
    ...(macAddress && { mac: macAddress }),
    [CLAIM_REFERENCE_KEY]: claim,
  };
  return JSON.stringify([element]);
}
