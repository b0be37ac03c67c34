import type { LeaseOwner } from '../../api/address-lease.js';
import { AllocationReason, type RefusalReason } from '../../api/names.js';
import type { AddressSpace } from './address-space.js';
import { type Address, type Family, sameAddress } from '../address/address.js';
import {
  type LeaseRecord,
  type LeaseTimes,
  type Availability,
  type Holder,
  expiresAt,
  isReservation,
  isSameWorkload,
  stateOf,
  availabilityOf,
} from '../lease/lease.js';
import { timesWhenExhausted } from '../lease/lease-times.js';
import { byPreferenceOf } from '../lease/lease-record.js';
import { type Pool, addressesOf, isRequestable, subnetOf } from '../pool/pool.js';
import {
  poolFullMessage,
  poolFullRemedy,
  heldByMessage,
  pendingWriteMessage,
  notInPoolMessage,
  notLeasableMessage,
  reservationMessage,
  restoreHoldMessage,
  notYetMessage,
} from './refusal-messages.js';

/** The addresses that an owner needs from a pool. */
export interface AllocationRequest {
  /** Requested addresses, at most one of each family. */
  readonly addresses: readonly Address[];
  /** The families of which an address is missing. Any address will do for a family without a requested address. */
  readonly families: readonly Family[];
  /** Addresses kept for this MAC address may be allocated. */
  readonly mac?: string;
  /** Addresses kept for the MAC address come before all others. Default: true. */
  readonly prefersSticky?: boolean;
  /** Released leases that are kept for the owner's workload. They come after reservations, and before all other addresses. Default: none. */
  readonly former?: readonly LeaseRecord[];
  /** Those of `addresses` that the owner has or had: it may have them even if they are draining. Default: none. */
  readonly kept?: readonly Address[];
  readonly owner: LeaseOwner;
  /** See {@link LeaseRequest.launchers}. */
  readonly launchers?: ReadonlySet<string>;
}

/** A summary of the released leases of a pool and family. */
export interface CoolingSummary {
  readonly count: number;
  /** The first lease to cool down among those that are not sticky and have no write pending. */
  readonly first?: CoolingLease;
  /** The same among sticky leases, which are allocated to others only if nothing else is left. */
  readonly sticky?: CoolingLease;
}

export interface CoolingLease {
  readonly lease: LeaseRecord;
  /** When its cool-down ends, in the clock's milliseconds. */
  readonly cooledAt: number;
}

/** The leases and free addresses of an address space, from the view of one pool. */
export interface SpaceView {
  readonly space: AddressSpace;
  leaseAt(address: Address): LeaseRecord | undefined;
  /** True while a write that allocates the address is pending. */
  isPending(address: Address): boolean;
  /** Returns the pool's leases that are kept for a MAC address, unordered: those that are not held, and all reservations. */
  stickyLeases(family: Family, mac: string, times: LeaseTimes): readonly LeaseRecord[];
  /** Leaves out reservations and addresses that are not open in the pool. */
  cooling(family: Family, times: LeaseTimes): CoolingSummary;
  /** Counts the quarantined leases at addresses that are open in the pool. */
  quarantined(family: Family): number;
}

/** An address kept for a claim that has it in its status but lost its lease. */
export interface RestoreHold {
  readonly namespace: string;
  readonly name: string;
  /** The claim's status says that another owner had the address. */
  readonly wasRefused: boolean;
}

/** The times of the pool, and everything else that the choice depends on. */
export interface AllocationContext extends LeaseTimes {
  /** In the clock's milliseconds. */
  readonly now: number;
  /** Counts the addresses that are held for stopped VMs, for the message about a full pool. */
  readonly heldByStopped?: (family: Family) => number;
  /** Returns the claim for which the address is kept, if that is not the owner. Default: none. */
  readonly restoreHoldOn?: (address: Address) => RestoreHold | undefined;
}

/** An address that can be allocated: by creating a lease, or by reallocating one that exists. */
export type AllocationCandidate =
  | { readonly kind: 'create'; readonly address: Address }
  | { readonly kind: 'take'; readonly lease: LeaseRecord };

