/** Every group, label, annotation, finalizer and reason that stands on the wire, once. */

export const KUBEVIRT_API_VERSION = 'kubevirt.io/v1';
export const VIRTUAL_MACHINE_KIND = 'VirtualMachine';
export const VIRTUAL_MACHINE_INSTANCE_KIND = 'VirtualMachineInstance';

export const IPAM_CLAIM_API_VERSION = 'k8s.cni.cncf.io/v1alpha1';
export const IPAM_CLAIM_KIND = 'IPAMClaim';

/** Multus: the networks a pod asks for (multi-net-spec §4.1), and those it has (§5). */
export const NETWORKS_ANNOTATION = 'k8s.v1.cni.cncf.io/networks';
/** Multus: a NAD in place of the pod's own network, in the same form. */
export const DEFAULT_NETWORK_ANNOTATION = 'v1.multus-cni.io/default-network';
/** Of a NAD: the device-plugin resource that its pods need (multi-net-spec, Multus' quickstart). */
export const RESOURCE_NAME_ANNOTATION = 'k8s.v1.cni.cncf.io/resourceName';
export const NETWORK_STATUS_ANNOTATION = 'k8s.v1.cni.cncf.io/network-status';
/** The key of a network-selection element that names a claim in the pod's namespace (multi-net-spec §4.1.2.1.11). */
export const CLAIM_REFERENCE_KEY = 'ipam-claim-reference';

export const LAUNCHER_LABEL = 'kubevirt.io';
export const LAUNCHER_LABEL_VALUE = 'virt-launcher';
/** Of a launcher that KubeVirt made for a migration: the migration's UID. */
export const MIGRATION_LABEL = 'kubevirt.io/migrationJobUID';
/** Of the API server's image of a static pod: the UID by which its kubelet, and so its runtime, knows it. */
export const MIRROR_POD_ANNOTATION = 'kubernetes.io/config.mirror';
/** The label and the finalizer of kubevirt/ipam-extensions, kept so that a cluster can move over without touching a VM. */
export const CLAIM_VM_LABEL = 'kubevirt.io/vm';
export const CLAIM_FINALIZER = 'kubevirt.io/persistent-ipam';

/** Kubernetes' own finalizer on an object that is deleted with `--cascade=orphan`. */
export const ORPHAN_FINALIZER = 'orphan';

const HOLDFAST_GROUP = 'ipam.holdfast.dev';
/** What a claim remembers of its owner: written by the controller only, guarded by a ValidatingAdmissionPolicy. */
export const CLAIM_OWNER_NAME = `${HOLDFAST_GROUP}/owner-name`;
export const CLAIM_OWNER_UID = `${HOLDFAST_GROUP}/owner-uid`;
/** The name of the network in the VM's `spec.networks`. */
export const CLAIM_VM_NETWORK = `${HOLDFAST_GROUP}/vm-network`;
/** `namespace/name` of the NetworkAttachmentDefinition. */
export const CLAIM_NAD = `${HOLDFAST_GROUP}/network-attachment-definition`;
/** Of a VM's template, and so of its VMI: JSON object of network names in the VM and lists of addresses. */
export const REQUESTED_ADDRESSES_ANNOTATION = 'network.kubevirt.io/addresses';
/** The MAC address that the VM's spec names, lower case, with colons. */
export const CLAIM_MAC = `${HOLDFAST_GROUP}/mac`;
/** JSON list of addresses that the claim's next addresses should be. */
export const CLAIM_REQUESTED_ADDRESSES = `${HOLDFAST_GROUP}/requested-addresses`;
export const IPAM_API_VERSION = `${HOLDFAST_GROUP}/v1alpha1`;
export const ADDRESS_POOL_KIND = 'AddressPool';
export const ADDRESS_LEASE_KIND = 'AddressLease';
export const ADDRESS_BLOCK_KIND = 'AddressBlock';
/** Keeps a pool while addresses of it are leased. */
export const POOL_FINALIZER = `${HOLDFAST_GROUP}/leased`;
/** Keeps a block until its node does not pick from it any more. */
export const BLOCK_FINALIZER = `${HOLDFAST_GROUP}/lent`;
/** Of a derived pool: the namespace of the NADs that it was derived from. */
export const POOL_NAD_NAMESPACE = `${HOLDFAST_GROUP}/nad-namespace`;
/** Of a lease: what its spec says, to select by. Values over 63 characters are cut and hashed. */
export const LEASE_POOL = `${HOLDFAST_GROUP}/pool`;
export const LEASE_NODE = `${HOLDFAST_GROUP}/node`;
export const LEASE_OWNER_KIND = `${HOLDFAST_GROUP}/owner-kind`;
export const LEASE_OWNER_NAMESPACE = `${HOLDFAST_GROUP}/owner-namespace`;
export const LEASE_OWNER_NAME = `${HOLDFAST_GROUP}/owner-name`;
export const LEASE_OWNER_UID = `${HOLDFAST_GROUP}/owner-uid`;
/** With dashes, lower case. */
export const LEASE_MAC = `${HOLDFAST_GROUP}/mac`;
/** `IPv4` or `IPv6`, as Kubernetes names families. */
export const LEASE_FAMILY = `${HOLDFAST_GROUP}/family`;

