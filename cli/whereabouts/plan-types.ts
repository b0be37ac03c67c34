import type { LeaseOwner } from '../../api/address-lease.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';
import type { AddressLease } from '../../api/address-lease.js';
import type { Pod } from '../../api/pod.js';
import type { LeaseRecord, LeaseRequest } from '../../ipam/core/lease.js';
import type { WhereaboutsObject } from './kinds.js';

/** All that a plan is made of. Leases are older than pods: an owner that is not among the pods is gone. */
export interface ObservedCluster {
  readonly nads: readonly NetworkAttachmentDefinition[];
  readonly ipPools: readonly WhereaboutsObject[];
  readonly reservations: readonly WhereaboutsObject[];
  readonly slices: readonly WhereaboutsObject[];
  readonly leases: readonly AddressLease[];
  readonly pools: readonly AddressPool[];
  readonly claims: readonly IPAMClaim[];
  readonly pods: readonly Pod[];
}

/** Why something that whereabouts knows gets no lease. */
export type LeftOutReason =
  /** It cannot be read. */
  | 'unreadable'
  /** Its pod is gone, or has ended. */
  | 'pod-gone'
  /** Its pod says that it has other addresses: this one was an earlier pod's of the same name. */
  | 'stale'
  /** Its pod alone says so, and cannot be believed. */
  | 'unconfirmed'
  /** It lies in no subnet of the network. */
  | 'outside'
  /** The pool leases it to nobody: it is excluded, or the gateway. */
  | 'not-leasable'
  /** No NAD is for the IPPool. */
  | 'no-nad';

export interface LeftOut {
  readonly reason: LeftOutReason;
  /** Where it stands, such as `IPPool kube-system/10.0.0.0-24 allocation "5"`. */
  readonly source: string;
  readonly message: string;
  /** Those that it could belong to; none: nobody knows. */
  readonly networks: readonly string[];
  readonly address?: string;
}

/** What has to be decided by somebody before this can be moved. */
export interface Conflict {
  readonly kind: 'network' | 'range' | 'pool' | 'address' | 'lease' | 'claim';
  /** The NAD, the IPPool that has none, the pool, or the address in its address space. */
  readonly subject: string;
  readonly message: string;
  readonly networks: readonly string[];
  /** Keeps the address from everybody where the conflict is passed over; absent: it has a lease, or none is at stake. */
  readonly reservation?: AddressLease;
}

/** A pool that is to be leased from. */
export interface PlannedPool {
  readonly pool: AddressPool;
  readonly network: string;
  /** `exists`: it is there; `create`: it is made. */
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
  /** `done`: the owner has it already; `replace`: what is left of an owner that is gone gives way. */
  readonly state: 'create' | 'done' | 'replace';
  /** What is there. */
  readonly record?: LeaseRecord;
}

/** What a NAD has to become. */
export interface NadChange {
  readonly nad: string;
  readonly network: string;
  /** The address space afterwards. whereabouts never looks at leases: NADs that share one move together. */
  readonly space: string;
  /** Of the `ipam` object in the NAD. */
  readonly path: string;
  /** Lines of the `ipam` object that go and come, as JSON. */
  readonly removed: readonly string[];
  readonly added: readonly string[];
  /** The whole `spec.config` afterwards. */
  readonly config: string;
}

/** A virtual machine whose launcher has an address. */
export interface VmAddress {
  /** `namespace/name` of its VMI. */
  readonly vm: string;
  readonly nad: string;
  readonly network: string;
  readonly address: string;
  /** The NAD lets it have a claim. */
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
