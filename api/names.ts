import { hash } from 'node:crypto';

/** All groups, labels, annotations, finalizers and reasons that appear in API objects. */

export const KUBEVIRT_API_VERSION = 'kubevirt.io/v1';
export const VIRTUAL_MACHINE_KIND = 'VirtualMachine';
export const VIRTUAL_MACHINE_INSTANCE_KIND = 'VirtualMachineInstance';

export const IPAM_CLAIM_API_VERSION = 'k8s.cni.cncf.io/v1alpha1';
export const IPAM_CLAIM_KIND = 'IPAMClaim';

/** Multus: the networks that a pod requests (multi-net-spec §4.1), and those that it has (§5). */
export const NETWORKS_ANNOTATION = 'k8s.v1.cni.cncf.io/networks';
/** Multus: a NAD in place of the pod's default network, in the same form. */
export const DEFAULT_NETWORK_ANNOTATION = 'v1.multus-cni.io/default-network';
/** On a NAD: the device-plugin resource that its pods need (multi-net-spec, Multus' quickstart). */
export const RESOURCE_NAME_ANNOTATION = 'k8s.v1.cni.cncf.io/resourceName';
/** OVN-Kubernetes: on a pod, the claim of its interface on the primary user-defined network. */
export const PRIMARY_CLAIM_ANNOTATION = 'k8s.ovn.org/primary-udn-ipamclaim';
/** OVN-Kubernetes: label of a namespace whose pods have a primary user-defined network. It is set when the namespace is created, and stays. */
export const PRIMARY_NETWORK_LABEL = 'k8s.ovn.org/primary-user-defined-network';
export const NETWORK_STATUS_ANNOTATION = 'k8s.v1.cni.cncf.io/network-status';
/** The key of a network-selection element that names a claim in the pod's namespace (multi-net-spec §4.1.2.1.11). */
export const CLAIM_REFERENCE_KEY = 'ipam-claim-reference';

export const LAUNCHER_LABEL = 'kubevirt.io';
export const LAUNCHER_LABEL_VALUE = 'virt-launcher';
/** On the launcher of a migration: the UID of the migration. */
export const MIGRATION_LABEL = 'kubevirt.io/migrationJobUID';
/** On a mirror pod: the UID of the static pod, which the kubelet and the runtime use. */
export const MIRROR_POD_ANNOTATION = 'kubernetes.io/config.mirror';
/** The label and the finalizer of kubevirt/ipam-extensions, kept so that a cluster can move over without touching a VM. */
export const CLAIM_VM_LABEL = 'kubevirt.io/vm';
export const CLAIM_FINALIZER = 'kubevirt.io/persistent-ipam';

/** kubectl: the object as `kubectl apply` sent it, in JSON. */
export const LAST_APPLIED_ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';
/** Velero: restore the status of this object too (since 1.16). */
export const VELERO_RESTORE_STATUS = 'velero.io/restore-status';
/** Velero sets it on each object that it restores. */
export const VELERO_RESTORE_NAME = 'velero.io/restore-name';

/** Kubernetes' own finalizer on an object that is deleted with `--cascade=orphan`. */
export const ORPHAN_FINALIZER = 'orphan';

const HOLDFAST_GROUP = 'ipam.holdfast.dev';
/** Name and UID of a claim's owner. Only the controller writes them; a ValidatingAdmissionPolicy enforces that. */
export const CLAIM_OWNER_NAME = `${HOLDFAST_GROUP}/owner-name`;
export const CLAIM_OWNER_UID = `${HOLDFAST_GROUP}/owner-uid`;
/** With the value `true`: a tool restored the claim, which waits for its VM. Only users who may restore claims write it. */
export const CLAIM_RESTORED = `${HOLDFAST_GROUP}/restored`;
/** The name of the network in the VM's `spec.networks`. */
export const CLAIM_VM_NETWORK = `${HOLDFAST_GROUP}/vm-network`;
/** `namespace/name` of the NetworkAttachmentDefinition. */
export const CLAIM_NAD = `${HOLDFAST_GROUP}/network-attachment-definition`;
/** On a VM's template and its VMI: a JSON object of network names in the VM and lists of addresses. */
export const REQUESTED_ADDRESSES_ANNOTATION = 'network.kubevirt.io/addresses';
/** On a VM's template and its pods: a JSON list of addresses that it shares with others, of those that `spec.guard.allow` gives on request. */
export const SHARED_ADDRESSES_ANNOTATION = `${HOLDFAST_GROUP}/shared-addresses`;
/** The MAC address in the VM's spec: lower case, with colons. */
export const CLAIM_MAC = `${HOLDFAST_GROUP}/mac`;
/** A JSON list of the addresses that the claim should get. */
export const CLAIM_REQUESTED_ADDRESSES = `${HOLDFAST_GROUP}/requested-addresses`;
/**
 * `template`: the VM's template makes the claim's request, which ends with that of the template. `former`: the request repeats the addresses of a claim
 * that is gone, and yields to the ranges of the pool. Absent if the request has another origin.
 */
