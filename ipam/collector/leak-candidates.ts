import type { LeaseOwner } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { joinKey } from '../../api/meta.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import { surplusProof } from './surplus.js';

/**
 * - `orphan`: its owner does not exist any more
 * - `surplus`: its owner, a claim, has another address, and its status does not contain this one
 * - `no-pool`: its owner, a pod, runs without the address, and the pool does not exist
 */
export type LeakKind = 'orphan' | 'surplus' | 'no-pool';

/** A lease that looks leaked. */
export interface LeakCandidate {
  readonly lease: LeaseRecord;
  readonly leak: LeakKind;
  /** When the lease was first observed in this state, in milliseconds. */
  readonly firstSeenAt: number;
}

/** By the lease's UID. */
export type LeakCandidates = ReadonlyMap<string, LeakCandidate>;

/** The owners according to the caches, which choose candidates and never prove a leak. */
export interface OwnerLookup {
  /** By `namespace/name`. */
  claim(key: string): IPAMClaim | undefined;
  /** The pod of that name; a mirror pod with the UID of its static pod. */
  pod(key: string): { readonly metadata: { readonly uid?: string }; readonly staticUid?: string } | undefined;
  /** The leases of a claim's UID. */
  leasesOf(uid: string): readonly LeaseRecord[];
  hasPool(name: string): boolean;
  /** The addresses that each pod of the claim reports. */
  reportedAddressesOf(claim: IPAMClaim): readonly (readonly string[])[];
}

export interface CandidateLimits {
  /** How long a lease must look leaked before it is checked. */
  readonly afterMs: number;
  /** How many leases are checked in one round. */
  readonly maxCandidates: number;
}

/**
 * Returns undefined if the lease does not look leaked now. One that looked the same before keeps its time.
 * @param lease was listed before the owners are read, because an owner exists before its lease does
 */
export function leakCandidateOf(
  lease: LeaseRecord,
  known: LeakCandidates,
  { now, owners }: { now: number; owners: OwnerLookup },
): LeakCandidate | undefined {
  const leak = leakKindOf(lease, owners);
  if (leak === undefined) return undefined;
  const before = known.get(lease.metadata.uid);
  const firstSeenAt = before !== undefined && isSameCandidate(before, lease, leak) ? before.firstSeenAt : now;
  return { lease, leak, firstSeenAt };
}

/** Returns the candidates that have looked leaked in the same state for long enough, oldest first. */
export function dueCandidates(
  candidates: LeakCandidates,
  now: number,
  { afterMs, maxCandidates }: CandidateLimits,
): LeakCandidate[] {
  const due = [...candidates.values()].filter(({ firstSeenAt }) => now - firstSeenAt >= afterMs);
  return due.sort((a, b) => a.firstSeenAt - b.firstSeenAt).slice(0, maxCandidates);
}

function isSameCandidate(before: LeakCandidate, lease: LeaseRecord, leak: LeakKind): boolean {
  return before.leak === leak && before.lease.metadata.resourceVersion === lease.metadata.resourceVersion;
}

/** Only held leases can leak: released ones expire, and reservations belong to an administrator. */
function leakKindOf(lease: LeaseRecord, owners: OwnerLookup): LeakKind | undefined {
  const { owner } = lease;
  if (owner === undefined || stateOf(lease) !== 'held') return undefined;
  const key = joinKey(owner.namespace, owner.name);
  switch (owner.kind) {
    case 'Pod': {
      const pod = owners.pod(key);
      if (pod === undefined || ![pod.metadata.uid, pod.staticUid].includes(owner.uid)) return 'orphan';
      return owners.hasPool(lease.pool) ? undefined : 'no-pool';
    }
    case 'IPAMClaim': {
      const claim = owners.claim(key);
      if (claim?.metadata.uid !== owner.uid) return 'orphan';
      return looksSurplus(lease, claim, owners) ? 'surplus' : undefined;
    }
    // a newer version of Holdfast may know more kinds of owners
    default:
      return undefined;
  }
}

function looksSurplus(lease: LeaseRecord, claim: IPAMClaim, owners: OwnerLookup): boolean {
  const siblings = owners.leasesOf(claim.metadata.uid ?? '');
  // fast path: nearly all claims have one lease of each family, and their status contains it
  const ofFamily = siblings.filter(({ address }) => address.family === lease.address.family).length;
  if (ofFamily < 2 && siblings.length <= (claim.status?.ips?.length ?? 0)) return false;
  return (
    surplusProof(lease, { claim, claimLeases: siblings, reportedAddresses: owners.reportedAddressesOf(claim) }) !==
    undefined
  );
}

/** For example `IPAMClaim vms/vm1.data (UID 123)`. */
export function describeOwner({ kind, namespace, name, uid }: LeaseOwner): string {
  return `${kind} ${joinKey(namespace, name)} (UID ${uid})`;
}
