// `npm run reference` writes this file from manifests/crds.
import type { Condition, KubeObject } from './meta.js';

/**
 * The addresses of one network that Holdfast allocates to VMs and pods. Created by an administrator, or derived
 * from NetworkAttachmentDefinitions whose IPAM is of type holdfast.
 */
export interface AddressPool extends KubeObject {
  spec: AddressPoolSpec;
  status?: AddressPoolStatus;
}

/** Which addresses are allocated, and to whom. */
export interface AddressPoolSpec {
  /** The name of the CNI network, as in "name" of a NetworkAttachmentDefinition's config. It cannot be changed. */
  network: string;
  /**
   * The scope in which addresses are unique: pools that share an address space never allocate one address twice,
   * even if they overlap. Default: the name of the network. It cannot be changed.
   */
  addressSpace?: string;
  /**
   * The subnets of the network, each of one family. They must not overlap. A pod gets one address of each family. At
   * most 16.
   */
  subnets: PoolSubnet[];
  /**
   * How many seconds after its release an address may be allocated again. At least twice the time for which agents
   * may answer from their caches (--max-staleness); smaller values have no effect. 0 to 86400.
   */
  cooldownSeconds?: number;
  /** Keeps a released address for the MAC address that used it. */
  stickyMAC?: {
    /** How long after the release the address is kept, like 30m, 24h or 1h30m. */
    ttl: string;
    /**
     * Also keep the addresses of deleted VMs whose spec names the MAC address: a VM that is created again gets them
     * back. Default: only the addresses of pods are kept.
     */
    retain?: boolean;
  };
  /** The size of the blocks that are assigned to nodes, as prefix lengths. */
  blockSize?: {
    /** 16 to 32. Default: 26, which is 64 addresses. */
    ipv4?: number;
    /** 64 to 128. Default: 122, which is 64 addresses. */
    ipv6?: number;
  };
  /**
   * The labels of the nodes that have the network. Only these nodes get blocks, show free addresses and run
   * responders. Default: all nodes. At most 32.
   */
  nodeSelector?: Record<string, string>;
  /**
   * Nodes show the free addresses of the pool as the extended resource ipam.holdfast.dev/<pool>, so that the
   * scheduler starts no more pods than there are addresses.
   */
  publishCapacity?: boolean;
  /** Metrics show the addresses of the pool by state: seven series for each family. Default: true. */
  publishMetrics?: boolean;
  /** The namespaces whose VMs and pods get addresses from the pool. Default: all namespaces. At most 256. */
  namespaces?: string[];
  /**
   * Filters what the interfaces of the pool send: only with the MAC and IP addresses of their claim or pod. It holds
   * for interfaces that are created after it was set, of plugins that create veth pairs, such as bridge.
   */
  guard?: {
    /** Enforce drops other traffic, Observe counts it. Default: "Off", with quotes in YAML. */
    mode?: 'Off' | 'Observe' | 'Enforce';
    /** The target of a migration sends nothing until the guest has moved to it. Default: true. */
    migrationHold?: boolean;
    /** Addresses that interfaces may use besides their own, such as virtual ones. At most 16. */
    allow?: {
      /** Addresses, CIDRs or ranges. At most 16. */
      addresses: string[];
      /** MAC addresses that come with these addresses, such as those of VRRP and CARP. At most 4. */
      macs?: string[];
      /** Only addresses that the annotation ipam.holdfast.dev/shared-addresses lists. Default: false. */
      onRequest?: boolean;
      /** The IPAMClaims, as namespace/name. Default: all interfaces of the pool. At most 64. */
      claims?: string[];
    }[];
  };
  guest?: GuestOptions;
}

