import type { LeaseRecord, LeaseRequest } from '../../addressing/lease/lease.js';
import type { AddressLease, LeaseOwner } from '../../api/address-lease.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { KubeObject } from '../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { Pod } from '../../api/pod.js';
import { namespacedResource } from '../../kube/resource.js';

/** The input of a plan. Leases were read before pods: an owner that is not among the pods is gone. */
export interface MigrationObservation {
  readonly nads: readonly NetworkAttachmentDefinition[];
  readonly ipPools: readonly WhereaboutsObject[];
  readonly reservations: readonly WhereaboutsObject[];
  readonly slices: readonly WhereaboutsObject[];
  readonly leases: readonly AddressLease[];
  readonly pools: readonly AddressPool[];
  readonly claims: readonly IPAMClaim[];
  readonly pods: readonly Pod[];
}

/** Why an entry gets no lease. */
export type LeftOutReason =
  /** The entry is invalid. */
  | 'unreadable'
  /** Its pod is gone or terminal. */
  | 'pod-gone'
  /** Its pod reports other addresses: an earlier pod of the same name had this one. */
  | 'stale'
  /** Only its pod reports it, which is not sufficient. */
  | 'unconfirmed'
  /** It is in no subnet of the network. */
  | 'outside'
  /** The pool cannot lease it: it is excluded, outside the ranges or the gateway. */
  | 'not-leasable'
  /** No NAD uses the IPPool. */
  | 'no-nad';

export interface LeftOut {
  readonly reason: LeftOutReason;
  /** Where it was found, such as `IPPool kube-system/10.0.0.0-24 allocation "5"`. */
  readonly source: string;
  readonly message: string;
  /** The networks to which it may belong; empty: unknown. */
  readonly networks: readonly string[];
  readonly address?: string;
}

/** A problem that the user has to resolve before an address, pool or NAD can be migrated. */
export interface Conflict {
  readonly kind: 'network' | 'range' | 'pool' | 'address' | 'lease' | 'claim';
  /** The NAD, the IPPool without a NAD, the pool, or the address in its address space. */
  readonly subject: string;
  readonly message: string;
  readonly networks: readonly string[];
  /** Reserves the address if the conflict is skipped. Absent if it has a lease, or if no address is in conflict. */
  readonly reservation?: AddressLease;
}

/** A pool of planned leases. */
export interface PlannedPool {
  readonly pool: AddressPool;
  readonly network: string;
  readonly state: 'exists' | 'create';
}

export interface PlannedLease {
  readonly request: LeaseRequest;
  /** The lease's name. */
  readonly name: string;
  readonly network: string;
  readonly nad: string;
  readonly pod: LeaseOwner;
  readonly source: string;
  /** `done`: the owner holds it already; `replace`: it is taken over from an owner that is gone. */
  readonly state: 'create' | 'done' | 'replace';
  /** The existing lease. */
  readonly record?: LeaseRecord;
}

export interface NadChange {
  readonly nad: string;
  readonly network: string;
  /** The new address space. NADs that share one change together because whereabouts does not read leases. */
  readonly space: string;
  /** Of the `ipam` object in the NAD. */
  readonly path: string;
  /** Changed lines of the `ipam` object, as JSON. */
  readonly removed: readonly string[];
  readonly added: readonly string[];
  /** The complete new `spec.config`. */
  readonly config: string;
}

/** The address of a VM's launcher. */
export interface VmAddress {
  /** `namespace/name` of its VMI. */
  readonly vm: string;
  readonly nad: string;
  readonly network: string;
  readonly address: string;
  /** True if the NAD allows a claim. */
  readonly claim: boolean;
}

export interface Plan {
  readonly pools: readonly PlannedPool[];
  readonly leases: readonly PlannedLease[];
  readonly leftOut: readonly LeftOut[];
  readonly conflicts: readonly Conflict[];
  readonly changes: readonly NadChange[];
  readonly vms: readonly VmAddress[];
}

/**
 * An object of whereabouts (whereabouts.cni.cncf.io/v1alpha1). Its content is not typed because versions differ and users edit it. The plan names
 * invalid content.
 */
export interface WhereaboutsObject extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

const API_VERSION = 'whereabouts.cni.cncf.io/v1alpha1';

/** The allocated addresses of one range, or of the slice of one node. */
export const IP_POOLS = namespacedResource<WhereaboutsObject>(API_VERSION, 'ippools', 'IPPool');

/** An allocated address that no other range may allocate. */
export const IP_RESERVATIONS = namespacedResource<WhereaboutsObject>(
  API_VERSION,
  'overlappingrangeipreservations',
  'OverlappingRangeIPReservation',
);

/** The slices of a range and their nodes. */
export const NODE_SLICE_POOLS = namespacedResource<WhereaboutsObject>(API_VERSION, 'nodeslicepools', 'NodeSlicePool');
