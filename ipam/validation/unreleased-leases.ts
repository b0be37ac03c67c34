import type { LeaseOwner } from '../../api/address-lease.js';
import { joinKey } from '../../api/meta.js';
import { type Address, formatAddress } from '../core/address.js';
import { stateOf } from '../core/lease.js';
import { type Pool, subnetOf } from '../core/pool.js';
import type { PoolLease } from './view.js';

const MAX_SHOWN_LEASES = 5;

/** Leases that somebody would miss: those of a living owner, and those that an admin reserved. */
export function unreleased(leases: Iterable<PoolLease>): PoolLease[] {
  return [...leases].filter((lease) => stateOf(lease) !== 'released');
}

/**
 * Missed leases whose address a pool would no longer have.
 * @param before the pool as it is, where it can be served: what it has lost already is lost by no change of now
 */
export function leasesLeftOut(before: Pool | undefined, after: Pool, leases: Iterable<PoolLease>): PoolLease[] {
  return unreleased(leases).filter(
    ({ address }) => !hasAddress(after, address) && (before === undefined || hasAddress(before, address)),
  );
}

/**
 * `10.0.0.5 (IPAMClaim vms/vm1.blue), 10.0.0.6 (reserved) and 3 more`, in the order of the addresses.
 * @param reader the namespace whose tenants read it: owners in other namespaces are not named; undefined: an administrator reads it
 */
export function describeLeases(leases: readonly PoolLease[], reader?: string): string {
  const sorted = [...leases].sort(byAddress);
  const shown = sorted.slice(0, MAX_SHOWN_LEASES).map(({ address, owner, releasedAt }) => {
    const state = releasedAt === undefined ? describeOwner(owner, reader) : 'cooling down';
    return `${formatAddress(address)} (${state})`;
  });
  const more = sorted.length - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
}

function describeOwner(owner: LeaseOwner | undefined, reader: string | undefined): string {
  if (owner === undefined) return 'reserved';
  const isShown = reader === undefined || owner.namespace === reader;
  return isShown ? `${owner.kind} ${joinKey(owner.namespace, owner.name)}` : 'in another namespace';
}

/** `1 leased address`. */
export function countLeases({ length }: readonly PoolLease[]): string {
  return length === 1 ? '1 leased address' : `${length} leased addresses`;
}

function hasAddress(pool: Pool, address: Address): boolean {
  return subnetOf(pool, address)?.requestable.has(address.value) ?? false;
}

function byAddress({ address: a }: PoolLease, { address: b }: PoolLease): number {
  if (a.family !== b.family) return a.family - b.family;
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}
