import type { KubeObject } from '../../api/meta.js';
import {
  AllocationReason,
  IPS_ALLOCATED,
  LAUNCHER_LABEL,
  LAUNCHER_LABEL_VALUE,
  NETWORKS_ANNOTATION,
  NETWORK_STATUS_ANNOTATION,
  POLICIES_CONFIG_MAP,
} from '../../api/names.js';
import { podInterfaceName } from '../../api/pod.js';
import { newClaim } from '../../controller/claims/plan/claim-object.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import { KUBEVIRT_NAMESPACE } from '../../bed/control-plane/kubevirt.js';
import { vmManifest, vmiManifest } from '../../bed/story/vms/vm.js';
import { type Address, formatAddress, parseAddress } from '../../addressing/address/address.js';
import { createLease } from '../../addressing/lease/lease.js';
import type { Resource } from '../../kube/resource.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  CONFIG_MAPS,
  IPAM_CLAIMS,
  KUBEVIRTS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import type { ObjectTracker } from '../../kube/testing/object-tracker.js';
import { nadDefinition } from '../../test/objects/pool-objects.js';
import { vmReference, vmiReference } from '../../test/objects/workload-objects.js';

const VMS_OF_NAMESPACE = 500;
const NAD = { namespace: 'default', name: 'blue' };
const NAD_KEY = `${NAD.namespace}/${NAD.name}`;
const NETWORK = 'data';
const FIRST = parseAddress('10.0.0.10').value;
const BORN = '2026-01-01T00:00:00Z';
/** As many fields as a real object has: with them it has 1 to 3 KB. */
const FIELDS =
  'architecture conditions containers cpu devices disks domain evictionStrategy features firmware guest guestOSInfo hostIP interfaces ' +
  'labels launcherContainerImageVersion machine memory migrationMethod networks nodeName ownerReferences phase podIP qosClass resources ' +
  'runtimeUser sockets startTime subdomain template threads tolerations type uuid volumes volumeStatus';
const MANAGED_FIELDS = [
  { manager: 'virt-controller', operation: 'Update', apiVersion: 'v1', time: BORN, fieldsType: 'FieldsV1', fieldsV1: { 'f:status': { '.': {}, ...Object.fromEntries(FIELDS.split(' ').map((field) => [`f:${field}`, {}])) } } }, // oxfmt-ignore
];

