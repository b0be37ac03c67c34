import type { LeaseOwner } from '../../api/address-lease.js';
import { AllocationReason } from '../../api/names.js';
import type { AddressSpace } from './address-space.js';
import type { Address, Family } from './address.js';
import {
  type LeaseRecord,
  type LeaseTimes,
  type Availability,
  byPreferenceOf,
  expiresAt,
  isReservation,
  isSameWorkload,
  availabilityOf,
  timesWhenExhausted,
} from './lease.js';
import { type Pool, addressesOf, subnetOf } from './pool.js';
import {
  poolFullMessage,
  heldByMessage,
  pendingWriteMessage,
  notInPoolMessage,
  notLeasableMessage,
  reservationMessage,
  restoreHoldMessage,
  notYetMessage,
} from './refusal-messages.js';

/** What somebody needs of a pool. */
export interface AllocationRequest {
  /** Exactly these, at most one of a family. */
  readonly addresses: readonly Address[];
  /** Of which an address is missing; any will do where `addresses` has none of the family. */
  readonly families: readonly Family[];
  /** What is kept for it may be had by who asks for it; where `seeksKept`, it comes before any other. */
  readonly mac?: string;
  /** Default: yes. */
  readonly seeksKept?: boolean;
  readonly owner: LeaseOwner;
}

/** The released leases of a pool and family. */
export interface CoolingSummary {
  readonly count: number;
  /** Of those that wait for no MAC address the one that has cooled down first, and that nobody is taking. */
  readonly first?: CoolingLease;
  /** Of those that wait for their MAC addresses: anybody may take it where nothing else is left. */
  readonly kept?: CoolingLease;
}

export interface CoolingLease {
  readonly lease: LeaseRecord;
  /** When it has cooled down, in milliseconds since the epoch. */
  readonly at: number;
}

/** All leases, as one pool sees them. */
export interface SpaceView {
  readonly space: AddressSpace;
  leaseAt(address: Address): LeaseRecord | undefined;
  /** A write that leases the address is under way. */
  isPending(address: Address): boolean;
  /** Leases of the pool that are kept for a MAC address, in no order: those without a living owner, and those of the static table. */
  stickyLeases(family: Family, mac: string, times: LeaseTimes): readonly LeaseRecord[];
  /** Leaves out those of the static table, and what the pool leases on request alone, or no more. */
  cooling(family: Family, times: LeaseTimes): CoolingSummary;
}

/** A claim that shows an address and has no lease of it. */
export interface RestoreHold {
  readonly namespace: string;
  readonly name: string;
  /** It says itself that it could not have it. */
  readonly wasRefused: boolean;
}

/** The times of the pool's leases, and what else a choice depends on. */
export interface AllocationContext extends LeaseTimes {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** How many of the pool's addresses are held for VMs that do not run; told where the pool is full. */
  readonly heldByStopped?: (family: Family) => number;
  /** Who but the owner has a better right to the address, leased or not. Default: nobody. */
  readonly promisedTo?: (address: Address) => RestoreHold | undefined;
}

/** What to write: a lease that does not exist yet, or one that exists and may be taken. */
export type AllocationCandidate =
  { readonly kind: 'create'; readonly address: Address } | { readonly kind: 'take'; readonly lease: LeaseRecord };

export interface AllocationRefusal {
  readonly reason: AllocationReason;
  /** For users. */
  readonly message: string;
  /** When to ask again, in milliseconds since the epoch, though nothing has changed. */
  readonly retryAt?: number;
  /** Whose release would help. */
  readonly address?: Address;
  /** Of which any address would help. */
  readonly family?: Family;
}

export type AllocationResult =
  | { readonly ok: true; readonly candidates: readonly AllocationCandidate[] }
  | { readonly ok: false; readonly refusal: AllocationRefusal };

type SearchResult = { readonly candidate: AllocationCandidate } | { readonly refusal: AllocationRefusal };

export function addressOf(candidate: AllocationCandidate): Address {
  return candidate.kind === 'create' ? candidate.address : candidate.lease.address;
}

interface AddressSearch {
  readonly pool: Pool;
  readonly wish: AllocationRequest;
  readonly view: SpaceView;
  readonly terms: AllocationContext;
}

/**
 * Addresses for all that is wished, or for nothing of it: the wished ones first, then by family as the wish has them. Writes nothing;
 * what is chosen may be lost to somebody else until it is written.
 * @param view of the same pool
 */
export function findCandidates(
  pool: Pool,
  request: AllocationRequest,
  view: SpaceView,
  context: AllocationContext,
): AllocationResult {
  const search: AddressSearch = { pool, wish: request, view, terms: context };
  const others = request.families.filter((family) => !request.addresses.some((address) => address.family === family));
  const candidates: AllocationCandidate[] = [];
  for (const wanted of [...request.addresses, ...others]) {
    const found = typeof wanted === 'object' ? findRequested(wanted, search) : findAny(wanted, search);
    if ('refusal' in found) return { ok: false, refusal: found.refusal };
    candidates.push(found.candidate);
  }
  return { ok: true, candidates };
}

function findRequested(address: Address, search: AddressSearch): SearchResult {
  const { pool, view, terms } = search;
  const subnet = subnetOf(pool, address);
  if (subnet === undefined) return outOfRange(notInPoolMessage(address, pool), address);
  if (!subnet.requestable.has(address.value)) return outOfRange(notLeasableMessage(address, subnet, pool), address);
  // No lease shows it before it is written, and none will where the write fails: nobody would ask again.
  if (view.isPending(address))
    return conflict(pendingWriteMessage(address), address, terms.now + PENDING_WRITE_RETRY_MS);
  const lease = view.leaseAt(address);
  if (lease !== undefined) {
    const availability = checkAvailability(lease, search);
    if (availability !== true && 'until' in availability) {
      return conflict(notYetMessage(lease, availability.until, terms), address, availability.until);
    }
    if (availability !== true) return conflict(heldByMessage(lease, availability.holder, search.wish.owner), address);
  }
  const restoreHold = conflictingHold(address, lease, search);
  if (restoreHold !== undefined) return conflict(restoreHoldMessage(address, restoreHold, search.wish.owner), address);
  return { candidate: lease === undefined ? { kind: 'create', address } : { kind: 'take', lease } };
}

