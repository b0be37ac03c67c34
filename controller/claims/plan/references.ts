import { type IPAMClaim, addressTextsOf, claimNadOf, claimVmNetworkOf } from '../../../api/ipam-claim.js';
import { type KubeObject, joinKey } from '../../../api/meta.js';
import { PRIMARY_CLAIM_ANNOTATION } from '../../../api/names.js';
import {
  type NetworkSelection,
  interfaceNameOf,
  mayReferToClaims,
  networkSelectionsOf,
} from '../../../api/networks/network-selection.js';
import {
  type NetworkStatus,
  type Pod,
  controllingVmi,
  ordinalInterfaceName,
  podInterfaceName,
  readNetworkStatuses,
  reportedIPsOf,
} from '../../../api/pod.js';
import { claimInterfaces } from '../../../api/vm-claims.js';
import type { ObservedWorkload, OwnerSpec } from './observed-workload.js';

/** Returns the names of the claims to which the pod refers, on its secondary networks and its primary one. */
export function claimReferencesOf(pod: Pod): string[] {
  const secondary = secondaryReferencesOf(pod);
  const primary = pod.metadata.annotations?.[PRIMARY_CLAIM_ANNOTATION];
  return primary === undefined ? secondary : [...secondary, primary];
}

/** Returns true if the pod refers to a claim of that name on that interface and NAD, `namespace/name`. */
export function requestsClaim(pod: Pod, claimName: string, wanted: { podInterface: string; nad: string }): boolean {
  return (readableSelectionsOf(pod) ?? []).some(
    (selection) =>
      selection.claimReference === claimName &&
      interfaceNameOf(selection) === wanted.podInterface &&
      selectionNadKey(selection) === wanted.nad,
  );
}

/**
 * Returns true if the pod refers to the claim by name. The annotation for a primary network proves nothing if no VMI controls the pod and the webhook
 * does not check it: then any user may have written it.
 */
export function refersTo(
  pod: Pod,
  claim: IPAMClaim,
  { needsPrimaryNetwork }: Pick<ObservedWorkload, 'needsPrimaryNetwork'>,
): boolean {
  const isChecked = needsPrimaryNetwork || controllingVmi(pod) !== undefined;
  return (isChecked ? claimReferencesOf(pod) : secondaryReferencesOf(pod)).includes(claim.metadata.name);
}

function secondaryReferencesOf(pod: Pod): string[] {
  if (!mayReferToClaims(pod)) return [];
  return readableSelectionsOf(pod)?.flatMap(({ claimReference }) => claimReference ?? []) ?? [];
}

/**
 * Returns true for a claim of the pod network of a VM, which every launcher of the VM has and nobody can unplug. A secondary network may have had
 * its name before.
 */
export function isForPodNetwork(claim: IPAMClaim, { podNetwork }: Pick<OwnerSpec, 'podNetwork'>): boolean {
  const isNamed = podNetwork !== undefined && claimVmNetworkOf(claim) === podNetwork;
  return isNamed && claim.spec.interface !== podInterfaceName(podNetwork);
}

/**
 * Returns true if the pod has, or may have, the interface that the claim is for. It does if it refers to the claim, selects the claim's interface
 * and NAD without a claim, or Multus reports that interface and no other claim for it is known. A pod with an unreadable annotation may use every claim.
 */
export function mayUseClaim(pod: Pod, claim: IPAMClaim, observed: ObservedWorkload): boolean {
  const selections = readableSelectionsOf(pod);
  const statuses = readableStatusesOf(pod);
  if (selections === undefined || statuses === undefined || (observed.vmi && isForPodNetwork(claim, observed.vmi.spec)))
    return true;
  const isOfClaim = attachmentMatcher(claim, observed);
  const isRequested = selections.some((selection) =>
    selection.claimReference === undefined
      ? isOfClaim(interfaceNameOf(selection), selectionNadKey(selection))
      : selection.claimReference === claim.metadata.name,
  );
  if (isRequested) return true;
  const addresses = new Set(addressTextsOf(claim));
  return statuses.some((status) => {
    const reported = reportedIPsOf(status);
    // the reference of an attachment may have changed since: an older claim has it again after its network's name came back into the NAD
    const hasAddress = reported.some((address) => addresses.has(address));
    // Multus reports no addresses on a NAD without IPAM, whose guests may have them
    const isUnknown = reported.length === 0 && addresses.size > 0;
    const isForOtherClaim = () =>
      selections.some(
        (selection) =>
          isAttachment(selection, status) && hasOlderClaim(selection, pod, observed, isUnknown ? claim : undefined),
      );
    if (isOfClaim(status.interface, status.name)) return hasAddress || !isForOtherClaim();
    // the VM has got another NAD of the claim's network, which the claim names, and the launcher is still on the first one
    const mayHaveAddress = hasAddress || (isUnknown && !isKnownAsOtherNetwork(status, claim, observed));
    return mayHaveAddress && isOfClaim(status.interface) && !isForOtherClaim();
  });
}

