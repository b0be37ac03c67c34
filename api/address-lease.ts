import type { AddressLease } from './address-lease-schema.js';
import type { ObjectWrite } from './meta.js';

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

export function describeLeaseOwner({ kind, namespace, name }: Record<'kind' | 'namespace' | 'name', string>): string {
  return `${kind} ${namespace}/${name}`;
}

export type LeaseWrite = ObjectWrite<AddressLease>;