export interface AllocationRefusal {
  readonly reason: RefusalReason;
  /** The text for users. */
  readonly message: string;
  /** When to ask again even if nothing has changed, in the clock's milliseconds. */
  readonly retryAt?: number;
  /** The address whose release would help. */
  readonly address?: Address;
  /** The family of which any released address would help. */
  readonly family?: Family;
  /** A host that Holdfast does not know has the address, so no owner has to give anything up. */
  readonly isQuarantined?: true;
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
  readonly request: AllocationRequest;
  readonly view: SpaceView;
  readonly context: AllocationContext;
}

/**
 * Finds an address for every part of a request, or refuses all of it. Requested addresses come first, then the other families in their
 * order. Nothing is written: another owner may still get a candidate first.
 * @param view the view of the same pool
 */
export function findCandidates(
  pool: Pool,
  request: AllocationRequest,
  view: SpaceView,
  context: AllocationContext,
): AllocationResult {
  const search: AddressSearch = { pool, request, view, context };
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
  const { pool, view, context } = search;
  const subnet = subnetOf(pool, address);
  if (subnet === undefined) return outOfRange(notInPoolMessage(address, pool), address);
  const isKept = search.request.kept?.some((each) => sameAddress(each, address)) === true;
  const allowed = isKept ? subnet.leasable : subnet.requestable;
  if (!allowed.has(address.value)) return outOfRange(notLeasableMessage(address, subnet, pool), address);
  // if the write fails no lease will change, so nothing else would trigger the next attempt
  if (view.isPending(address))
    return conflict(pendingWriteMessage(address), address, context.now + PENDING_WRITE_RETRY_MS);
  const lease = view.leaseAt(address);
  if (lease !== undefined) {
    const availability = checkAvailability(lease, search);
    if (availability !== true && 'until' in availability) {
      return conflict(notYetMessage(lease, availability.until, context), address, availability.until);
    }
    if (availability !== true) return conflictWithHolder(lease, availability.holder, search);
  }
  const restoreHold = conflictingHold(address, lease, search);
  if (restoreHold !== undefined)
    return conflict(restoreHoldMessage(address, restoreHold, search.request.owner), address);
  return { candidate: lease === undefined ? { kind: 'create', address } : { kind: 'take', lease } };
}

/** Returns the hold that keeps the address from the owner. A refused claim does not keep it from the workload that had it last, none from one that has it. */
function conflictingHold(
  address: Address,
  lease: LeaseRecord | undefined,
  { request, context }: AddressSearch,
): RestoreHold | undefined {
  if (lease !== undefined && stateOf(lease) === 'held') return undefined;
  const restoreHold = context.restoreHoldOn?.(address);
  const wasItsOwn = lease?.owner !== undefined && isSameWorkload(lease.owner, request.owner);
  return restoreHold?.wasRefused && wasItsOwn ? undefined : restoreHold;
}

/** Finds a former or sticky address, else a free one, else one that has cooled down; addresses sticky for others come last. */
function findAny(family: Family, search: AddressSearch): SearchResult {
  const { pool, view, context } = search;
  const sticky = findSticky(family, search);
  if (sticky !== undefined) return sticky;
  const address = view.space.next(pool.name, family);
  if (address !== undefined) return { candidate: { kind: 'create', address } };
  const cooling = view.cooling(family, context);
  const exhaustedSearch = { ...search, context: { ...context, ...timesWhenExhausted(context) } };
  for (const cooled of [cooling.first, cooling.sticky]) {
    if (cooled !== undefined && checkAvailability(cooled.lease, exhaustedSearch) === true) {
      return { candidate: { kind: 'take', lease: cooled.lease } };
    }
  }
  return { refusal: exhausted(family, search, cooling) };
}

