import type { LeaseOwner } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { joinKey } from '../../api/meta.js';
import { type LeaseRecord, stateOf } from '../core/lease.js';
import { surplusProof } from './surplus.js';

/**
 * - `orphan`: its owner is gone
 * - `surplus`: its owner, a claim, has another address and does not name this one
 * - `no-pool`: its owner, a pod, runs without the address, and there is no such pool
 */
export type LeakKind = 'orphan' | 'surplus' | 'no-pool';

/** A lease that looks leaked. */
export interface LeakCandidate {
  readonly lease: LeaseRecord;
  readonly charge: LeakKind;
  /** When it was first seen so, in ms. */
  readonly since: number;
}

/** By the lease's UID. */
export type LeakCandidates = ReadonlyMap<string, LeakCandidate>;

/** The owners as the caches have them: candidates are chosen by it, never proved. */
export interface OwnerLookup {
  /** By `namespace/name`. */
  claim(key: string): IPAMClaim | undefined;
  /** Which pod has that name; of a mirror pod with the UID of its static pod. */
  pod(key: string): { readonly metadata: { readonly uid?: string }; readonly staticUid?: string } | undefined;
  /** Of a claim's UID. */
  leasesOf(uid: string): readonly LeaseRecord[];
  hasPool(name: string): boolean;
  /** Of each pod that uses the claim the addresses that it reports. */
  reportedAddressesOf(claim: IPAMClaim): readonly (readonly string[])[];
}

export interface LeakObservation {
  /** In the clock's ms. */
  readonly now: number;
  /** Taken before the owners are looked at: an owner is there before its lease is. */
  readonly leases: readonly LeaseRecord[];
  readonly owners: OwnerLookup;
}

export interface CandidateLimits {
  /** How long a lease looks leaked before it is taken for a case. */
  readonly afterMs: number;
  /** Cases of one round; the others wait. */
  readonly cases: number;
}

/**
 * Compares what is seen with what was seen before.
 * @returns those that look leaked now
 */
export function findLeakCandidates(known: LeakCandidates, { now, leases, owners }: LeakObservation): LeakCandidate[] {
  return leases.flatMap((lease) => {
    const charge = leakKindOf(lease, owners);
    if (charge === undefined) return [];
    const before = known.get(lease.metadata.uid);
    const since = before !== undefined && isSameCandidate(before, lease, charge) ? before.since : now;
    return { lease, charge, since };
  });
}

/** @returns those that have looked leaked for long enough, in the very same state; oldest first */
export function dueCandidates(
  candidates: LeakCandidates,
  now: number,
  { afterMs, cases }: CandidateLimits,
): LeakCandidate[] {
  const due = [...candidates.values()].filter(({ since }) => now - since >= afterMs);
  return due.sort((a, b) => a.since - b.since).slice(0, cases);
}

function isSameCandidate(before: LeakCandidate, lease: LeaseRecord, charge: LeakKind): boolean {
  return before.charge === charge && before.lease.metadata.resourceVersion === lease.metadata.resourceVersion;
}

/** Released leases expire, and reserved ones are an admin's: neither can leak. */
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
    // of a version of Holdfast that knows more kinds of owners
    default:
      return undefined;
  }
}

function looksSurplus(lease: LeaseRecord, claim: IPAMClaim, owners: OwnerLookup): boolean {
  const siblings = owners.leasesOf(claim.metadata.uid ?? '');
  // nearly all claims have one lease of each family, and show it: nothing of them needs to be read
  const ofFamily = siblings.filter(({ address }) => address.family === lease.address.family).length;
  if (ofFamily < 2 && siblings.length <= (claim.status?.ips?.length ?? 0)) return false;
  return (
    surplusProof(lease, { claim, claimLeases: siblings, reportedAddresses: owners.reportedAddressesOf(claim) }) !==
    undefined
  );
}

/** `IPAMClaim vms/vm1.data (UID 123)`. */
export function describeOwner({ kind, namespace, name, uid }: LeaseOwner): string {
  return `${kind} ${joinKey(namespace, name)} (UID ${uid})`;
}
