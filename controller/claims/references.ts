import { type IPAMClaim, claimNadOf, claimVmNetworkOf } from '../../api/ipam-claim.js';
import { joinKey } from '../../api/meta.js';
import { type NetworkSelection, interfaceNameOf, networkSelectionsOf } from '../../api/network-selection.js';
import { type NetworkStatus, networkStatuses } from '../../api/network-status.js';
import { ordinalInterfaceName, podInterfaceName } from '../../api/pod-interface.js';
import type { Pod } from '../../api/pod.js';
import type { ObservedWorkload } from './observed-workload.js';

/** The names of the claims that the pod asks for. */
export function claimReferencesOf(pod: Pod): string[] {
  return readableSelectionsOf(pod)?.flatMap(({ claimReference }) => claimReference ?? []) ?? [];
}

/** True where the pod asks for a claim of that name on that interface and NAD, `namespace/name`. */
export function requestsClaim(pod: Pod, claimName: string, wanted: { podInterface: string; nad: string }): boolean {
  return (readableSelectionsOf(pod) ?? []).some(
    (selection) =>
      selection.claimReference === claimName &&
      interfaceNameOf(selection) === wanted.podInterface &&
      selectionNadKey(selection) === wanted.nad,
  );
}

/** True where the pod asks for the claim by name. */
export function refersTo(pod: Pod, claim: IPAMClaim): boolean {
  return claimReferencesOf(pod).includes(claim.metadata.name);
}

/**
 * True where the pod has, or may have, the interface that the claim is for: it asks for the claim, or for the claim's interface and network
 * without naming a claim, or Multus reports that interface. An annotation that cannot be read counts as carrying every claim.
 */
export function mayUseClaim(pod: Pod, claim: IPAMClaim, observed: ObservedWorkload): boolean {
  const selections = readableSelectionsOf(pod);
  if (selections === undefined) return true;
  const isIts = attachmentMatcher(claim, observed);
  const asked = selections.some((selection) =>
    selection.claimReference === undefined
      ? isIts(interfaceNameOf(selection), selectionNadKey(selection))
      : selection.claimReference === claim.metadata.name,
  );
  if (asked) return true;
  return networkStatusesOf(pod).some(
    (status) =>
      isIts(status.interface, status.name) && !selections.some((selection) => isForOtherClaim(selection, status)),
  );
}

/** Whether an attachment, by interface name and NAD, is that of the claim. */
function attachmentMatcher(claim: IPAMClaim, { vmi }: ObservedWorkload) {
  const vmNetwork = claimVmNetworkOf(claim);
  const interfaces = new Set<string>(claim.spec.interface === '' ? [] : [claim.spec.interface]);
  if (vmNetwork !== undefined) {
    interfaces.add(podInterfaceName(vmNetwork));
    const known = vmi?.spec.secondaryNetworks.get(vmNetwork);
    if (known !== undefined) interfaces.add(ordinalInterfaceName(known.position));
  }
  const nad = claimNadOf(claim);
  return (name: string | undefined, nadKey: string) =>
    name !== undefined && interfaces.has(name) && (nad === undefined || nad === nadKey);
}

/** The attachment that is reported is that of another claim: the webhook never changes the claim of an attachment that is there. */
function isForOtherClaim({ claimReference, ...selection }: NetworkSelection, status: NetworkStatus): boolean {
  return (
    claimReference !== undefined &&
    interfaceNameOf(selection) === status.interface &&
    selectionNadKey(selection) === status.name
  );
}

function selectionNadKey(selection: NetworkSelection): string {
  return joinKey(selection.nad.namespace, selection.nad.name);
}

/** Undefined: the annotation cannot be read. Read once for each state of a pod: it is asked for by each claim of each workload. */
const readableSelectionsOf = memoizePerPod((pod): readonly NetworkSelection[] | undefined => {
  try {
    return networkSelectionsOf(pod);
  } catch {
    return undefined;
  }
});

const networkStatusesOf = memoizePerPod(networkStatuses);

function memoizePerPod<T>(read: (pod: Pod) => T): (pod: Pod) => T {
  const known = new WeakMap<Pod, { readonly value: T }>();
  return (pod) => {
    const found = known.get(pod) ?? { value: read(pod) };
    known.set(pod, found);
    return found.value;
  };
}
