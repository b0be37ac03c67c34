import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type KubeObject, joinKey, objectKey } from '../../api/meta.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import { affectedClaims } from '../../addressing/directory/affected.js';
import type { NetworkChanges } from '../../addressing/directory/directory.js';
import type { ClaimWaitList } from './wait-list.js';

/** Maps changes to the keys of the claims that must be synced. */

export function claimKeyOf({ object }: { object: KubeObject }): string[] {
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

/** The claims whose pools or NADs have changed, of each namespace oldest first. */
export function* keysOfNetworks(
  changes: NetworkChanges,
  claims: { byIndex(index: string, value: string): readonly IPAMClaim[] },
): Generator<string> {
  for (const own of byNamespace(affectedClaims(changes, claims))) yield* keysByAge(own);
}

/**
 * All claims, so that a new leader need not know which of them waited. A key may come several times. Claims without addresses come first; then those that show addresses,
 * which restore holds keep for them; of each namespace oldest first. Namespaces take turns anyway. Deleted claims that still have leases come last.
 */
export function* allClaimKeys(
  claims: { list(): readonly IPAMClaim[] },
  book: { all(): Iterable<LeaseRecord> },
): Generator<string> {
  const namespaces = byNamespace(claims.list());
  for (const own of namespaces) yield* keysByAge(own.filter((claim) => !showsAddresses(claim)));
  for (const own of namespaces) yield* keysByAge(own.filter(showsAddresses));
  for (const lease of book.all()) yield* claimOf(lease);
}

/** Sorting the claims of all namespaces together would block the event loop. */
function byNamespace(claims: readonly IPAMClaim[]): readonly IPAMClaim[][] {
  const groups = new Map<string, IPAMClaim[]>();
  for (const claim of claims) {
    const { namespace = '' } = claim.metadata;
    const own = groups.get(namespace);
    if (own === undefined) groups.set(namespace, [claim]);
    else own.push(claim);
  }
  return [...groups.values()];
}

function showsAddresses({ status }: IPAMClaim): boolean {
  return (status?.ips?.length ?? 0) > 0;
}

function claimOf(lease: LeaseRecord | undefined): string[] {
  const owner = lease?.owner;
  return owner?.kind === 'IPAMClaim' ? [joinKey(owner.namespace, owner.name)] : [];
}

/** A network may have 100,000 claims: with keys that are made for each comparison, the sort takes twice as long. */
function keysByAge(claims: readonly IPAMClaim[]): string[] {
  return claims
    .map((claim) => ({ key: objectKey(claim), created: claim.metadata.creationTimestamp ?? '' }))
    .sort((a, b) => (a.created === b.created ? (a.key < b.key ? -1 : 1) : a.created < b.created ? -1 : 1))
    .map(({ key }) => key);
}
