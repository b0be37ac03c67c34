import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance, VmiInterfaceStatus, VmiSpec } from '../../api/kubevirt.js';
import type { ObjectMeta, OwnerReference } from '../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import { type Pod, podInterfaceName } from '../../api/pod.js';

/** Objects for tests, in short form. */

export const NAMESPACE = 'vms';
const DELETED_AT = '2026-01-01T00:00:00Z';

/** Networks by their name in the VM: a NAD's name; `!` before it marks the interface as absent. */
export type Networks = Record<string, string>;

export function vmiSpec(networks: Networks): VmiSpec {
  const entries = Object.entries(networks);
  return {
    networks: [
      { name: 'default', pod: {} },
      ...entries.map(([name, nad]) => ({ name, multus: { networkName: nad.replace('!', '') } })),
    ],
    domain: {
      devices: {
        interfaces: entries.map(([name, nad]) => ({ name, ...(nad.startsWith('!') && { state: 'absent' }) })),
      },
    },
  };
}

export function vm(
  networks: Networks,
  options: { name?: string; uid?: string; deleting?: boolean; finalizers?: string[] } = {},
): VirtualMachine {
  const { name = 'vm1', uid = 'vm-uid', deleting, finalizers } = options;
  return {
    metadata: { name, namespace: NAMESPACE, uid, ...deleted(deleting), ...(finalizers && { finalizers }) },
    spec: { template: { spec: vmiSpec(networks) } },
  };
}

export interface VmiOptions {
  name?: string;
  uid?: string;
  /** UID of the VM that controls it; null: standalone. Default `vm-uid`. */
  vm?: string | null;
  deleting?: boolean;
  interfaces?: VmiInterfaceStatus[];
  /** The controller if it is not a VM. */
  controller?: OwnerReference;
}

export function vmi(networks: Networks, options: VmiOptions = {}): VirtualMachineInstance {
  const { name = 'vm1', uid = 'vmi-uid', deleting, interfaces } = options;
  const owner = options.vm === undefined ? 'vm-uid' : options.vm;
  const reference = options.controller ?? (owner === null ? undefined : vmReference(owner, name));
  return {
    metadata: {
      name,
      namespace: NAMESPACE,
      uid,
      ...deleted(deleting),
      ...(reference && { ownerReferences: [reference] }),
    },
    spec: vmiSpec(networks),
    ...(interfaces && { status: { interfaces } }),
  };
}

export interface NetworkSelectionElement {
  /** `namespace/name`, or a name in the pod's namespace. */
  nad: string;
  /** The name of the network in the VM, which determines the interface name. */
  network?: string;
  interface?: string;
  claim?: string;
}

export function launcher(
  elements: NetworkSelectionElement[] | string,
  options: {
    name?: string;
    vmi?: string;
    vmiName?: string;
    phase?: string;
    status?: NetworkSelectionElement[];
    created?: string;
  } = {},
): Pod {
  const { name = 'virt-launcher-vm1-abcde', vmi: owner = 'vmi-uid', vmiName = 'vm1', phase = 'Running' } = options;
  const annotation =
    typeof elements === 'string' ? elements : JSON.stringify(elements.map((element) => selection(element)));
  const status = options.status?.map((element) => ({ name: nadKey(element.nad), interface: interfaceName(element) }));
  return {
    metadata: {
      name,
      namespace: NAMESPACE,
      uid: `${name}-uid`,
      labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': owner },
      annotations: {
        'k8s.v1.cni.cncf.io/networks': annotation,
        ...(status && { 'k8s.v1.cni.cncf.io/network-status': JSON.stringify(status) }),
      },
      ownerReferences: [vmiReference(owner, vmiName)],
      ...(options.created !== undefined && { creationTimestamp: options.created }),
    },
    status: { phase },
  };
}

