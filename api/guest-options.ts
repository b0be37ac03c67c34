/**
 * `spec.guest` of an AddressPool. With it, the pool also serves VMs whose NADs of the network have no IPAM: their guests get the addresses
 * by DHCP or cloud-init.
 */
export interface GuestOptions {
  /** The NAD in the responders' namespace that attaches the responders to the network. Required with `dhcp`. */
  attachment?: string;
  /** Responders answer DHCP and router solicitations of the guests. */
  dhcp?: GuestDhcpOptions;
  /** Responders check that no host has an address before a claim shows it. Needs `dhcp`. Default: false. */
  probe?: boolean;
  networkData?: {
    /** VMs that name a Secret in `networkDataSecretRef` need no annotation. Default: false. */
    default?: boolean;
  };
  /** Default: that of the NAD. */
  dns?: {
    /** At most 8. */
    nameservers?: string[];
    /** At most 8 domains, together at most 255 bytes in DNS' encoding. */
    search?: string[];
  };
  /** NTP servers. At most 4. */
  ntp?: string[];
  /** At most 16. Default: those of the NAD. The default route is that of `subnets[].gateway`. */
  routes?: GuestRoute[];
  /** 576 to 9216; 1280 or more if the pool has IPv6 subnets. Default: that of the NAD. */
  mtu?: number;
}

export interface GuestDhcpOptions {
  /** T1: after so many seconds a guest asks its server again, and gets changed options. 10 to 86400; default: 300. */
  renewSeconds?: number;
  /** T2: after so many seconds a guest asks any server. 20 to 172800, more than `renewSeconds`; default: 600. */
  rebindSeconds?: number;
  /** How long a guest keeps the address if nobody answers. 600 to 604800, more than `rebindSeconds`; default: 86400. */
  leaseSeconds?: number;
}

export interface GuestRoute {
  /** A CIDR without host bits. */
  destination: string;
  /** An address of the same family in a subnet of the pool. */
  gateway: string;
}
