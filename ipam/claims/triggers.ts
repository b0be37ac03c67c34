import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type KubeObject, joinKey, objectKey } from '../../api/meta.js';
import type { Address } from '../core/address.js';
import { type LeaseRecord, stateOf } from '../core/lease.js';
import { affectedClaims } from '../directory/affected.js';
import type { NetworkChanges } from '../directory/directory.js';
import type { ClaimWaitList } from './wait-list.js';

/** Maps changes to the keys of the claims that must be synced. */

export function keysOfClaim({ object }: { object: KubeObject }): string[] {
  return [objectKey(object)];
}

/** The claims that have or had the lease and, if it is not held any more, the claims that wait for it. */
export function keysOfLease(
  { before, after }: { before?: LeaseRecord; after?: LeaseRecord },
  waitList: Pick<ClaimWaitList, 'claimsToWake'>,
): string[] {
  const lease = after ?? before;
  if (lease === undefined) return [];
  const isTaken = after !== undefined && stateOf(after) === 'held';
  const waiting = isTaken ? [] : waitList.claimsToWake(lease.addressSpace, lease.address);
  return [...new Set([...claimOf(before), ...claimOf(after), ...waiting])];
}

/** The claims that wait for an address that is free again without a lease change, because a pending write of its lease was abandoned. */
export function keysOfFreedAddress(
  addressSpace: string,
  address: Address,
  waitList: Pick<ClaimWaitList, 'claimsToWake'>,
): readonly string[] {
  return waitList.claimsToWake(addressSpace, address);
}

/** The claims whose pools or NADs have changed, oldest first. */
export function keysOfNetworks(
  changes: NetworkChanges,
  claims: { byIndex(index: string, value: string): readonly IPAMClaim[] },
): string[] {
  return keysByAge(affectedClaims(changes, claims));
}

/**
 * All claims, so that a new leader need not know which of them waited. Claims that show addresses come first, because after a restore no lease may protect these
 * addresses yet; then all others; each group oldest first. Deleted claims that still have leases come last.
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
