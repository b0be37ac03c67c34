import jsonpatch, { type Operation } from 'fast-json-patch';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import {
  DEFAULT_NETWORK_ANNOTATION,
  NETWORKS_ANNOTATION,
  PRIMARY_CLAIM_ANNOTATION,
  REQUESTED_ADDRESSES_ANNOTATION,
} from '../../api/names.js';
import { NAD_INDEXES } from '../../cluster/watch-specs.js';
import { findPrimaryNetwork } from '../../cluster/primary-network.js';
import { transformNad, transformVmi } from '../../cluster/transforms.js';
import { Cache } from '../../kube/informers/cache.js';
import { NAMESPACE, type RawPod, makeLauncherPod, makeVm, makeVmi } from '../../test/objects/kubevirt-objects.js';
import { BY_KUBEVIRT } from '../../test/objects/launcher-pods.js';
import { type ReviewedCluster, clusterViewOf } from '../../test/objects/pod-review.js';
import { nad, vmReference } from '../../test/objects/workload-objects.js';
import type { PodDecision, Requester } from '../pod-decision.js';
import { reviewPrimaryNetwork } from '../primary-network.js';
import { readPod } from '../reviewed-pod.js';

export const SUBNETS = '192.168.0.0/16,fd12:1234::/64';
export const UDN = nad('udn', { name: 'tenant-net', role: 'primary', allowPersistentIPs: true, subnets: SUBNETS });
export const VM1 = makeVmi('vm1', {});
export const OWNER = vmReference('vm1-vm-uid', 'vm1');
/** With the annotations of VM `vm1` without a request. */
export const CLAIMED = { [PRIMARY_CLAIM_ANNOTATION]: 'vm1.default' };
export const MAC = '02:03:04:05:06:07';
export const WITH_MAC = `[{"name":"default","namespace":"ovn","mac":"${MAC}","ipam-claim-reference":"vm1.default"}]`;

export interface Given extends ReviewedCluster {
  vmi?: VirtualMachineInstance;
  annotations?: Record<string, string>;
  username?: string;
  kubevirt?: Requester['kubevirt'];
}

export function requesting(request?: object, macAddress?: string): VirtualMachineInstance {
  const interfaces = [{ name: 'default', ...(macAddress !== undefined && { macAddress }) }];
  const annotations = request && { annotations: { [REQUESTED_ADDRESSES_ANNOTATION]: JSON.stringify(request) } };
  return { metadata: { ...VM1.metadata, ...annotations }, spec: { ...VM1.spec, domain: { devices: { interfaces } } } };
}

/** The launcher of a VM without secondary networks. */
export function launcherOf(vmi: VirtualMachineInstance, annotations: Record<string, string> = {}): RawPod {
  const pod = makeLauncherPod(vmi);
  const { [NETWORKS_ANNOTATION]: _none, ...others } = pod.metadata.annotations;
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...others, ...annotations } } };
}

function settingsFor(nads: NonNullable<ReviewedCluster['nads']>) {
  const networks = new Cache(NAD_INDEXES);
  for (const each of nads) networks.set(transformNad(each));
  return { network: findPrimaryNetwork(NAMESPACE, networks), nadNamespace: 'ovn' };
}

function clusterOf({
  vmi = VM1,
  nads = [UDN],
  ...given
}: Given): ReviewedCluster & { vmis: VirtualMachineInstance[]; nads: NonNullable<ReviewedCluster['nads']> } {
  return { vms: [makeVm('vm1')], ...given, vmis: [transformVmi(vmi)], nads: [...nads] };
}

export function create(given: Given = {}, pod: RawPod = launcherOf(given.vmi ?? VM1, given.annotations)): PodDecision {
  const cluster = { ...clusterOf(given), ...(given.vmis && { vmis: given.vmis }) };
  const { username = BY_KUBEVIRT.username, kubevirt = BY_KUBEVIRT.kubevirt } = given;
  const review = {
    operation: 'CREATE' as const,
    namespace: NAMESPACE,
    pod: readPod(pod, 'object'),
    requester: { username, kubevirt },
  };
  return reviewPrimaryNetwork(review, clusterViewOf(cluster), settingsFor(cluster.nads));
}

export function update(before: Record<string, string>, after: Record<string, string>, given: Given = {}): PodDecision {
  const cluster = clusterOf(given);
  const [oldPod, pod] = [before, after].map((annotations) => readPod(launcherOf(VM1, annotations), 'object'));
  const review = {
    operation: 'UPDATE' as const,
    namespace: NAMESPACE,
    pod: pod!,
    oldPod,
    requester: { ...BY_KUBEVIRT, username: 'tenant' },
  };
  return reviewPrimaryNetwork(review, clusterViewOf(cluster), settingsFor(cluster.nads));
}

/** The two annotations after the review. */
export function annotationsAfter(verdict: PodDecision, pod: RawPod): Record<string, string> {
  if (!verdict.allowed) throw new Error(`refused: ${verdict.reason}`);
  const { annotations } = jsonpatch.applyPatch(pod, verdict.patch as Operation[], true).newDocument.metadata;
  const keys = [PRIMARY_CLAIM_ANNOTATION, DEFAULT_NETWORK_ANNOTATION];
  return Object.fromEntries(keys.flatMap((key) => (annotations[key] === undefined ? [] : [[key, annotations[key]]])));
}
