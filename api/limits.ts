/**
 * Upper limits for fields that others write. Every reader checks them before it does work that grows faster than the size of the field.
 * A test compares the limits of pools with the CustomResourceDefinition; docs/reference/bounds.md lists all.
 */

/** Limits of an AddressPool, and of the `ipam` object of a NAD from which a pool is derived. Lengths count UTF-16 code units. */
export const POOL_LIMITS = {
  subnets: 16,
  ranges: 64,
  exclude: 256,
  reserved: 256,
  draining: 256,
  namespaces: 256,
  nodeSelector: 32,
  cooldownSeconds: 86_400,
  /** Length of the name of a network or address space. */
  name: 253,
  cidr: 43,
  /** Length of an element of `ranges`, `exclude`, `reserved` and `draining`. */
  element: 91,
  gateway: 45,
  ttl: 32,
  labelValue: 63,
} as const;

/** Limits of `spec.guest` of an AddressPool. */
export const GUEST_LIMITS = {
  attachment: 253,
  nameservers: 8,
  search: 8,
  /** Length of a search domain. */
  domain: 253,
  /** All search domains in one DHCP option (RFC 3397). */
  searchBytes: 255,
  ntp: 4,
  routes: 16,
  mtu: { least: 576, most: 9216 },
  renewSeconds: { least: 10, most: 86_400 },
  rebindSeconds: { least: 20, most: 172_800 },
  leaseSeconds: { least: 600, most: 604_800 },
  dhcpOptions: 16,
  /** Characters of the values of all of them. */
  dhcpOptionText: 512,
  bootFiles: 16,
  bootArchitectures: 8,
  /** One of each family. */
  bootServers: 2,
  bootParameters: 4,
} as const;

/** Limits of `spec.guard` of an AddressPool. */
export const GUARD_LIMITS = { allow: 16, addresses: 16, macs: 4, claims: 64 } as const;

/** Limits of probing addresses, so that no host on the wire can keep claims from addresses. */
export const PROBE_LIMITS = {
  /** After so long without an answer of a responder, the claim shows the address. */
  timeoutMs: 2_000,
  /** Quarantined addresses of a pool. */
  quarantined: 64,
  /** At most one in so many addresses of a family may be quarantined. */
  quarantinedShare: 8,
  /** Quarantined addresses for which one MAC address answered: a proxy, or an attacker. */
  quarantinedByMac: 3,
  /** Addresses quarantined one after the other for one claim. */
  perClaim: 4,
  /** How long nobody gets the address. */
  quarantineMs: 3_600_000,
  /** The same if the claim requests the address, and tries again after this time. */
  requestedQuarantineMs: 60_000,
} as const;

/** Length of a label's key: a DNS subdomain, a slash, and a name (Kubernetes, qualified names). */
export const MAX_LABEL_KEY_LENGTH = 253 + 1 + 63;

/** Length of `spec.config` of a NAD. The largest valid pool would be longer, but nobody writes that into a NAD by hand. */
export const MAX_NAD_CONFIG_LENGTH = 64 * 1024;

/** Length of the subnets of a primary user-defined network. OVN-Kubernetes allows two of a layer-2 network. */
export const MAX_SUBNETS_LENGTH = 1024;

/** Plugins in a CNI config list. */
export const MAX_NAD_PLUGINS = 64;

/** Networks, and interfaces, of a VM or VMI. A VM that runs has fewer, because a pod has at most 64. */
export const MAX_VM_NETWORKS = 256;

/** Length of the annotation with which a VM requests addresses, and of its copy on claims. */
export const MAX_REQUESTED_ADDRESSES_LENGTH = 16 * 1024;

/** Length of a text about guests in a VM or in the report of a guest: more than any valid name or MAC address has. */
export const MAX_GUEST_TEXT_LENGTH = 254;

/** Length of the network data of a VM, which KubeVirt puts on a disk of the guest. */
export const MAX_NETWORK_DATA_LENGTH = 64 * 1024;

/** Addresses that a guest reports for an interface. */
export const MAX_REPORTED_ADDRESSES = 16;

/** Length of the copy of a claim in the annotation of `kubectl apply`. A claim has few fields. */
export const MAX_APPLIED_COPY_LENGTH = 32 * 1024;

/** Length of a message in a log, a CNI error or a denied review. Names in it may be as long as an object. */
export const MAX_MESSAGE_LENGTH = 4096;

/** Selectors, terms, values and tolerations of a pending pod. */
export const MAX_POD_CONSTRAINTS = 1024;
