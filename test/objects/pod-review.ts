import jsonpatch, { type Operation } from 'fast-json-patch';
import { type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../api/kubevirt.js';
import { objectKey } from '../../api/meta.js';
import { CLAIM_REFERENCE_KEY, NETWORKS_ANNOTATION } from '../../api/names.js';
import { type NetworkAttachmentDefinition, parseNetworkConfig } from '../../api/networks/network-attachment.js';
import { podInterfaceName } from '../../api/pod.js';
import type { ClusterView } from '../../cluster/cluster-view.js';
import { readPod } from '../../webhook/reviewed-pod.js';
import type { PodDecision } from '../../webhook/pod-decision.js';
import { reviewPod } from '../../webhook/pod-mutation.js';
import { NAMESPACE, type RawPod, makeClaim, makeLauncherPod, makeNad, makeVm, makeVmi } from './kubevirt-objects.js';
import { BY_KUBEVIRT } from './launcher-pods.js';

/** The objects that a review reads. */
export interface ReviewedCluster {
  vmis?: readonly VirtualMachineInstance[];
  vms?: readonly VirtualMachine[];
  claims?: readonly IPAMClaim[];
  nads?: readonly NetworkAttachmentDefinition[];
  enabled?: boolean;
  unavailable?: string;
}

/** VM `vm1` has one network, `data`, on NAD `blue`. */
export const VM1 = makeVmi('vm1', { data: 'blue' });
export const DATA = podInterfaceName('data');
/** A cluster with consistent objects. */
export const CLUSTER = {
  vmis: [VM1],
  vms: [makeVm('vm1')],
  claims: [makeClaim('vm1', 'data')],
  nads: [makeNad('blue')],
} satisfies ReviewedCluster;

export function clusterViewOf({
  vmis = [],
  vms = [],
  claims = [],
  nads = [],
  enabled = true,
  unavailable,
}: ReviewedCluster): ClusterView {
  return {
    allowsNewClaims: enabled,
    lookupFailure: unavailable,
    vmi: (name) => vmis.find((vmi) => vmi.metadata.name === name),
    vm: (name) => vms.find((vm) => vm.metadata.name === name),
    claim: (name) => claims.find((claim) => claim.metadata.name === name),
    claimsOf: (uid) => claims.filter((claim) => claimOwnerOf(claim)?.uid === uid),
    network: (key) => {
      const nad = nads.find((each) => objectKey(each) === key);
      return nad && parseNetworkConfig(nad);
    },
  };
}

export function reviewCreate(
  cluster: ReviewedCluster,
  networks?: string,
  pod: RawPod = makeLauncherPod(VM1, networks),
): PodDecision {
  return reviewPod(
    { operation: 'CREATE', namespace: NAMESPACE, pod: readPod(pod, 'object'), requester: BY_KUBEVIRT },
    clusterViewOf(cluster),
  );
}

/**
 * The networks annotation of vm1's launcher changes.
 * @param before the annotation, or the whole pod; so is `after`
 */
export function reviewUpdate(cluster: ReviewedCluster, before: string | RawPod, after: string | RawPod): PodDecision {
  const podOf = (given: string | RawPod) => (typeof given === 'string' ? makeLauncherPod(VM1, given) : given);
  const pod = readPod(podOf(after), 'object');
  const oldPod = readPod(podOf(before), 'oldObject');
  return reviewPod(
    { operation: 'UPDATE', namespace: NAMESPACE, pod, oldPod, requester: BY_KUBEVIRT },
    clusterViewOf(cluster),
  );
}

/** What the networks annotation is after a review that allowed it. */
export function networksAfter(verdict: PodDecision, networks: string): string {
  if (!verdict.allowed) throw new Error(`refused: ${verdict.reason}`);
  const pod = makeLauncherPod(VM1, networks);
  const patched = jsonpatch.applyPatch(pod, verdict.patch as Operation[], true).newDocument;
  return patched.metadata.annotations[NETWORKS_ANNOTATION] ?? '';
}

/** The claim to which each element refers after a review that allowed it. */
export function referencesAfter(verdict: PodDecision, networks: string): (string | undefined)[] {
  const elements = JSON.parse(networksAfter(verdict, networks)) as Record<string, string>[];
  return elements.map((element) => element[CLAIM_REFERENCE_KEY]);
}

/** The annotation with one element, that of network `data`, and more keys in it. */
export function elementWith(extra: Record<string, unknown>): string {
  return JSON.stringify([{ name: 'blue', namespace: NAMESPACE, interface: DATA, ...extra }]);
}