/** In Holdfast's namespace: the parameters of the admission policies. Only people write it. */
export const POLICIES_CONFIG_MAP = 'holdfast-policies';
/**
 * Of a launcher: the user who created it. Set by the webhook while it does not know KubeVirt's namespace, and kept true by a
 * ValidatingAdmissionPolicy. A launcher without it was created by KubeVirt's controller.
 */
export const LAUNCHER_CREATOR = `${HOLDFAST_GROUP}/launcher-creator`;
/** Label of a namespace whose VMs shall have no persistent addresses: value `disabled`. */
export const PERSISTENT_IPS_LABEL = `${HOLDFAST_GROUP}/persistent-ips`;
export const PERSISTENT_IPS_DISABLED = 'disabled';
/** Label of a namespace whose pods ask for the addresses that they will need: value `enabled`. */
export const CAPACITY_LABEL = `${HOLDFAST_GROUP}/capacity`;
export const CAPACITY_ENABLED = 'enabled';
/** Extended resources: how many addresses of a pool a node has to give, and a pod asks for. */
export const CAPACITY_PREFIX = `${HOLDFAST_GROUP}/`;
/** Opted out for good, as Holdfast's own namespace is: no admission webhook may hold up what the cluster itself needs to run. */
export const UNSERVED_NAMESPACE = 'kube-system';

/** Where NADs serve the workloads of all namespaces, as Multus has it. */
export const DEFAULT_GLOBAL_NAMESPACES: readonly string[] = ['default'];

/** Of a claim's status: whether it has its addresses. Type and reasons are those of OVN-Kubernetes, so that tools read both. */
export const IPS_ALLOCATED = 'IPsAllocated';
export const AllocationReason = {
  Success: 'SuccessfulAllocation',
  /** No address is free. */
  Exhausted: 'SubnetExhausted',
  /** Somebody else has the address. */
  Conflict: 'IPAddressConflict',
  /** Neither the user nor an administrator can cure it alone: the API server refuses the lease, or the status cannot be read. */
  Internal: 'InternalError',
  /** The pool never leases the address that is asked for. OVN-Kubernetes has no reason for this, nor for the next two. */
  OutOfRange: 'AddressOutOfRange',
  /** No pool serves the network, or it cannot. */
  PoolNotFound: 'PoolNotFound',
  /** The text of the request cannot be read. */
  InvalidRequest: 'InvalidRequest',
} as const;
export type AllocationReason = (typeof AllocationReason)[keyof typeof AllocationReason];
/** Of a claim's status: a request for other addresses than those it has cannot be met. Present only while there is such a request. */
export const REQUEST_HONOURED = 'RequestHonoured';
/** Of a claim's status: no pod gets its addresses, because nobody knows who creates launchers. Present only for as long. */
export const LAUNCHERS_VERIFIED = 'LaunchersVerified';
export const KUBEVIRT_NAMESPACE_UNKNOWN = 'KubeVirtNamespaceUnknown';
/** Why a request is not honoured, besides the reasons of allocation. */
export const RequestReason = {
  /** A pod uses the addresses that the claim has. */
  InUse: 'ClaimInUse',
} as const;

