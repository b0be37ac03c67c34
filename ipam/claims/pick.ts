import { type Address, type Family, sameAddress } from '../../addressing/address/address.js';
import {
  type AllocationCandidate,
  type AllocationContext,
  type AllocationRequest,
  type AllocationResult,
  type SpaceView,
  addressOf,
  findCandidates,
} from '../../addressing/allocator/allocator.js';
import { poolFullSubject } from '../../addressing/allocator/refusal-messages.js';
import { type LeaseRecord, isReservation, isSameWorkload, stateOf } from '../../addressing/lease/lease.js';
import { leaseOwnerOf } from '../../addressing/lease/lease-record.js';
import { type LeaseRules, leaseTimesOf } from '../../addressing/lease/lease-times.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { type IPAMClaim, claimMacOf, claimOwnerOf } from '../../api/ipam-claim.js';
import { joinKey, objectKey } from '../../api/meta.js';
import { AllocationReason, IPAM_CLAIM_KIND, REQUESTED_ADDRESSES_ANNOTATION } from '../../api/names.js';
import type { Clock } from '../../kube/clock.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { ClaimObservation } from './observe.js';
import { readAddressRequest, readShownAddresses } from './shown/claim-addresses.js';
import type { RestoreHolds } from './shown/restore-holds.js';
import type { ClaimStep } from './step.js';
import type { ClaimWaitList } from './wait-list.js';

/** The leases to pick from, and the rules of picking. */
interface PickInput extends HolderViews {
  view: SpaceView;
  terms: AllocationContext;
  waitList: Pick<ClaimWaitList, 'countOlder'>;
  /** The claim has an address that is draining: claims without an address come first. Default: those that are older. */
  isDraining?: boolean;
  /** Called for a family of which all free addresses are in blocks of nodes. */
  noteShortage?: (family: Family) => void;
}

/**
 * Picks addresses for a claim, or says why there are none. Older waiting claims get free addresses first. Requested, former and sticky addresses are exempt, because
 * no claim that waits for any address loses one by them.
 */
export function pick(
  claim: IPAMClaim,
  pool: Pool,
  request: AllocationRequest,
  { view, terms, claims, waitList, isDraining = false, noteShortage }: PickInput,
): AllocationResult {
  const result = explainRequestConflict(claim, findCandidates(pool, request, view, terms), { view, claims });
  const needed = familiesNeedingFreeAddress(result, request);
  for (const family of needed) if (view.space.isUnlentExhausted(pool.name, family)) noteShortage?.(family);
  const { creationTimestamp: created = '' } = claim.metadata;
  const countOlder = (family: Family) =>
    waitList.countOlder(pool.name, family, { key: objectKey(claim), created, isDraining });
  if (!result.ok) {
    // the oldest waiting claim is retried by time, and wakes the others
    const { retryAt: _first, ...refusal } = result.refusal;
    return refusal.family !== undefined && countOlder(refusal.family) > 0 ? { ok: false, refusal } : result;
  }
  for (const family of needed) {
    const olderClaims = countOlder(family);
    if (olderClaims > 0 && view.space.free(pool.name, family) <= BigInt(olderClaims))
      return refuseForOlder(olderClaims, pool, family);
  }
  return result;
}

function refuseForOlder(olderClaims: number, pool: Pool, family: Family): AllocationResult {
  const older = olderClaims === 1 ? '1 older claim' : `${olderClaims} older claims`;
  const message = `${poolFullSubject(pool, family)}: its last free addresses are for ${older}`;
  return { ok: false, refusal: { reason: AllocationReason.Exhausted, message, family } };
}

/** Families for which the claim takes, or lacks, an address that any claim may get. */
function familiesNeedingFreeAddress(result: AllocationResult, request: AllocationRequest): readonly Family[] {
  const { families } = request;
  if (!result.ok) return result.refusal.reason === AllocationReason.Exhausted ? families : [];
  const kept = result.candidates
    .filter((candidate) => isKeptFor(request, candidate))
    .map((candidate) => addressOf(candidate).family);
  return families.filter((family) => !kept.includes(family));
}

function isKeptFor({ mac, former }: AllocationRequest, candidate: AllocationCandidate): boolean {
  if (candidate.kind === 'create') return false;
  const { lease } = candidate;
  return former?.includes(lease) === true || (mac !== undefined && lease.mac === mac);
}

/**
 * Returns the leases that earlier claims for the same interface of the VM released: a successor gets their addresses even if the controller could not
 * create it at once, and no longer knows them. Reservations go by MAC address. Addresses that a probe found taken are left out.
 */
