import { type Address, readAllAddresses, sameAddress } from '../../addressing/address/address.js';
import type { LeakCandidate } from '../../addressing/lease/leak-candidates.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import { type LeaseOwner, describeLeaseOwner } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { readAddressRequest } from '../claims/shown/claim-addresses.js';

/**
 * - `orphan`: its owner does not exist any more
 * - `surplus`: its owner, a claim, has another address, and its status does not contain this one
 * - `no-pool`: its owner, a pod, runs without the address, and the pool does not exist
 */
export type LeakKind = 'orphan' | 'surplus' | 'no-pool';

export type LeakedLease = LeakCandidate<LeakKind>;

/** A pod; a mirror pod with the UID of its static pod. */
export interface PodIdentity {
  readonly metadata: { readonly uid?: string };
  readonly staticUid?: string;
}

/** `unknown`: nothing is known of the pods of that node. `agent`: only the agent of the node knows whether containers of the pod run. */
export type PodOnNode = PodIdentity | undefined | 'unknown' | 'agent';

/** The owners according to the caches, which choose candidates and never prove a leak. */
export interface OwnerLookup {
  /** By `namespace/name`. */
  claim(key: string): IPAMClaim | undefined;
  /** The pod of that name on the node of the lease. */
  pod(key: string, node: string | undefined): PodOnNode;
  /** The leases of the claim's UID. */
  leasesOf(claim: IPAMClaim): readonly LeaseRecord[];
  hasPool(name: string): boolean;
  /** The addresses that each pod of the claim reports. */
  reportedAddressesOf(claim: IPAMClaim): readonly (readonly string[])[];
}

/**
 * Returns undefined if the lease does not look leaked, `unknown` if nothing is known of its owner. Only held ones can leak: released ones expire, and reservations
 * belong to an administrator.
 */
export function leakKindOf(lease: LeaseRecord, owners: OwnerLookup): LeakKind | 'unknown' | undefined {
  const { owner } = lease;
  if (owner === undefined || stateOf(lease) !== 'held') return undefined;
  const key = joinKey(owner.namespace, owner.name);
  switch (owner.kind) {
    case 'Pod':
      return leakOfPod(owner.uid, owners.pod(key, lease.node), owners.hasPool(lease.pool));
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

/** An unknown pod comes first, also if the pool does not exist: otherwise the lease would change between two kinds of leak, and never be due. */
function leakOfPod(uid: string, pod: PodOnNode, hasPool: boolean): LeakKind | 'unknown' | undefined {
  if (pod === 'unknown') return 'unknown';
  if (pod !== 'agent' && ![pod?.metadata.uid, pod?.staticUid].includes(uid)) return 'orphan';
  return hasPool ? undefined : 'no-pool';
}

function looksSurplus(lease: LeaseRecord, claim: IPAMClaim, owners: OwnerLookup): boolean {
  const siblings = owners.leasesOf(claim);
  // fast path: nearly all claims have one lease of each family, and their status contains it
  const ofFamily = siblings.filter(({ address }) => address.family === lease.address.family).length;
  if (ofFamily < 2 && siblings.length <= (claim.status?.ips?.length ?? 0)) return false;
  return (
    surplusProof(lease, { claim, claimLeases: siblings, reportedAddresses: owners.reportedAddressesOf(claim) }) !==
    undefined
  );
}

/** For example `IPAMClaim vms/vm1.data (UID 123)`. */
export function describeOwner(owner: LeaseOwner): string {
  return `${describeLeaseOwner(owner)} (UID ${owner.uid})`;
}

/** Everything that decides whether a claim needs one of its leases. */
interface ClaimUsage {
  claim: IPAMClaim;
  /** The leases of the claim's UID. */
  claimLeases: readonly LeaseRecord[];
  /** The addresses that each pod of the claim reports, as text. */
  reportedAddresses: readonly (readonly string[])[];
}

/**
 * Returns the claim's lease that proves another one surplus: the claim's status contains its address and not the other one. Both are of
 * one family if the status contains an address of that family. Returns undefined if the lease may be needed: its address is requested,
 * the claim is being deleted, a pod has the address or does not report the other one, or something cannot be parsed.
 */
export function surplusProof(lease: LeaseRecord, usage: ClaimUsage): LeaseRecord | undefined {
  const { claim, claimLeases, reportedAddresses } = usage;
  if (isBeingDeleted(claim)) return undefined;
  const inStatus = readAllAddresses(claim.status?.ips ?? []);
  const requested = requestedAddressesOf(claim);
  if (inStatus === undefined || requested === undefined) return undefined;
  if (isAmong(lease.address, [...inStatus, ...requested])) return undefined;
  const { family } = lease.address;
  const hasFamilyInStatus = inStatus.some((address) => address.family === family);
  const used = reportedAddresses.map(readAllAddresses);
  return claimLeases.find(
    (sibling) =>
      (sibling.address.family === family || !hasFamilyInStatus) &&
      stateOf(sibling) === 'held' &&
      sibling.owner?.uid === claim.metadata.uid &&
      isAmong(sibling.address, inStatus) &&
      used.every((has) => has !== undefined && isAmong(sibling.address, has) && !isAmong(lease.address, has)),
  );
}

function isAmong(address: Address, addresses: readonly Address[]): boolean {
  return addresses.some((other) => sameAddress(other, address));
}

/** @returns undefined if the request is invalid */
function requestedAddressesOf(claim: IPAMClaim): readonly Address[] | undefined {
  const request = readAddressRequest(claim);
  if (request.kind === 'invalid') return undefined;
  return request.kind === 'addresses' ? request.addresses : [];
}

/** Why a lease that looks leaked is kept. */
export type KeepReason = { kind: 'alive' } | { kind: 'changed' } | { kind: 'unknown'; why: string };
