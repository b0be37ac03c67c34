import type { Address } from '../../addressing/address/address.js';
import { isHeldOrReserved } from '../../addressing/lease/lease.js';
import { type Pool, subnetOf } from '../../addressing/pool/pool.js';
import { formatLeases } from '../pools/named-leases.js';
import type { PoolLease } from './view.js';

/** Leases that are held or reserved. */
export function unreleased(leases: Iterable<PoolLease>): PoolLease[] {
  return [...leases].filter(isHeldOrReserved);
}

/**
 * Unreleased leases whose address a pool would no longer have.
 * @param before the pool before the change, if it was valid: an address that it lacked already is not lost by the change
 */
export function leasesLeftOut(before: Pool | undefined, after: Pool, leases: Iterable<PoolLease>): PoolLease[] {
  return unreleased(leases).filter(
    ({ address }) => !hasAddress(after, address) && (before === undefined || hasAddress(before, address)),
  );
}

/** Formats leases in the order of their addresses: see {@link formatLeases}. */
export function describeLeases(leases: readonly PoolLease[], reader?: string): string {
  return formatLeases([...leases].sort(byAddress), leases.length, reader);
}

/** Formats a number of leases, as `1 leased address`. */
export function countLeases({ length }: readonly PoolLease[]): string {
  return length === 1 ? '1 leased address' : `${length} leased addresses`;
}

function hasAddress(pool: Pool, address: Address): boolean {
  return subnetOf(pool, address)?.leasable.has(address.value) ?? false;
}

function byAddress({ address: a }: PoolLease, { address: b }: PoolLease): number {
  if (a.family !== b.family) return a.family - b.family;
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}