export function formerLeasesOf(claim: IPAMClaim, pool: Pool, book: Pick<LeaseBook, 'ofClaim'>): LeaseRecord[] {
  const owner = leaseOwnerOf(claim);
  const isOfEarlierClaim = ({ owner: former }: LeaseRecord) =>
    former !== undefined && former.uid !== owner.uid && isSameWorkload(former, owner);
  return book
    .ofClaim(owner.namespace, owner.name)
    .filter((lease) => lease.pool === pool.name && stateOf(lease) === 'released' && !isReservation(lease))
    .filter((lease) => isOfEarlierClaim(lease) && typeof lease.probe !== 'object');
}

/** Returns what a claim asks of its pool. It may keep the addresses that it shows or runs with, although they are draining. */
export function allocationRequestOf(
  { addresses, families }: Extract<ClaimStep, { kind: 'allocate' }>,
  { claim, running }: Pick<ClaimObservation, 'claim' | 'running'>,
  prefersSticky: boolean,
): AllocationRequest {
  const mac = claimMacOf(claim);
  const shown = readShownAddresses(claim).addresses;
  const isRunning = running.kind === 'addresses';
  return {
    addresses,
    families,
    kept: isRunning ? [...shown, ...running.addresses] : shown,
    owner: leaseOwnerOf(claim),
    ...(mac !== undefined && { mac }),
    prefersSticky,
    ...(isRunning && { launchers: running.launchers }),
  };
}

export interface AllocationTermsSource extends LeaseRules {
  clock: Pick<Clock, 'now'>;
  heldByStopped: (pool: string, family: Family) => number;
  restoreHolds: Pick<RestoreHolds, 'holdAgainst'>;
}

/** Returns the rules by which the pool allocates addresses to a claim now. */
export function allocationTermsOf(claim: IPAMClaim, pool: Pool, source: AllocationTermsSource): AllocationContext {
  const { clock, heldByStopped, restoreHolds } = source;
  return {
    ...leaseTimesOf(pool, source),
    now: clock.now(),
    // counted only if a message needs it
    heldByStopped: (family) => heldByStopped(pool.name, family),
    restoreHoldOn: (address) => restoreHolds.holdAgainst(claim, pool.addressSpace, address),
  };
}

/** Where the holder of an address is looked up. */
interface HolderViews {
  view: Pick<SpaceView, 'leaseAt'>;
  /** By key. */
  claims: { get(key: string): IPAMClaim | undefined };
}

/**
 * Says what to do if a requested address is not available. If another claim of the namespace holds and requests it, one VM may be a copy. KubeVirt copies a VM's
 * request into clones, restored VMs, and all VMs of a VirtualMachinePool; the copy does not get the address.
 */
function explainRequestConflict(claim: IPAMClaim, result: AllocationResult, holders: HolderViews): AllocationResult {
  if (result.ok || result.refusal.reason !== AllocationReason.Conflict) return result;
  const { refusal } = result;
  if (refusal.address === undefined || !isRequested(refusal.address, claim)) return result;
  // the message says what to do about the host that has the address
  if (holders.view.leaseAt(refusal.address)?.quarantine !== undefined) return result;
  const copy = claimOwnerOf(claim)?.name;
  const source = sourceOf(refusal.address, claim, holders);
  const remedy =
    copy === undefined || source === undefined
      ? '. Request another address, or wait until this one is free'
      : `, which requests it too: if VM ${copy} is a copy of VM ${source}, remove the network from the annotation ` +
        `${REQUESTED_ADDRESSES_ANNOTATION} in the template of VM ${copy} to get another address, or request a free one there`;
  return { ok: false, refusal: { ...refusal, message: `${refusal.message}${remedy}` } };
}

/** Returns the name of the VM whose claim has requested the address and holds it. Objects of other namespaces are not named. */
function sourceOf(address: Address, { metadata }: IPAMClaim, { view, claims }: HolderViews): string | undefined {
  const { namespace } = metadata;
  const owner = view.leaseAt(address)?.owner;
  if (owner?.kind !== IPAM_CLAIM_KIND || owner.namespace !== namespace) return undefined;
  const holder = claims.get(joinKey(namespace, owner.name));
  if (holder?.metadata.uid !== owner.uid || !isRequested(address, holder)) return undefined;
  return claimOwnerOf(holder)?.name;
}

function isRequested(address: Address, claim: IPAMClaim): boolean {
  const request = readAddressRequest(claim);
  return request.kind === 'addresses' && request.addresses.some((other) => sameAddress(other, address));
}
