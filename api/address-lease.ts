import type { AddressLease } from './address-lease-schema.js';

export type {
  AddressLease,
  AddressLeaseSpec,
  LeaseNetworkData,
  LeaseOwner,
  LeaseQuarantine,
} from './address-lease-schema.js';

/**
 * - `held`: allocated to `owner`
 * - `released`: cooling down, or sticky for its MAC address; `owner` is the last one
 * - `reserved`: made by an administrator, without an owner; for one MAC address, or to keep the address unused
 * - `quarantined`: a host that Holdfast does not know has the address, so nobody gets it for a while
 */
export const LEASE_STATES = ['held', 'released', 'reserved', 'quarantined'] as const;
export type LeaseState = (typeof LEASE_STATES)[number];

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