/** A mere wish keeps nobody from what was his own a moment ago. */
function conflictingHold(
  address: Address,
  lease: LeaseRecord | undefined,
  { wish, terms }: AddressSearch,
): RestoreHold | undefined {
  const restoreHold = terms.promisedTo?.(address);
  const wasItsOwn = lease?.owner !== undefined && isSameWorkload(lease.owner, wish.owner);
  return restoreHold?.wasRefused && wasItsOwn ? undefined : restoreHold;
}

/** The address that waits for the MAC address; else one that is free; else one that has cooled down, those kept for other MAC addresses last. */
function findAny(family: Family, search: AddressSearch): SearchResult {
  const { pool, view, terms } = search;
  const sticky = findSticky(family, search);
  if (sticky !== undefined) return sticky;
  const address = view.space.next(pool.name, family);
  if (address !== undefined) return { candidate: { kind: 'create', address } };
  const cooling = view.cooling(family, terms);
  const exhaustedSearch = { ...search, terms: { ...terms, ...timesWhenExhausted(terms) } };
  for (const cooled of [cooling.first, cooling.kept]) {
    if (cooled !== undefined && checkAvailability(cooled.lease, exhaustedSearch) === true) {
      return { candidate: { kind: 'take', lease: cooled.lease } };
    }
  }
  return { refusal: exhausted(family, search, cooling) };
}

/** @returns undefined where it can have, and waits for, no address in particular */
function findSticky(family: Family, search: AddressSearch): SearchResult | undefined {
  const { wish, view, terms } = search;
  if (wish.mac === undefined || wish.seeksKept === false) return undefined;
  const stickyLeases = view.stickyLeases(family, wish.mac, terms);
  for (const lease of [...stickyLeases].sort(byPreferenceOf(wish.owner))) {
    const found = trySticky(lease, search);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What the static table promises to a MAC address is had or waited for: with another address the workload would be taken for somebody else. */
function trySticky(lease: LeaseRecord, search: AddressSearch): SearchResult | undefined {
  const { pool, wish, view, terms } = search;
  const { address, metadata, owner } = lease;
  if (!isLeasable(pool, address)) return undefined;
  const isReservedForRequest =
    isReservation(lease) && metadata.deletionTimestamp === undefined && owner?.uid !== wish.owner.uid;
  const refuse = (message: string, retryAt?: number) =>
    isReservedForRequest ? conflict(reservationMessage(lease, message), address, retryAt) : undefined;
  if (view.isPending(address)) return refuse(pendingWriteMessage(address), terms.now + PENDING_WRITE_RETRY_MS);
  const restoreHold = conflictingHold(address, lease, search);
  if (restoreHold !== undefined) return refuse(restoreHoldMessage(address, restoreHold, wish.owner));
  const availability = checkAvailability(lease, search);
  if (availability === true) return { candidate: { kind: 'take', lease } };
  if (!('until' in availability)) return refuse(heldByMessage(lease, availability.holder, wish.owner));
  if (!shouldWaitFor(lease, availability.until, search)) return undefined;
  return conflict(notYetMessage(lease, availability.until, terms), address, availability.until);
}

/** A VM that is made anew has the address that it had, or none yet: with another one it would come up too soon. */
function shouldWaitFor(lease: LeaseRecord, until: number, { wish, terms }: AddressSearch): boolean {
  return isReservation(lease) || (lease.owner?.namespace === wish.owner.namespace && until < expiresAt(lease, terms));
}

function exhausted(
  family: Family,
  { pool, terms }: AddressSearch,
  { count, first, kept }: CoolingSummary,
): AllocationRefusal {
  const retryAt = Math.min(first?.at ?? Infinity, kept?.at ?? Infinity);
  const size = addressesOf(pool, family, 'open').size;
  const message = poolFullMessage(pool, family, {
    size,
    cooling: count,
    heldByStopped: terms.heldByStopped?.(family) ?? 0,
  });
  return { reason: AllocationReason.Exhausted, message, family, ...(retryAt < Infinity && { retryAt }) };
}

function checkAvailability(lease: LeaseRecord, { pool, wish, terms }: AddressSearch): Availability {
  const { address } = lease;
  const { owner, mac } = wish;
  const request = {
    address,
    addressSpace: pool.addressSpace,
    pool: pool.name,
    owner,
    ...(mac !== undefined && { mac }),
  };
  return availabilityOf(lease, request, terms, terms.now);
}

/** The pool may have been narrowed since. */
function isLeasable(pool: Pool, address: Address): boolean {
  return subnetOf(pool, address)?.requestable.has(address.value) ?? false;
}

/** After this it is known whether an address that was being leased is. */
const PENDING_WRITE_RETRY_MS = 1_000;

function conflict(message: string, address: Address, retryAt?: number): SearchResult {
  const retry = retryAt === undefined || retryAt === Number.POSITIVE_INFINITY ? {} : { retryAt };
  return { refusal: { reason: AllocationReason.Conflict, message, address, ...retry } };
}

function outOfRange(message: string, address: Address): SearchResult {
  return { refusal: { reason: AllocationReason.OutOfRange, message, address } };
}
