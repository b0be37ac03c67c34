import type { AddressLease } from './address-lease-schema.js';

export type {
  AddressLease,
  AddressLeaseSpec,
  LeaseNetworkData,
  LeaseOwner,
  LeaseQuarantine,
} from './address-lease-schema.js';

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