export interface WorkloadClaimOptions {
  name?: string;
  network?: string;
  /** Its controller; null: none. Default the VM `vm-uid`. */
  owner?: OwnerReference | null;
  /** The owner recorded in its annotations; null if none. Default: its controller. */
  recordedOwner?: { name: string; uid: string } | null;
  vmNetwork?: string | null;
  nad?: string | null;
  deleting?: boolean;
  finalizers?: string[];
  ips?: string[];
  interface?: string;
  created?: string;
  label?: string | null;
}

/** A claim like those of Holdfast, by default for the network `data` of `vm1`. */
export function claim(options: WorkloadClaimOptions = {}): IPAMClaim {
  const vmNetwork = options.vmNetwork === undefined ? 'data' : options.vmNetwork;
  return {
    apiVersion: 'k8s.cni.cncf.io/v1alpha1',
    kind: 'IPAMClaim',
    metadata: claimMetadata({ ...options, vmNetwork }),
    spec: {
      network: options.network ?? 'blue-net',
      interface: options.interface ?? podInterfaceName(vmNetwork ?? 'data'),
    },
    ...(options.ips && { status: { ips: options.ips } }),
  };
}

function claimMetadata(options: WorkloadClaimOptions): ObjectMeta {
  const { name = 'vm1.data', owner = vmReference('vm-uid'), recordedOwner = owner, label = 'vm1' } = options;
  return {
    name,
    namespace: NAMESPACE,
    uid: `${name}-uid`,
    resourceVersion: '1',
    finalizers: options.finalizers ?? ['kubevirt.io/persistent-ipam'],
    annotations: claimAnnotations(recordedOwner, options),
    ...deleted(options.deleting),
    ...(options.created !== undefined && { creationTimestamp: options.created }),
    ...(label !== null && { labels: { 'kubevirt.io/vm': label } }),
    ...(owner && { ownerReferences: [owner] }),
  };
}

function claimAnnotations(
  remembered: { name: string; uid: string } | null,
  { vmNetwork, nad = `${NAMESPACE}/blue` }: WorkloadClaimOptions,
): Record<string, string> {
  return {
    ...(remembered && {
      'ipam.holdfast.dev/owner-name': remembered.name,
      'ipam.holdfast.dev/owner-uid': remembered.uid,
    }),
    ...(remembered && { 'velero.io/restore-status': 'true' }),
    ...(typeof vmNetwork === 'string' && { 'ipam.holdfast.dev/vm-network': vmNetwork }),
    ...(nad !== null && { 'ipam.holdfast.dev/network-attachment-definition': nad }),
  };
}

/** A claim like those of kubevirt/ipam-extensions: without annotations and interface. */
export function claimOfIpamExtensions(options: WorkloadClaimOptions = {}): IPAMClaim {
  return claim({ recordedOwner: null, vmNetwork: null, nad: null, interface: '', ...options });
}

export function nad(name: string, config: object | string, namespace = NAMESPACE): NetworkAttachmentDefinition {
  return {
    metadata: { name, namespace },
    spec: { config: typeof config === 'string' ? config : JSON.stringify(config) },
  };
}

export function vmReference(uid: string, name = 'vm1'): OwnerReference {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

export function vmiReference(uid: string, name = 'vm1'): OwnerReference {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    name,
    uid,
    controller: true,
    blockOwnerDeletion: false,
  };
}

function selection(element: NetworkSelectionElement): object {
  const { namespace, name } = splitNad(element.nad);
  return {
    name,
    namespace,
    interface: interfaceName(element),
    ...(element.claim !== undefined && { 'ipam-claim-reference': element.claim }),
  };
}

function interfaceName(element: NetworkSelectionElement): string {
  return element.interface ?? podInterfaceName(element.network ?? 'data');
}

function nadKey(name: string): string {
  const nad = splitNad(name);
  return `${nad.namespace}/${nad.name}`;
}

function splitNad(name: string): { namespace: string; name: string } {
  const [first = '', second] = name.split('/');
  return second === undefined ? { namespace: NAMESPACE, name: first } : { namespace: first, name: second };
}

function deleted(deleting: boolean | undefined): Partial<ObjectMeta> {
  return deleting ? { deletionTimestamp: DELETED_AT } : {};
}
