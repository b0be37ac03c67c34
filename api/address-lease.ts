import type { ClaimOwner } from './ipam-claim.js';
import type { KubeObject } from './meta.js';

/** AddressLease, ipam.holdfast.dev/v1alpha1, cluster-scoped: one address, allocated to one owner. Its existence is the lock. */
export interface AddressLease extends KubeObject {
  spec: AddressLeaseSpec;
}

export interface AddressLeaseSpec {
  /** In canonical text (RFC 5952), without prefix length. Immutable. */
  address: string;
  /** The scope in which the address is unique; the first part of the lease's name. Immutable. */
  addressSpace: string;
  /** The AddressPool's name. Immutable. */
  pool: string;
  /** The owner of the address; absent on a reservation, which an administrator made, and on a quarantined address. */
  owner?: LeaseOwner;
  /** The node where the address is used. */
  node?: string;
  containerID?: string;
  /** The pod's interface. */
  interface?: string;
  /** Lower case, with colons. */
  mac?: string;
  /** True or absent. A reservation that an administrator made for a MAC address; it becomes a reservation again after each owner. */
  reserved?: boolean;
  /** RFC 3339. The owner is gone, and the address cools down or is sticky for its MAC address. */
  releasedAt?: string;
  /** A host that Holdfast does not know has the address, which nobody gets for a while. Such a lease has no owner and no fields about one. */
  quarantine?: LeaseQuarantine;
  /** The Secret that may hold the address. Until it is removed, no other VM gets the address. */
  networkData?: LeaseNetworkData;
}

/** A Secret with network data, and the VM or VMI that owns it. Never changed, only removed. */
export interface LeaseNetworkData {
  namespace: string;
  secret: string;
  owner: ClaimOwner;
}

/** Who was found to have an address, and for how long nobody gets it. Never changed. */
export interface LeaseQuarantine {
  /** RFC 3339. */
  since: string;
  /** RFC 3339, after `since`. */
  until: string;
  /** Of the host that answered for the address: lower case, with colons. */
  mac: string;
}

/** What an address is allocated to. */
export interface LeaseOwner {
  kind: 'IPAMClaim' | 'Pod';
  namespace: string;
  name: string;
  uid: string;
  /** The UID of the VM that owns the claim. Its next claim may get the address back before the cool-down ends. */
  workloadUID?: string;
}

/** One write to a lease. Its precondition is the state of the lease on which the write was decided. */
export type LeaseWrite =
  /** The name is the lock: the API server lets one creator win. */
  | { readonly verb: 'create'; readonly lease: AddressLease }
  | LeasePatch
  | { readonly verb: 'delete'; readonly name: string; readonly uid: string; readonly resourceVersion: string };

/** A merge patch (RFC 7386) with `metadata.uid` and `metadata.resourceVersion`: compare-and-swap. */
export interface LeasePatch {
  readonly verb: 'patch';
  readonly name: string;
  readonly body: object;
}