export const CLAIM_REQUEST_ORIGIN = `${HOLDFAST_GROUP}/request-origin`;
export const TEMPLATE_ORIGIN = 'template';
export const FORMER_ORIGIN = 'former';
/** The MAC address of the guest's interface while its VM runs: lower case, with colons. Responders serve this address. */
export const CLAIM_GUEST_MAC = `${HOLDFAST_GROUP}/guest-mac`;
/** The MAC address of the guest, or that of the spec while none runs, and since when the claim has it. Absent: since the claim was created. */
export const CLAIM_MAC_SINCE = `${HOLDFAST_GROUP}/mac-since`;
/** On a VM's template and its VMI: the name of the Secret that gets cloud-init network data. Empty: none, even if the pool has a default. */
export const NETWORK_DATA_ANNOTATION = `${HOLDFAST_GROUP}/network-data`;
/** The type of these Secrets. */
export const NETWORK_DATA_SECRET_TYPE = `${HOLDFAST_GROUP}/network-data`;
/** Label of these Secrets: the UID of the VM, or of the VMI without a VM. */
export const WORKLOAD_UID_LABEL = `${HOLDFAST_GROUP}/workload-uid`;
/** Label of these Secrets: Velero leaves them out of backups. */
export const EXCLUDE_FROM_BACKUP_LABEL = 'velero.io/exclude-from-backup';
/** On a VM's template and its VMI: the network in the VM whose gateways are the default route, or `none`. */
export const DEFAULT_ROUTE_ANNOTATION = `${HOLDFAST_GROUP}/default-route`;
export const NO_DEFAULT_ROUTE = 'none';
export const IPAM_API_VERSION = `${HOLDFAST_GROUP}/v1alpha1`;
export const ADDRESS_POOL_KIND = 'AddressPool';
export const ADDRESS_LEASE_KIND = 'AddressLease';
export const ADDRESS_BLOCK_KIND = 'AddressBlock';
/** Keeps a pool while addresses of it are leased. */
export const POOL_FINALIZER = `${HOLDFAST_GROUP}/leased`;
/** Keeps a block until its node no longer picks addresses from it. */
export const BLOCK_FINALIZER = `${HOLDFAST_GROUP}/lent`;
/** On a derived pool: the namespace of the NADs from which it was derived. */
export const POOL_NAD_NAMESPACE = `${HOLDFAST_GROUP}/nad-namespace`;
/** On the StatefulSet of responders: a hash of its spec as it was written. */
export const RESPONDER_CONTENT_ANNOTATION = `${HOLDFAST_GROUP}/responder-content`;
/** Labels of a lease: fields of its spec, for selectors. Values over 63 characters are cut and hashed. */
export const LEASE_POOL = `${HOLDFAST_GROUP}/pool`;
export const LEASE_NODE = `${HOLDFAST_GROUP}/node`;
export const LEASE_OWNER_KIND = `${HOLDFAST_GROUP}/owner-kind`;
export const LEASE_OWNER_NAMESPACE = `${HOLDFAST_GROUP}/owner-namespace`;
export const LEASE_OWNER_NAME = `${HOLDFAST_GROUP}/owner-name`;
export const LEASE_OWNER_UID = `${HOLDFAST_GROUP}/owner-uid`;
/** With dashes, lower case. */
export const LEASE_MAC = `${HOLDFAST_GROUP}/mac`;
/** On a lease whose address is probed before its claim shows it: what ipam requests, or what a responder found. See api/probe.ts. */
export const PROBE_ANNOTATION = `${HOLDFAST_GROUP}/probe`;
/** `IPv4` or `IPv6`, as Kubernetes names families. */
export const LEASE_FAMILY = `${HOLDFAST_GROUP}/family`;