/** Stores a cluster in which nothing is to do: each VM runs on so many networks, and its claims have addresses. */
export function storeCluster(tracker: ObjectTracker, vms: number, claimsOfVm = 1): void {
  const put = (resource: Resource, object: KubeObject) => tracker.put(resource, withIdentity(object));
  const cidr = '10.0.0.0/8';
  put(NAMESPACES, { metadata: { name: NAD.namespace } });
  put(KUBEVIRTS, { metadata: { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt' } });
  const policies = { metadata: { namespace: HOLDFAST_NAMESPACE, name: POLICIES_CONFIG_MAP } };
  put(CONFIG_MAPS, { ...policies, data: { kubevirtNamespace: KUBEVIRT_NAMESPACE } } as KubeObject);
  const config = { name: 'blue', type: 'bridge', allowPersistentIPs: true, ipam: { type: 'holdfast' } };
  put(NETWORK_ATTACHMENT_DEFINITIONS, nadDefinition(NAD_KEY, config));
  const pool = { network: 'blue', subnets: [{ cidr }] };
  put(ADDRESS_POOLS, { metadata: { name: 'blue' }, spec: pool } as KubeObject);
  for (let n = 0; n < vms; n++) {
    if (n % VMS_OF_NAMESPACE === 0) put(NAMESPACES, { metadata: { name: namespaceOf(n) } });
    for (const [resource, object] of objectsOf(n, claimsOfVm)) put(resource, object);
  }
  tracker.compact();
}

/** Stores leases of pods that ended long ago. */
export function storeReleasedLeases(tracker: ObjectTracker, leases: number): void {
  for (let n = 0; n < leases; n++) {
    const address = { family: 4, value: FIRST + BigInt(n) } as const;
    const owner = { kind: 'Pod', namespace: namespaceOf(0), name: `pod-${n}`, uid: `pod-${n}` } as const;
    const lease = createLease({ address, addressSpace: 'blue', pool: 'blue', owner });
    const released = { ...lease.object, spec: { ...lease.object.spec, releasedAt: BORN } };
    tracker.put(ADDRESS_LEASES, withIdentity(released));
  }
  tracker.compact();
}

/** Returns the stopped VM which shows a bench when the controller begins new work. */
export function newVm(n: number): KubeObject {
  return vmManifest({ name: `late-${n}`, namespace: namespaceOf(0), networks: { [NETWORK]: NAD_KEY }, running: false });
}

/** Returns the claim of such a VM as the controller creates it, which shows a bench when ipam begins new work. */
export function newClaimOf({ metadata: { namespace = '', name, uid = '' } }: KubeObject): KubeObject {
  const desired = { ...{ vmNetwork: NETWORK, network: 'blue', nad: NAD_KEY }, podInterface: podInterfaceName(NETWORK), isAttached: true, observedAt: 0 }; // oxfmt-ignore
  return newClaim({ namespace, name: `${name}.${NETWORK}` }, { kind: 'VirtualMachine', name, uid }, desired);
}

export function placeOf(n: number): { namespace: string; name: string } {
  return { namespace: namespaceOf(n), name: `vm-${n}` };
}

export function launcherNameOf(vm: string): string {
  return `virt-launcher-${vm}-abcde`;
}

/** One network of a VM, with what its claim has. */
interface Attached {
  readonly vmNetwork: string;
  readonly podInterface: string;
  readonly claim: string;
  readonly address: Address;
  readonly mac: string;
}

function objectsOf(n: number, claimsOfVm: number): [Resource, KubeObject][] {
  const { namespace, name } = placeOf(n);
  const all = Array.from({ length: claimsOfVm }, (_, index) => attachedOf(name, n * claimsOfVm + index, index));
  const options = { name, namespace, networks: Object.fromEntries(all.map(({ vmNetwork }) => [vmNetwork, NAD_KEY])) };
  const vmi = vmiManifest(options);
  const vmUid = uidOf(namespace, name, 'VirtualMachine');
  const reported = all.map(({ vmNetwork, podInterface, mac }) => ({
    ...{ name: vmNetwork, podInterfaceName: podInterface, mac },
    infoSource: 'domain, multus-status',
  }));
  return [
    [VIRTUAL_MACHINES, vmManifest(options)],
    [
      VIRTUAL_MACHINE_INSTANCES,
      {
        ...vmi,
        metadata: { ...vmi.metadata, ownerReferences: [vmReference(vmUid, name)] },
        status: { phase: 'Running', interfaces: reported },
      } as KubeObject,
    ],
    [PODS, launcherOf(namespace, name, all)],
    ...all.flatMap((attached) => claimAndLeaseOf({ namespace, name, uid: vmUid }, attached)),
  ];
}

function attachedOf(vm: string, n: number, index: number): Attached {
  const vmNetwork = index === 0 ? NETWORK : `${NETWORK}${index}`;
  const mac = `02:00:00:${[n >> 16, (n >> 8) & 255, n & 255].map((byte) => byte.toString(16).padStart(2, '0')).join(':')}`;
  const address = { family: 4, value: FIRST + BigInt(n) } as const;
  return { vmNetwork, podInterface: podInterfaceName(vmNetwork), claim: `${vm}.${vmNetwork}`, address, mac };
}

function claimAndLeaseOf(
  vm: Record<'namespace' | 'name' | 'uid', string>,
  { vmNetwork, podInterface, claim: name, address, mac }: Attached,
): [Resource, KubeObject][] {
  const { namespace } = vm;
  const owner = { kind: 'VirtualMachine', name: vm.name, uid: vm.uid } as const;
  const desired = { vmNetwork, network: 'blue', nad: NAD_KEY, podInterface, isAttached: true, observedAt: 0 };
  const claim = newClaim({ namespace, name }, owner, { ...desired, runningMac: mac });
  const allocated = { type: IPS_ALLOCATED, status: 'True', reason: AllocationReason.Success, message: 'Leased from AddressPool blue', lastTransitionTime: BORN }; // oxfmt-ignore
  const status = {
    ips: [`${formatAddress(address)}/8`],
    conditions: [allocated],
    ownerPod: { name: launcherNameOf(vm.name) },
  };
  const holder = { kind: 'IPAMClaim', namespace, name, uid: uidOf(namespace, name, 'IPAMClaim'), workloadUID: vm.uid } as const; // oxfmt-ignore
  const lease = createLease({ address, addressSpace: 'blue', pool: 'blue', owner: holder, mac });
  return [
    [IPAM_CLAIMS, { ...claim, status } as KubeObject],
    [ADDRESS_LEASES, lease.object],
  ];
}

function launcherOf(namespace: string, vm: string, attached: readonly Attached[]): KubeObject {
  const elements = attached.map(({ podInterface, claim }) => ({ ...NAD, interface: podInterface, 'ipam-claim-reference': claim })); // oxfmt-ignore
  // as Multus 4.2 reports them
  const statuses = [
    { name: 'kindnet', interface: 'eth0', ips: ['10.244.1.7'], mac: '4e:0c:8a:11:22:33', default: true, dns: {}, gateway: ['10.244.1.1'] }, // oxfmt-ignore
    ...attached.map(({ podInterface, address, mac }) => ({ name: NAD_KEY, interface: podInterface, ips: [formatAddress(address)], mac, dns: {} })), // oxfmt-ignore
  ];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace,
      name: launcherNameOf(vm),
      labels: { [LAUNCHER_LABEL]: LAUNCHER_LABEL_VALUE, 'vm.kubevirt.io/name': vm },
      annotations: {
        [NETWORKS_ANNOTATION]: JSON.stringify(elements),
        [NETWORK_STATUS_ANNOTATION]: JSON.stringify(statuses, undefined, 4),
      },
      ownerReferences: [vmiReference(uidOf(namespace, vm, 'VirtualMachineInstance'), vm)],
    },
    spec: { nodeName: 'node-1', containers: [{ name: 'compute', image: 'quay.io/kubevirt/virt-launcher' }] },
    status: { phase: 'Running' },
  } as KubeObject;
}

/** Returns a pod without a claim that runs on the node. */
export function ordinaryPod({ namespace, name, uid }: Record<'namespace' | 'name' | 'uid', string>, nodeName: string) {
  const statuses = [{ name: NAD_KEY, interface: 'net1', ips: ['10.0.0.10'], mac: '02:00:00:00:00:01', dns: {} }];
  const annotations = { [NETWORKS_ANNOTATION]: NAD_KEY, [NETWORK_STATUS_ANNOTATION]: JSON.stringify(statuses, undefined, 4) }; // oxfmt-ignore
  return {
    metadata: { namespace, name, uid, creationTimestamp: BORN, annotations, managedFields: MANAGED_FIELDS },
    spec: { nodeName, containers: [{ name: 'web', image: 'registry.k8s.io/e2e-test-images/agnhost' }] },
    status: { phase: 'Running' },
  };
}

function namespaceOf(n: number): string {
  return `tenant-${Math.floor(n / VMS_OF_NAMESPACE)}`;
}

function uidOf(namespace: string, name: string, kind: string): string {
  return `${kind}-${namespace}-${name}`;
}

function withIdentity(object: KubeObject): KubeObject {
  const { namespace = '', name } = object.metadata;
  const identity = { uid: uidOf(namespace, name, object.kind ?? ''), creationTimestamp: BORN };
  return { ...object, metadata: { ...object.metadata, ...identity, managedFields: MANAGED_FIELDS } as KubeObject['metadata'] }; // oxfmt-ignore
}