function isKnownAsOtherNetwork(
  { name: nad }: NetworkStatus,
  claim: IPAMClaim,
  { networks }: ObservedWorkload,
): boolean {
  const lookup = networks.get(nad);
  return lookup?.found === true && lookup.config.ok && lookup.config.network.name !== claim.spec.network;
}

/** Returns the attachment of the claim's interface that Multus reports. */
export function reportedAttachment(pod: Pod, claim: IPAMClaim, observed: ObservedWorkload): NetworkStatus | undefined {
  const isOfClaim = attachmentMatcher(claim, observed);
  return networkStatusesOf(pod).find((status) => isOfClaim(status.interface, status.name));
}

/** Returns a test that tells, by interface name and, if given, NAD, whether an attachment is that of the claim. */
function attachmentMatcher(claim: IPAMClaim, { vmi }: ObservedWorkload) {
  const vmNetwork = claimVmNetworkOf(claim);
  const interfaces = claimInterfaces(claim);
  const network = vmNetwork === undefined ? undefined : vmi?.spec.servedNetworks.get(vmNetwork);
  if (network !== undefined) interfaces.add(ordinalInterfaceName(network.position));
  const nad = claimNadOf(claim);
  return (name: string | undefined, nadKey = nad) =>
    name !== undefined && interfaces.has(name) && (nad === undefined || nad === nadKey);
}

function isAttachment(selection: NetworkSelection, status: NetworkStatus): boolean {
  return interfaceNameOf(selection) === status.interface && selectionNadKey(selection) === status.name;
}

/**
 * Returns true if the element's claim is older than the pod: then the attachment that Multus reports has this claim. A younger one proves nothing. If
 * the NAD names another network now, the webhook assigns the new claim when the interface is unplugged and plugged again, although the
 * attachment with the old claim may still exist.
 * @param than given if the attachment may be that of this claim, unless the other claim is younger: the name of its network may have come back
 */
function hasOlderClaim(
  { claimReference }: NetworkSelection,
  pod: Pod,
  { claims }: ObservedWorkload,
  than?: IPAMClaim,
): boolean {
  const created = createdAt(claims.find(({ metadata }) => metadata.name === claimReference));
  return created < createdAt(pod) && (than === undefined || created > createdAt(than));
}

function createdAt(object: KubeObject | undefined): number {
  return Date.parse(object?.metadata.creationTimestamp ?? '');
}

function selectionNadKey(selection: NetworkSelection): string {
  return joinKey(selection.nad.namespace, selection.nad.name);
}

/** Undefined if the annotation is unreadable. Each claim of each workload needs it, so it is parsed once for each version of a pod. */
const readableSelectionsOf = memoizePerPod((pod): readonly NetworkSelection[] | undefined => {
  try {
    return networkSelectionsOf(pod);
  } catch {
    return undefined;
  }
});

/** Undefined if the status annotation is unreadable. It is parsed once for each version of a pod. */
const readableStatusesOf = memoizePerPod(readNetworkStatuses);

/** Returns the attachments that Multus reports; none if they are unreadable. */
export function networkStatusesOf(pod: Pod): readonly NetworkStatus[] {
  return readableStatusesOf(pod) ?? [];
}

/** More launchers than a namespace has. The parsed annotations of all launchers of a cluster would be as big as the other caches. */
const MAX_PARSED_PODS = 4096;

function memoizePerPod<T>(read: (pod: Pod) => T): (pod: Pod) => T {
  let known = new WeakMap<Pod, { readonly value: T }>();
  let count = 0;
  return (pod) => {
    const found = known.get(pod);
    if (found !== undefined) return found.value;
    if (count === MAX_PARSED_PODS) [known, count] = [new WeakMap(), 0];
    const value = read(pod);
    known.set(pod, { value });
    count++;
    return value;
  };
}
