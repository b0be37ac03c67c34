import type { KubeObject } from './meta.js';

/** AddressLease, ipam.holdfast.dev/v1alpha1, cluster-scoped: one address in use by one owner. Its existence is the reservation. */
export interface AddressLease extends KubeObject {
  spec: AddressLeaseSpec;
}

export interface AddressLeaseSpec {
  /** In canonical text (RFC 5952), without prefix length. Never changes. */
  address: string;
  /** Where the address is unique; the first part of the lease's name. Never changes. */
  addressSpace: string;
  /** The AddressPool's name. Never changes. */
  pool: string;
  /** Who has the address; absent on a reserved lease, which an admin made. */
  owner?: LeaseOwner;
  /** The node where the address is used. */
  node?: string;
  containerID?: string;
  /** The pod's interface. */
  interface?: string;
  /** Lower case, with colons. */
  mac?: string;
  /** True, or absent. It is of the static table: an admin reserved it for its MAC address, and after each owner it is reserved again. */
  reserved?: boolean;
  /** RFC 3339: the owner is gone, and the address cools down, or waits for its MAC address. */
  releasedAt?: string;
}

/** What an address is for. */
export interface LeaseOwner {
  kind: 'IPAMClaim' | 'Pod';
  namespace: string;
  name: string;
  uid: string;
  /** Of a claim's owner, the VM: its next claim may have the address back before it has cooled down. */
  workloadUID?: string;
}

/** One write of the life of a lease; what it is decided on is its precondition. */
export type LeaseWrite =
  /** The name is the lock: of several creators one wins. */
  | { readonly verb: 'create'; readonly lease: AddressLease }
  /** A merge patch (RFC 7386) with `metadata.uid` and `metadata.resourceVersion`: compare-and-swap. */
  | { readonly verb: 'patch'; readonly name: string; readonly body: object }
  | { readonly verb: 'delete'; readonly name: string; readonly uid: string; readonly resourceVersion: string };