/** Finds a former or sticky address, or refuses to wait for it. @returns undefined if there is none to use or to wait for */
function findSticky(family: Family, search: AddressSearch): SearchResult | undefined {
  const { request, view, context } = search;
  const { mac, former = [], prefersSticky = true } = request;
  const sticky = mac === undefined || !prefersSticky ? [] : view.stickyLeases(family, mac, context);
  const leases = [...former.filter(({ address }) => address.family === family), ...sticky];
  for (const lease of leases.sort(byPreferenceOf(request.owner))) {
    const found = trySticky(lease, search);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Checks one sticky lease. A reserved address is never substituted, because others identify the workload by it. */
function trySticky(lease: LeaseRecord, search: AddressSearch): SearchResult | undefined {
  const { pool, request, view, context } = search;
  const { address, metadata, owner } = lease;
  // the pool may have been narrowed since
  if (!isRequestable(pool, address)) return undefined;
  const isReservedForRequest =
    isReservation(lease) && metadata.deletionTimestamp === undefined && owner?.uid !== request.owner.uid;
  const refuse = (message: string, retryAt?: number) =>
    isReservedForRequest ? conflict(reservationMessage(lease, message), address, retryAt) : undefined;
  if (view.isPending(address)) return refuse(pendingWriteMessage(address), context.now + PENDING_WRITE_RETRY_MS);
  const restoreHold = conflictingHold(address, lease, search);
  if (restoreHold !== undefined) return refuse(restoreHoldMessage(address, restoreHold, request.owner));
  const availability = checkAvailability(lease, search);
  if (availability === true) return { candidate: { kind: 'take', lease } };
  if (!('until' in availability)) return refuse(heldByMessage(lease, availability.holder, request.owner));
  if (!shouldWaitFor(lease, availability.until, search)) return undefined;
  return conflict(notYetMessage(lease, availability.until, context), address, availability.until);
}

/** True if waiting for a sticky address is better than another address: a recreated VM gets its old address or waits for it. */
function shouldWaitFor(lease: LeaseRecord, until: number, { request, context }: AddressSearch): boolean {
  if (isReservation(lease)) return true;
  const isExpiring = lease.networkData === undefined && until >= expiresAt(lease, context);
  return lease.owner?.namespace === request.owner.namespace && !isExpiring;
}

function exhausted(family: Family, search: AddressSearch, cooling: CoolingSummary): AllocationRefusal {
  const { pool, context, view } = search;
  const { count, first, sticky } = cooling;
  const retryAt = Math.min(first?.cooledAt ?? Infinity, sticky?.cooledAt ?? Infinity);
  const size = addressesOf(pool, family, 'open').size;
  const heldByStopped = context.heldByStopped?.(family) ?? 0;
  const quarantined = view.quarantined(family);
  const full = poolFullMessage(pool, family, { size, cooling: count, heldByStopped, quarantined });
  const isLocked = retryAt === Infinity && (first ?? sticky)?.lease.networkData !== undefined;
  const locked = isLocked ? ' Released addresses wait until the process guest has removed them from network data.' : '';
  const message = `${full}.${locked} ${poolFullRemedy(pool, family)}`;
  return { reason: AllocationReason.Exhausted, message, family, ...(retryAt < Infinity && { retryAt }) };
}

function checkAvailability(lease: LeaseRecord, { pool, request, context }: AddressSearch): Availability {
  const { owner, mac, launchers } = request;
  const { address } = lease;
  const { addressSpace, name } = pool;
  const usage = { ...(mac !== undefined && { mac }), ...(launchers && { launchers }) };
  const wanted = { address, addressSpace, pool: name, owner, ...usage };
  return availabilityOf(lease, wanted, context, context.now);
}

/** After this a pending write has been answered. */
const PENDING_WRITE_RETRY_MS = 1_000;

function conflictWithHolder(lease: LeaseRecord, holder: Holder, { request }: AddressSearch): SearchResult {
  const { refusal } = conflict(heldByMessage(lease, holder, request.owner), lease.address);
  return { refusal: { ...refusal, ...(holder === 'quarantined' && { isQuarantined: true }) } };
}

function conflict(
  message: string,
  address: Address,
  retryAt?: number,
): Extract<SearchResult, { refusal: AllocationRefusal }> {
  const retry = retryAt === undefined || retryAt === Number.POSITIVE_INFINITY ? {} : { retryAt };
  return { refusal: { reason: AllocationReason.Conflict, message, address, ...retry } };
}

function outOfRange(message: string, address: Address): SearchResult {
  return { refusal: { reason: AllocationReason.OutOfRange, message, address } };
}
