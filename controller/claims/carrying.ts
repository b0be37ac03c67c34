import { type IPAMClaim, nadOf, vmNetworkOf } from '../../api/ipam-claim.js';
import { secondaryNetworks } from '../../api/kubevirt.js';
import { joinKey } from '../../api/meta.js';
import { type NetworkSelection, interfaceOf, selectionsOf } from '../../api/network-selection.js';
import { type NetworkStatus, networkStatuses } from '../../api/network-status.js';
import { ordinalInterfaceName, podInterfaceName } from '../../api/pod-interface.js';
import type { Pod } from '../../api/pod.js';
import type { Observed } from './observed.js';

/** The names of the claims that the pod asks for. */
export function referencesOf(pod: Pod): string[] {
  return readableSelectionsOf(pod)?.flatMap(({ claimReference }) => claimReference ?? []) ?? [];
}

/** True where the pod asks for a claim of that name on that interface and NAD, `namespace/name`. */
export function asksFor(pod: Pod, claimName: string, wanted: { podInterface: string; nad: string }): boolean {
  return (readableSelectionsOf(pod) ?? []).some(
    (selection) =>
      selection.claimReference === claimName &&
      interfaceOf(selection) === wanted.podInterface &&
      keyOf(selection) === wanted.nad,
  );
}

/** True where the pod asks for the claim by name. */
export function refersTo(pod: Pod, claim: IPAMClaim): boolean {
  return referencesOf(pod).includes(claim.metadata.name);
}

/**
 * True where the pod has, or may have, the interface that the claim is for: it asks for the claim, or for the claim's interface and network
 * without naming a claim, or Multus reports that interface. An annotation that cannot be read counts as carrying every claim.
 */
export function carries(pod: Pod, claim: IPAMClaim, observed: Observed): boolean {
  const selections = readableSelectionsOf(pod);
  if (selections === undefined) return true;
  const isIts = attachmentTest(claim, observed);
  const asked = selections.some((selection) =>
    selection.claimReference === undefined
      ? isIts(interfaceOf(selection), keyOf(selection))
      : selection.claimReference === claim.metadata.name,
  );
  if (asked) return true;
  return statusesOf(pod).some(
    (status) => isIts(status.interface, status.name) && !selections.some((selection) => isAnothers(selection, status)),
  );
}

/** Whether an attachment, by interface name and NAD, is that of the claim. */
function attachmentTest(claim: IPAMClaim, { vmi, namespace }: Observed) {
  const vmNetwork = vmNetworkOf(claim);
  const interfaces = new Set<string>(claim.spec.interface === '' ? [] : [claim.spec.interface]);
  if (vmNetwork !== undefined) {
    interfaces.add(podInterfaceName(vmNetwork));
    const known = secondaryNetworks(vmi?.spec, namespace).find(({ name }) => name === vmNetwork);
    if (known !== undefined) interfaces.add(ordinalInterfaceName(known.position));
  }
  const nad = nadOf(claim);
  return (name: string | undefined, nadKey: string) =>
    name !== undefined && interfaces.has(name) && (nad === undefined || nad === nadKey);
}

/** The attachment that is reported is that of another claim: the webhook never changes the claim of an attachment that is there. */
function isAnothers({ claimReference, ...selection }: NetworkSelection, status: NetworkStatus): boolean {
  return (
    claimReference !== undefined && interfaceOf(selection) === status.interface && keyOf(selection) === status.name
  );
}

function keyOf(selection: NetworkSelection): string {
  return joinKey(selection.nad.namespace, selection.nad.name);
}

/** Undefined: the annotation cannot be read. Read once for each state of a pod: it is asked for by each claim of each workload. */
const readableSelectionsOf = oncePerPod((pod): readonly NetworkSelection[] | undefined => {
  try {
    return selectionsOf(pod);
  } catch {
    return undefined;
  }
});

const statusesOf = oncePerPod(networkStatuses);

function oncePerPod<T>(read: (pod: Pod) => T): (pod: Pod) => T {
  const known = new WeakMap<Pod, { readonly value: T }>();
  return (pod) => {
    const found = known.get(pod) ?? { value: read(pod) };
    known.set(pod, found);
    return found.value;
  };
}
