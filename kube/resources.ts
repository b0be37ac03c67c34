import type { AddressBlock } from '../api/address-block.js';
import type { AddressLease } from '../api/address-lease.js';
import type { AddressPool } from '../api/address-pool.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { KubeVirt, VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import type { KubeObject } from '../api/meta.js';
import type { NetworkAttachmentDefinition } from '../api/network-attachment.js';
import type { Pod } from '../api/pod.js';
import type { Resource } from './resource.js';

export const PODS: Resource<Pod> = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };
export const NAMESPACES: Resource = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
};
export const NODES: Resource = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };

export const CONFIG_MAPS: Resource<KubeObject & { data?: Record<string, string> }> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

export interface Secret extends KubeObject {
  type?: string;
  /** Values are base64. */
  data?: Record<string, string>;
}
export const SECRETS: Resource<Secret> = {
  group: '',
  version: 'v1',
  plural: 'secrets',
  kind: 'Secret',
  namespaced: true,
};

export const VIRTUAL_MACHINES: Resource<VirtualMachine> = {
  group: 'kubevirt.io',
  version: 'v1',
  plural: 'virtualmachines',
  kind: 'VirtualMachine',
  namespaced: true,
};
export const VIRTUAL_MACHINE_INSTANCES: Resource<VirtualMachineInstance> = {
  group: 'kubevirt.io',
  version: 'v1',
  plural: 'virtualmachineinstances',
  kind: 'VirtualMachineInstance',
  namespaced: true,
};
export const KUBEVIRTS: Resource<KubeVirt> = {
  group: 'kubevirt.io',
  version: 'v1',
  plural: 'kubevirts',
  kind: 'KubeVirt',
  namespaced: true,
};
export const NETWORK_ATTACHMENT_DEFINITIONS: Resource<NetworkAttachmentDefinition> = {
  group: 'k8s.cni.cncf.io',
  version: 'v1',
  plural: 'network-attachment-definitions',
  kind: 'NetworkAttachmentDefinition',
  namespaced: true,
};
export const IPAM_CLAIMS: Resource<IPAMClaim> = {
  group: 'k8s.cni.cncf.io',
  version: 'v1alpha1',
  plural: 'ipamclaims',
  kind: 'IPAMClaim',
  namespaced: true,
};

export interface WebhookConfigurationObject extends KubeObject {
  webhooks?: { name: string; clientConfig: { caBundle?: string; url?: string } & Record<string, unknown> }[];
}
export const MUTATING_WEBHOOK_CONFIGURATIONS: Resource<WebhookConfigurationObject> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: 'mutatingwebhookconfigurations',
  kind: 'MutatingWebhookConfiguration',
  namespaced: false,
};

export const VALIDATING_WEBHOOK_CONFIGURATIONS: Resource<WebhookConfigurationObject> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: 'validatingwebhookconfigurations',
  kind: 'ValidatingWebhookConfiguration',
  namespaced: false,
};

export const ADDRESS_POOLS: Resource<AddressPool> = {
  group: 'ipam.holdfast.dev',
  version: 'v1alpha1',
  plural: 'addresspools',
  kind: 'AddressPool',
  namespaced: false,
};
export const ADDRESS_LEASES: Resource<AddressLease> = {
  group: 'ipam.holdfast.dev',
  version: 'v1alpha1',
  plural: 'addressleases',
  kind: 'AddressLease',
  namespaced: false,
};
export const ADDRESS_BLOCKS: Resource<AddressBlock> = {
  group: 'ipam.holdfast.dev',
  version: 'v1alpha1',
  plural: 'addressblocks',
  kind: 'AddressBlock',
  namespaced: false,
};
