// `npm run reference` writes this file from manifests/crds.
import type { KubeObject } from './meta.js';

/**
 * One address that is allocated to an owner, was released, or is reserved. The name, <address space>.<address>, is
 * the lock: an address with a lease is not free. With an owner, the lease is held. With releasedAt, its owner has
 * released it and the address cools down. Without an owner, the address is reserved by an administrator: for one
 * MAC address, or, without mac, for no owner. With quarantine, another host has the address, and nobody gets it for
 * a while.
 */
export interface AddressLease extends KubeObject {
  spec: AddressLeaseSpec;
}

/** The address and its owner. */
export interface AddressLeaseSpec {
  /** The address, without prefix length, in canonical text (RFC 5952). It cannot be changed. */
  address: string;
  /** The scope in which the address is unique. It is the first part of the name. It cannot be changed. */
  addressSpace: string;
  /** The name of the AddressPool of the address. It cannot be changed. */
  pool: string;
  owner?: LeaseOwner;
  /** The node where the address is used. */
  node?: string;
  /** The pod sandbox that uses the address. */
  containerID?: string;
  /** The interface of the pod that has the address. */
  interface?: string;
  /**
   * The MAC address of the interface, in lower case, with colons. A reserved address is allocated to this MAC
   * address only.
   */
  mac?: string;
  /**
   * The address is reserved for its MAC address. Set when an address that an administrator reserved is allocated.
   * After its owner has released it and the cool-down has ended, it is reserved again. Delete the lease to end the
   * reservation.
   */
  reserved?: boolean;
  /**
   * When the owner released the address. It then cools down, or is kept for its MAC address, until the lease
   * expires. RFC 3339.
   */
  releasedAt?: string;
  quarantine?: LeaseQuarantine;
  networkData?: LeaseNetworkData;
}

/**
 * The owner of the address, or its last owner if the address is released. It changes only when a released address
 * is allocated again. Absent if the address is reserved by an administrator, or quarantined.
 */
export interface LeaseOwner {
  /** IPAMClaim for the interface of a VM, Pod for an interface of an ordinary pod. */
  kind: 'IPAMClaim' | 'Pod';
  /** The namespace of the owner. */
  namespace: string;
  /** The name of the owner. */
  name: string;
  /** The UID of the owner. An object of the same name with another UID is another owner. */
  uid: string;
  /**
   * The UID of the VM of a claim. The next claim of this VM may get the address again before its cool-down ends. It
   * changes with the VM that has the claim.
   */
  workloadUID?: string;
}

/**
 * A host that Holdfast does not know has the address, so nobody gets it until the lease expires. Set by ipam
 * instead of an owner. It cannot be changed. Delete the lease to make the address free.
 */
export interface LeaseQuarantine {
  /** When the host answered. RFC 3339. */
  since: string;
  /** When the lease expires. RFC 3339. */
  until: string;
  /** The MAC address that answered, in lower case, with colons. */
  mac: string;
}

/**
 * The Secret with network data that may hold the address. The process guest sets it before it writes the address
 * into the Secret, and removes it after it has removed the address. Until then, no other VM gets the address.
 */
export interface LeaseNetworkData {
  /** The namespace of the Secret and its VM. */
  namespace: string;
  /** The name of the Secret. */
  secret: string;
  /** The VM that owns the Secret, or the VMI if there is no VM. */
  owner: {
    /** The kind of the owner. */
    kind: 'VirtualMachine' | 'VirtualMachineInstance';
    /** The name of the owner. */
    name: string;
    /** The UID of the owner. */
    uid: string;
  };
}