/** Of a claim's status, only while it is False: the API server serves the kinds of VMs, so that it is known whether the owner is gone. */
export const OWNER_KIND_SERVED = 'OwnerKindServed';

/** Reasons of events: CamelCase, one cause each. */
export const EventReason = {
  /** A claim of the wanted name belongs to somebody else. */
  ForeignClaim: 'IPAMClaimConflict',
  /** The claim of an earlier VM of the same name is not gone yet. */
  PredecessorClaim: 'IPAMClaimOfPredecessor',
  /** A NetworkAttachmentDefinition is absent. */
  NetworkNotFound: 'NetworkAttachmentNotFound',
  /** A NetworkAttachmentDefinition cannot be understood. */
  NetworkInvalid: 'NetworkAttachmentInvalid',
  /** A VM wants more claims than one VM may have. */
  ClaimLimit: 'IPAMClaimLimitReached',
  /** The API server refused a claim. */
  ClaimRefused: 'IPAMClaimRefused',
  /** What the VM asks for cannot be read. */
  RequestedAddressesInvalid: 'RequestedAddressesInvalid',
  /** The VM asks for other addresses than those it runs with. */
  RequestedAddressesPending: 'RequestedAddressesPending',
  /** The MAC address that the VM names is none. */
  MacAddressInvalid: 'MACAddressInvalid',
  /** The parameters of the policies do not say where KubeVirt is. */
  KubeVirtNamespaceUnknown: KUBEVIRT_NAMESPACE_UNKNOWN,
  /** A claim cannot have addresses: reasons of the condition, prefixed. */
  AddressesNotAllocated: 'AddressesNotAllocated',
  /** A claim has its addresses. */
  AddressesAllocated: 'AddressesAllocated',
  /** A pod waits for a claim that no IPAM honours. */
  ClaimNotHonoured: 'IPAMClaimNotHonoured',
  /** A claim cannot be released, because the API server does not serve the kind of its owner. */
  OwnerKindNotServed: 'OwnerKindNotServed',
  /** Holdfast's IPAM has written nothing into a claim of its own. */
  IpamNotResponding: 'IPAMNotAnswering',
  /** The NADs of one namespace and network disagree. */
  NetworksDisagree: 'NetworkAttachmentsDisagree',
  /** A NAD names another address space than that in which its pool has leases. */
  MovePending: 'AddressSpaceMovePending',
  /** A NetworkAttachmentDefinition asks for what its namespace may not have. */
  NetworkNotPermitted: 'NetworkAttachmentNotPermitted',
  /** A derived pool has ceased to serve namespaces whose workloads have addresses of it. */
  NamespacesNotServed: 'NamespacesNotServed',
  /** The network delegates to Holdfast, and no pool serves it. */
  PoolMissing: 'AddressPoolMissing',
  /** The pool's spec cannot be served. */
  PoolInvalid: 'AddressPoolInvalid',
  /** Another pool serves the same users. */
  PoolConflict: 'AddressPoolConflict',
  /** Another pool has some of its addresses on the same layer-2 segment. */
  PoolOverlap: 'AddressPoolOverlapsOnWire',
  /** The pool cannot go while addresses of it are leased. */
  PoolInUse: 'AddressPoolInUse',
  /** A lease without a living owner was released. */
  LeaseCollected: 'AddressLeaseCollected',
} as const;
export type EventReason = (typeof EventReason)[keyof typeof EventReason];
