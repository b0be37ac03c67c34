import type { AddressBlock } from '../api/address-block.js';
import type { AddressLease } from '../api/address-lease.js';
import type { AddressPool } from '../api/address-pool.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { KubeVirt, VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import type { KubeObject } from '../api/meta.js';
import { IPAM_API_VERSION } from '../api/names.js';
import type { NetworkAttachmentDefinition } from '../api/networks/network-attachment.js';
import type { Pod } from '../api/pod.js';
import { clusterResource, namespacedResource } from './resource.js';

export const PODS = namespacedResource<Pod>('v1', 'pods', 'Pod');
export const STATEFUL_SETS = namespacedResource<KubeObject>('apps/v1', 'statefulsets', 'StatefulSet');
export const POD_DISRUPTION_BUDGETS = namespacedResource<KubeObject>(
  'policy/v1',
  'poddisruptionbudgets',
  'PodDisruptionBudget',
);
export const NAMESPACES = clusterResource('v1', 'namespaces', 'Namespace');
export const RESOURCE_QUOTAS = namespacedResource<ResourceQuota>('v1', 'resourcequotas', 'ResourceQuota');
export const NODES = clusterResource('v1', 'nodes', 'Node');

export const TOKEN_REVIEWS = clusterResource<TokenReview>('authentication.k8s.io/v1', 'tokenreviews', 'TokenReview');
export const SUBJECT_ACCESS_REVIEWS = clusterResource<SubjectAccessReview>(
  'authorization.k8s.io/v1',
  'subjectaccessreviews',
  'SubjectAccessReview',
);

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
  /** Values are base64. */
  binaryData?: Record<string, string>;
}
export const CONFIG_MAPS = namespacedResource<ConfigMap>('v1', 'configmaps', 'ConfigMap');

export interface Secret extends KubeObject {
  type?: string;
  /** Values are base64. */
  data?: Record<string, string>;
}
export const SECRETS = namespacedResource<Secret>('v1', 'secrets', 'Secret');

export const VIRTUAL_MACHINES = namespacedResource<VirtualMachine>(
  'kubevirt.io/v1',
  'virtualmachines',
  'VirtualMachine',
);
export const VIRTUAL_MACHINE_INSTANCES = namespacedResource<VirtualMachineInstance>(
  'kubevirt.io/v1',
  'virtualmachineinstances',
  'VirtualMachineInstance',
);
export const KUBEVIRTS = namespacedResource<KubeVirt>('kubevirt.io/v1', 'kubevirts', 'KubeVirt');
export const NETWORK_ATTACHMENT_DEFINITIONS = namespacedResource<NetworkAttachmentDefinition>(
  'k8s.cni.cncf.io/v1',
  'network-attachment-definitions',
  'NetworkAttachmentDefinition',
);
export const IPAM_CLAIMS = namespacedResource<IPAMClaim>('k8s.cni.cncf.io/v1alpha1', 'ipamclaims', 'IPAMClaim');

export interface WebhookConfigurationObject extends KubeObject {
  webhooks?: { name: string; clientConfig: { caBundle?: string; url?: string } & Record<string, unknown> }[];
}
export const MUTATING_WEBHOOK_CONFIGURATIONS = clusterResource<WebhookConfigurationObject>(
  'admissionregistration.k8s.io/v1',
  'mutatingwebhookconfigurations',
  'MutatingWebhookConfiguration',
);

export const VALIDATING_WEBHOOK_CONFIGURATIONS = clusterResource<WebhookConfigurationObject>(
  'admissionregistration.k8s.io/v1',
  'validatingwebhookconfigurations',
  'ValidatingWebhookConfiguration',
);

export const ADDRESS_POOLS = clusterResource<AddressPool>(IPAM_API_VERSION, 'addresspools', 'AddressPool');
export const ADDRESS_LEASES = clusterResource<AddressLease>(IPAM_API_VERSION, 'addressleases', 'AddressLease');
export const ADDRESS_BLOCKS = clusterResource<AddressBlock>(IPAM_API_VERSION, 'addressblocks', 'AddressBlock');

/** A user as Kubernetes' authenticators describe one. */
export interface UserInfo {
  username: string;
  uid?: string;
  groups?: string[];
  extra?: Record<string, string[]>;
}

/** authentication.k8s.io/v1: asks the API server whose token it is. */
export interface TokenReview extends KubeObject {
  spec: { token: string; audiences?: readonly string[] };
  status?: {
    authenticated?: boolean;
    user?: Partial<UserInfo>;
    /** Those of the request for which the token is valid. */
    audiences?: string[];
    error?: string;
  };
}

/** authorization.k8s.io/v1: asks the API server whether a user may do something. */
export interface SubjectAccessReview extends KubeObject {
  spec: {
    user: string;
    uid?: string;
    groups?: string[];
    extra?: Record<string, string[]>;
    /** One of the two. */
    nonResourceAttributes?: { path: string; verb: string };
    resourceAttributes?: { verb: string; group: string; resource: string; subresource?: string };
  };
  status?: { allowed?: boolean; denied?: boolean; reason?: string };
}

/** core/v1 ResourceQuota, as far as Holdfast reads it. */
export interface ResourceQuota extends KubeObject {
  /** Quantities by resource, for example `count/ipamclaims.k8s.cni.cncf.io`. */
  status?: { hard?: Record<string, string>; used?: Record<string, string> };
}
