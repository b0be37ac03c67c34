import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { joinKey, objectKey } from '../../../api/meta.js';
import { CLAIM_REFERENCE_KEY } from '../../../api/names.js';
import { type NetworkSelection, describeSelection, selectionsOf } from '../../../api/network-selection.js';
import { describeHolder, isForVmNetwork, isOwnedBy, possibleClaimNames } from '../../../api/vm-claims.js';
import { chooseClaim, matchNetwork } from '../../../cluster/element-claim.js';
import { type Workload, findWorkload } from '../../../cluster/workload.js';
import type { NodePod } from '../pods/node-pod.js';
import type { Judgement, Seeker, Sight } from './judgement.js';

interface Launcher extends Seeker {
  readonly workload: Workload;
  /** The VM's name of the network; undefined where the interface is none of the VM's. */
  readonly vmNetwork: string | undefined;
}

/**
 * Finds the claim of a launcher's interface: by VM and network, for virt-controller strips references from running pods. A reference is
 * heeded only where it names a claim of the same VM and network. Pure.
 */
export function judgeLauncher(seeker: Seeker, sight: Sight): Judgement {
  const { pod, selection } = seeker;
  const { namespace } = pod.metadata;
  const found = findWorkload(pod, namespace, sight);
  if (!found.found) return { kind: 'refused', reason: `pod ${objectKey(pod)} ${found.reason}` };
  const choice = { ...sight, workload: found.workload, requested: requestedInterfaces(pod) };
  const vmNetwork = matchNetwork(selection, choice)?.name;
  const launcher: Launcher = { ...seeker, workload: found.workload, vmNetwork };
  const chosen = chooseClaim(selection, ownReference(launcher, sight), choice);
  const name = chosen.kind === 'claim' ? chosen.name : undefined;
  const claim = name === undefined ? undefined : sight.view.claim(name);
  if (claim === undefined) doubtAll(launcher, sight);
  switch (chosen.kind) {
    case 'foreign':
      return { kind: 'pending', reason: chosen.reason };
    case 'none':
      return judgeWithout(launcher, chosen.why);
    case 'claim':
      return (
        refuseStrangers(launcher, chosen.name, sight) ??
        (claim === undefined ? awaitClaim(launcher, chosen.name) : judgeClaim(launcher, claim, sight))
      );
  }
}

function judgeWithout({ pod, selection }: Seeker, why: string): Judgement {
  const { claimReference } = selection;
  if (claimReference === undefined) return { kind: 'none' };
  const reason = `${shownReference(selection, pod)}, but there is no claim for it: ${why}; leave the key out`;
  return { kind: 'refused', reason };
}

function awaitClaim({ pod, selection }: Launcher, name: string): Judgement {
  const key = joinKey(pod.metadata.namespace, name);
  const reason = `IPAMClaim ${key} of ${describeSelection(selection)} does not exist yet`;
  return { kind: 'pending', reason, isOnItsWay: true, isPredicted: true };
}

function judgeClaim(launcher: Launcher, claim: IPAMClaim, sight: Sight): Judgement {
  if (!isOwnedBy(claim, launcher.workload.owner)) {
    sight.doubt({ kind: 'claim', key: claim.metadata.name });
    const reason = `IPAMClaim ${objectKey(claim)} ${describeHolder(claim, launcher.workload.owner)}: it is about to be adopted`;
    return { kind: 'pending', reason, isOnItsWay: true };
  }
  if (claim.spec.network === launcher.network) return { kind: 'claim', claim };
  return judgeOtherNetwork(launcher, claim, sight);
}

/** The NAD says another network than the config that the runtime was given, or the claim is for the network of before. */
function judgeOtherNetwork({ selection, network }: Launcher, claim: IPAMClaim, { view, doubt }: Sight): Judgement {
  const nad = joinKey(selection.nad.namespace, selection.nad.name);
  doubt({ kind: 'network', key: nad });
  doubt({ kind: 'claim', key: claim.metadata.name });
  const config = view.network(nad);
  const isSwapped = config?.ok === true && config.network.name !== network;
  const reason =
    `IPAMClaim ${objectKey(claim)} is for network "${claim.spec.network}", and ${describeSelection(selection)} is attached to ` +
    `network "${network}"`;
  return isSwapped
    ? { kind: 'pending', reason: `${reason}, though its NAD names "${config.network.name}": it has just been changed` }
    : { kind: 'refused', reason: `${reason}: restart the VM, or give its NAD the network's name back` };
}

/** A reference to what is somebody else's; one that names nothing takes nothing from anybody. */
function refuseStrangers(launcher: Launcher, expected: string, sight: Sight): Judgement | undefined {
  const { pod, selection, workload } = launcher;
  const { claimReference } = selection;
  if (claimReference === undefined || claimReference === expected) return undefined;
  const referred = sight.view.claim(claimReference);
  if (referred !== undefined && isOwnedBy(referred, workload.owner)) return undefined;
  sight.doubt({ kind: 'claim', key: claimReference });
  if (referred === undefined) return undefined;
  const reason =
    `${shownReference(selection, pod)}, which ${describeHolder(referred)}, expected ${JSON.stringify(expected)}: ` +
    'leave the key out, the webhook sets it';
  return { kind: 'refused', reason };
}

/** Of two claims for one network the pod keeps the one that it refers to. */
function ownReference({ selection, workload, vmNetwork, network }: Launcher, { view }: Sight): string | undefined {
  const { claimReference } = selection;
  if (claimReference === undefined || vmNetwork === undefined) return undefined;
  const claim = view.claim(claimReference);
  const isOwn =
    claim !== undefined &&
    isOwnedBy(claim, workload.owner) &&
    isForVmNetwork(claim, workload.owner.name, vmNetwork) &&
    claim.spec.network === network;
  return isOwn ? claimReference : undefined;
}

/** A claim is sought by its names before it is said that there is none. */
function doubtAll({ selection, workload, vmNetwork, network }: Launcher, { doubt }: Sight): void {
  const { claimReference } = selection;
  const names = vmNetwork === undefined ? [] : possibleClaimNames(workload.owner.name, vmNetwork, network);
  for (const key of new Set([...names, ...(claimReference === undefined ? [] : [claimReference])])) {
    doubt({ kind: 'claim', key });
  }
}

/** Its annotation has been read before: the interface is an element of it. */
function requestedInterfaces(pod: NodePod): ReadonlySet<string | undefined> {
  return new Set(selectionsOf(pod).map((selection) => selection.interface));
}

/** `"ipam-claim-reference" of network element 0 (net1 on a/blue) of pod a/p is "vm1.data"` */
export function shownReference(selection: NetworkSelection, pod: NodePod): string {
  const given = JSON.stringify(selection.claimReference);
  return `"${CLAIM_REFERENCE_KEY}" of ${describeSelection(selection)} of pod ${objectKey(pod)} is ${given}`;
}