/** Elements of ranges, exclude, reserved and draining are an address, a CIDR, or "first-last", within cidr. */
export interface PoolSubnet {
  /** The subnet, without host bits, like 10.1.0.0/16 or fd00:1::/64. Interfaces get its prefix length. */
  cidr: string;
  /**
   * The addresses that are allocated. Default: all of cidr without the network and the broadcast address. At most
   * 64.
   */
  ranges?: string[];
  /** The addresses that are never allocated. At most 256. */
  exclude?: string[];
  /** The gateway of the subnet, within cidr. Pods use it as their gateway, and it is never allocated. */
  gateway?: string;
  /** The addresses that are allocated only if a claim or pod requests them. At most 256. */
  reserved?: string[];
  /**
   * The addresses that are to become free, for all of the subnet its cidr. They get no new owner. Owners keep them;
   * VMs get other addresses when they do not run. At most 256.
   */
  draining?: string[];
}

/**
 * Serves VMs whose NetworkAttachmentDefinitions of the network have no IPAM: their guests get the addresses by
 * DHCP or cloud-init. Only for pools of administrators. An empty object only allocates the addresses.
 */
export interface GuestOptions {
  /**
   * The NetworkAttachmentDefinition in the namespace of the responders that attaches them to the network, without
   * IPAM. Required with dhcp.
   */
  attachment?: string;
  dhcp?: GuestDhcpOptions;
  /**
   * Responders check that no host has an address before a claim shows it. An address that another host has is
   * quarantined, and the claim gets another one. Needs dhcp. Default: false.
   */
  probe?: boolean;
  /** Secrets with cloud-init network data. */
  networkData?: {
    /**
     * VMs that name a Secret in networkDataSecretRef get network data without the annotation
     * ipam.holdfast.dev/network-data. Default: false.
     */
    default?: boolean;
  };
  /** The DNS settings of the guests. Default: those of the NetworkAttachmentDefinition. */
  dns?: {
    /** The addresses of the name servers. At most 8. */
    nameservers?: string[];
    /** The search domains. At most 8. */
    search?: string[];
  };
  /** The addresses of the NTP servers. At most 4. */
  ntp?: string[];
  /**
   * The routes of the guests besides the default route, which is that of subnets[].gateway. Default: those of the
   * NetworkAttachmentDefinition. At most 16.
   */
  routes?: GuestRoute[];
  /**
   * The MTU of the guests' interfaces, at least 1280 if the pool has IPv6 subnets. Default: that of the
   * NetworkAttachmentDefinition. 576 to 9216.
   */
  mtu?: number;
}

/** Responders answer DHCPv4, DHCPv6 and router solicitations of the guests, and of nobody else. */
export interface GuestDhcpOptions {
  /** T1: after so many seconds a guest asks its server again, and gets changed options. Default: 300. 10 to 86400. */
  renewSeconds?: number;
  /** T2: after so many seconds a guest asks any server. Default: 600. 20 to 172800. */
  rebindSeconds?: number;
  /** How long a guest keeps its addresses if nobody answers. Default: 86400. 600 to 604800. */
  leaseSeconds?: number;
  /**
   * Other options of DHCPv4, for clients that ask for them. Those of a VM replace them. Responders compute the
   * options 1, 3, 6, 12, 15, 26, 42, 50 to 61, 81, 82, 97, 119, 121 and 249. At most 16.
   */
  options?: GuestDhcpOption[];
  /**
   * Other options of DHCPv6, for clients that ask for them. Responders compute the options 1 to 16, 18 to 20, 23 to
   * 26, 31, 32, 39, 56, 59 and 60. At most 16.
   */
  optionsV6?: GuestDhcpOptionV6[];
  /**
   * Files that clients load over the network. A client gets the first one that fits it. Those of a VM, in
   * dhcpOptions of its interface, replace them. At most 16.
   */
  boot?: GuestBootFile[];
}

/** An option. */
export interface GuestDhcpOption {
  /** The number of the option. 2 to 254. */
  code: number;
  /** How the value is written. */
  type: 'addresses' | 'hex' | 'text' | 'uint8' | 'uint16' | 'uint32';
  /** IPv4 addresses with commas between them, bytes as hexadecimal digits, text, or a number. */
  value: string;
}

/** An option. */
export interface GuestDhcpOptionV6 {
  /** The number of the option. 17 to 65535. */
  code: number;
  /** How the value is written. */
  type: 'addresses' | 'hex' | 'text' | 'uint8' | 'uint16' | 'uint32';
  /** IPv6 addresses with commas between them, bytes as hexadecimal digits, text, or a number. */
  value: string;
}