/** In Holdfast's namespace: the parameters of the admission policies. Only administrators write it. */
export const POLICIES_CONFIG_MAP = 'holdfast-policies';
/** The ConfigMap with the networks of all pools, which ipam writes and a policy reads. */
export const SERVED_NETWORKS_CONFIG_MAP = 'holdfast-served-networks';
/** The key that says that ipam has listed them. Without it, the policy allows only Holdfast to write the status of claims. */
export const SERVED_NETWORKS_COMPLETE = 'complete';
/**
 * On a launcher: the user who created it. The webhook sets it while KubeVirt's namespace is unknown, and a ValidatingAdmissionPolicy
 * protects it. A launcher without it was created by KubeVirt's controller.
 */
export const LAUNCHER_CREATOR = `${HOLDFAST_GROUP}/launcher-creator`;
/** Label of a namespace whose pods may refer to claims without being launchers: value `allowed`. */
export const CLAIM_REFERENCES_LABEL = `${HOLDFAST_GROUP}/claim-references`;
export const CLAIM_REFERENCES_ALLOWED = 'allowed';
/** Label of a namespace whose VMs get no persistent addresses: value `disabled`. */
export const PERSISTENT_IPS_LABEL = `${HOLDFAST_GROUP}/persistent-ips`;
export const PERSISTENT_IPS_DISABLED = 'disabled';
/** Label of a namespace whose pods request the addresses that they need as extended resources: value `enabled`. */
export const CAPACITY_LABEL = `${HOLDFAST_GROUP}/capacity`;
export const CAPACITY_ENABLED = 'enabled';
/** Prefix of the extended resources: the addresses of a pool that a node offers and a pod requests. */
export const CAPACITY_PREFIX = `${HOLDFAST_GROUP}/`;
/** Never served, like Holdfast's own namespace: an admission webhook must not block what the cluster needs to run. */
export const UNSERVED_NAMESPACE = 'kube-system';

/** The namespace of the responders, unless a flag names another one. */
export const RESPONDERS_NAMESPACE = 'holdfast-responders';
/** The ConfigMap that says which tables of responders are current. */
export const RESPONDER_INDEX = 'holdfast-responder-index';

/** Namespaces whose NADs serve workloads of all namespaces, as in Multus. */
export const DEFAULT_GLOBAL_NAMESPACES: readonly string[] = ['default'];

/** Condition of a claim: whether it has its addresses. Type and reasons are those of OVN-Kubernetes, so that tools can read both. */
export const IPS_ALLOCATED = 'IPsAllocated';
export const AllocationReason = {
  Success: 'SuccessfulAllocation',
  /** No address is free. */
  Exhausted: 'SubnetExhausted',
  /** Another owner has the address. */
  Conflict: 'IPAddressConflict',
  /** The API server rejects the lease, or the status cannot be read. */
  Internal: 'InternalError',
  /** The pool never allocates the requested address. OVN-Kubernetes has no reason for this, nor for the next two. */
  OutOfRange: 'AddressOutOfRange',
  /** No pool serves the network, or its pool is not ready. */
  PoolNotFound: 'PoolNotFound',
  /** The request cannot be read. */
  InvalidRequest: 'InvalidRequest',
} as const;
export type AllocationReason = (typeof AllocationReason)[keyof typeof AllocationReason];
export type RefusalReason = Exclude<AllocationReason, typeof AllocationReason.Success>;
/** Condition of a claim: a request for other addresses cannot be met. Present only while there is such a request. */
export const REQUEST_HONOURED = 'RequestHonoured';
/** Condition of a claim: it has an address of a draining range. Otherwise absent. */
export const ADDRESS_DRAINING = 'AddressDraining';
/** Condition of a claim: no pod gets its addresses, because it is unknown which user creates launchers. Otherwise absent. */
export const LAUNCHERS_VERIFIED = 'LaunchersVerified';

/** Condition of a claim: whether the guest's interface has its addresses. Absent while the VM does not run. */
export const GUEST_CONFIGURED = 'GuestConfigured';
/** Condition of a claim, present only while False: responders do not answer its guest. */
export const GUEST_SERVED = 'GuestServed';
/** Condition of a claim: whether the Secret with the network data of its VM has its addresses. Absent without such a Secret. */
export const NETWORK_DATA_WRITTEN = 'NetworkDataWritten';

/** Condition of a claim, present only while False: the API server does not serve KubeVirt's kinds, so the owner cannot be checked. */
export const OWNER_KIND_SERVED = 'OwnerKindServed';

/** Returns the first `length` hex digits, in lower case, of the SHA-256 of a text's UTF-8 bytes. */
export function shortHash(text: string, length: number): string {
  return hash('sha256', text, 'hex').slice(0, length);
}
