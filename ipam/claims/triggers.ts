import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type KubeObject, joinKey, objectKey } from '../../api/meta.js';
import type { Address } from '../core/address.js';
import { type LeaseRecord, stateOf } from '../core/lease.js';
import { BY_NETWORK } from './indexes.js';
import type { ClaimWaitList } from './wait-list.js';

/** Which claims a change concerns, as keys. */

export function keysOfClaim({ object }: { object: KubeObject }): string[] {
  return [objectKey(object)];
}

/** The claims that have and had the lease, and where it is not somebody's now, those who wait for such. */
export function keysOfLease(
  { before, after }: { before?: LeaseRecord; after?: LeaseRecord },
  waiters: Pick<ClaimWaitList, 'concerned'>,
): string[] {
  const lease = after ?? before;
  if (lease === undefined) return [];
  const isTaken = after !== undefined && stateOf(after) === 'held';
  const waiting = isTaken ? [] : waiters.concerned(lease.addressSpace, lease.address);
  return [...new Set([...claimOf(before), ...claimOf(after), ...waiting])];
}

/** Those who wait for an address that is free again, though no lease has changed: the write that was to lease it was given up. */
export function keysOfFreedAddress(
  addressSpace: string,
  address: Address,
  waiters: Pick<ClaimWaitList, 'concerned'>,
): readonly string[] {
  return waiters.concerned(addressSpace, address);
}

/** The claims of networks whose pools or NADs have changed, oldest first. */
export function keysOfNetworks(
  networks: Iterable<string>,
  claims: { byIndex(index: string, value: string): readonly IPAMClaim[] },
): string[] {
  return keysByAge([...networks].flatMap((network) => claims.byIndex(BY_NETWORK, network)));
}

/**
 * Every claim that there is, so that nobody has to know who waited before: first those that show addresses, for after a restore they may have
 * no lease yet that would keep others from them; each oldest first. Then those that have nothing left but leases.
 */
export function allClaimKeys(
  claims: { list(): readonly IPAMClaim[] },
  book: { all(): Iterable<LeaseRecord> },
): string[] {
  const all = claims.list();
  const keys = new Set([...keysByAge(all.filter(showsAddresses)), ...keysByAge(all)]);
  for (const lease of book.all()) for (const key of claimOf(lease)) keys.add(key);
  return [...keys];
}

function showsAddresses({ status }: IPAMClaim): boolean {
  return (status?.ips?.length ?? 0) > 0;
}

function claimOf(lease: LeaseRecord | undefined): string[] {
  const owner = lease?.owner;
  return owner?.kind === 'IPAMClaim' ? [joinKey(owner.namespace, owner.name)] : [];
}

function keysByAge(claims: readonly IPAMClaim[]): string[] {
  return claims
    .map((claim) => ({ key: objectKey(claim), created: claim.metadata.creationTimestamp ?? '' }))
    .sort((a, b) => (a.created === b.created ? (a.key < b.key ? -1 : 1) : a.created < b.created ? -1 : 1))
    .map(({ key }) => key);
}