/** A boot file. */
export interface GuestBootFile {
  /** Only for iPXE. Default: false, for all clients. */
  ipxe?: boolean;
  /**
   * Only for clients of these types (RFC 4578): for instance 0 is BIOS, 7 and 9 are UEFI on x86-64, 11 is UEFI on
   * arm64, 16 is HTTP boot of UEFI on x86-64. Default: all. At most 8.
   */
  architectures?: number[];
  /**
   * The TFTP server that has the file: an IPv4 address for DHCPv4, an IPv6 address for DHCPv6, or one of each. At
   * most 2.
   */
  servers?: string[];
  /** A path on the TFTP server, or a URL. Firmware loads URLs only by HTTP boot, iPXE always. */
  file: string;
  /** The parameters of the file, which only DHCPv6 has. At most 4. */
  parameters?: string[];
}

/** A route. */
export interface GuestRoute {
  /** The network, without host bits, like 10.9.0.0/16. */
  destination: string;
  /** The next hop, in a subnet of the pool. */
  gateway: string;
}

/** How full the pool is. capacity = leased + cooling + free + reserved + quarantined. Numbers are at most 2^53 - 1. */
export interface AddressPoolStatus {
  /** The generation of the spec that the status describes. */
  observedGeneration?: number;
  /** All addresses that can be allocated from the pool. */
  capacity: number;
  /** Addresses whose owner exists. */
  leased: number;
  /** Leased addresses whose VM does not run. */
  heldByStopped: number;
  /** Released addresses that cool down or are sticky. */
  cooling: number;
  /** Addresses that any claim or pod can get. */
  free: number;
  /** Addresses that are not in use and are allocated only on request. */
  reserved: number;
  /**
   * Addresses that nobody gets for a while, because a host that Holdfast does not know has them. Absent if there are
   * none.
   */
  quarantined?: number;
  /** Held and reserved addresses of draining ranges. Absent if there is no such range. */
  draining?: number;
  /** The IPv4 addresses. Absent if the pool has none. */
  ipv4?: {
    /** All IPv4 addresses that can be allocated from the pool. */
    capacity: number;
    /** IPv4 addresses whose owner exists. */
    leased: number;
    /** Released IPv4 addresses that cool down or are sticky. */
    cooling: number;
    /** IPv4 addresses that any claim or pod can get. */
    free: number;
    /** IPv4 addresses that are not in use and are allocated only on request. */
    reserved: number;
    /** IPv4 addresses that a host has that Holdfast does not know. Absent if there are none. */
    quarantined?: number;
  };
  /** The IPv6 addresses. Absent if the pool has none. */
  ipv6?: {
    /** All IPv6 addresses that can be allocated from the pool. */
    capacity: number;
    /** IPv6 addresses whose owner exists. */
    leased: number;
    /** Released IPv6 addresses that cool down or are sticky. */
    cooling: number;
    /** IPv6 addresses that any claim or pod can get. */
    free: number;
    /** IPv6 addresses that are not in use and are allocated only on request. */
    reserved: number;
    /** IPv6 addresses that a host has that Holdfast does not know. Absent if there are none. */
    quarantined?: number;
  };
  blocks?: PoolBlocks;
  /**
   * Ready: addresses are allocated from the pool. Conflict: another pool serves the same users. NetworksAgree: the
   * NetworkAttachmentDefinitions of a derived pool agree. NotPermitted: they ask for something that only an
   * administrator may configure. DeletionBlocked: the pool is being deleted while addresses of it are leased.
   * Draining: addresses of draining ranges are in use. At most 16.
   */
  conditions?: Condition[];
}

/** The aligned slices of the pool, some of which are assigned to nodes. Absent if nodes get no blocks. */
export interface PoolBlocks {
  /** Slices with at least one unreserved address, free or not. */
  total: number;
  /** Slices without a free address. */
  full: number;
  /** Lent slices are assigned to a node. Each of them has an AddressBlock. */
  lent: number;
  /** The slice from which the next claim gets its address. */
  current?: string;
}
