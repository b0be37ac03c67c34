import type { LeaseOwner } from '../../api/address-lease.js';
import { AllocationReason } from '../../api/names.js';
import type { AddressSpace } from './address-space.js';
import type { Address, Family } from './address.js';
import {
  type LeaseRecord,
  type LeaseTimes,
  type Takeability,
  byPreferenceOf,
  expiresAt,
  isOfTable,
  isSameUser,
  mayTake,
  underPressure,
} from './lease.js';
import { type Pool, addressesOf, subnetOf } from './pool.js';
import { fullPool, heldBy, leasedJustNow, notInPool, notLeasable, ofTable, promisedTo, tooEarly } from './refusals.js';

/** What somebody needs of a pool. */
export interface AddressWish {
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
export interface Cooling {
  readonly count: number;
  /** Of those that wait for no MAC address the one that has cooled down first, and that nobody is taking. */
  readonly first?: Cooled;
  /** Of those that wait for their MAC addresses: anybody may take it where nothing else is left. */
  readonly kept?: Cooled;
}

export interface Cooled {
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
  cooling(family: Family, times: LeaseTimes): Cooling;
}

/** A claim that shows an address and has no lease of it. */
export interface Promisee {
  readonly namespace: string;
  readonly name: string;
  /** It says itself that it could not have it. */
  readonly isWish: boolean;
}

/** The times of the pool's leases, and what else a choice depends on. */
export interface Terms extends LeaseTimes {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** How many of the pool's addresses are held for VMs that do not run; told where the pool is full. */
  readonly heldByStopped?: (family: Family) => number;
  /** Who but the owner has a better right to the address, leased or not. Default: nobody. */
  readonly promisedTo?: (address: Address) => Promisee | undefined;
}

/** What to write: a lease that does not exist yet, or one that exists and may be taken. */
export type Choice =
  { readonly kind: 'create'; readonly address: Address } | { readonly kind: 'take'; readonly lease: LeaseRecord };

export interface Refusal {
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

export type Chosen =
  { readonly ok: true; readonly choices: readonly Choice[] } | { readonly ok: false; readonly refusal: Refusal };

type Found = { readonly choice: Choice } | { readonly refusal: Refusal };

export function addressOf(choice: Choice): Address {
  return choice.kind === 'create' ? choice.address : choice.lease.address;
}

interface Question {
  readonly pool: Pool;
  readonly wish: AddressWish;
  readonly view: SpaceView;
  readonly terms: Terms;
}

/**
 * Addresses for all that is wished, or for nothing of it: the wished ones first, then by family as the wish has them. Writes nothing;
 * what is chosen may be lost to somebody else until it is written.
 * @param view of the same pool
 */
export function choose(pool: Pool, wish: AddressWish, view: SpaceView, terms: Terms): Chosen {
  const question: Question = { pool, wish, view, terms };
  const others = wish.families.filter((family) => !wish.addresses.some((address) => address.family === family));
  const choices: Choice[] = [];
  for (const wanted of [...wish.addresses, ...others]) {
    const found = typeof wanted === 'object' ? exactly(wanted, question) : anyOf(wanted, question);
    if ('refusal' in found) return { ok: false, refusal: found.refusal };
    choices.push(found.choice);
  }
  return { ok: true, choices };
}

function exactly(address: Address, question: Question): Found {
  const { pool, view, terms } = question;
  const subnet = subnetOf(pool, address);
  if (subnet === undefined) return outOfRange(notInPool(address, pool), address);
  if (!subnet.requestable.has(address.value)) return outOfRange(notLeasable(address, subnet, pool), address);
  // No lease shows it before it is written, and none will where the write fails: nobody would ask again.
  if (view.isPending(address)) return conflict(leasedJustNow(address), address, terms.now + JUST_NOW_MS);
  const lease = view.leaseAt(address);
  if (lease !== undefined) {
    const answer = takeability(lease, question);
    if (answer !== true && 'until' in answer) {
      return conflict(tooEarly(lease, answer.until, terms), address, answer.until);
    }
    if (answer !== true) return conflict(heldBy(lease, answer.holder, question.wish.owner), address);
  }
  const promisee = rivalFor(address, lease, question);
  if (promisee !== undefined) return conflict(promisedTo(address, promisee, question.wish.owner), address);
  return { choice: lease === undefined ? { kind: 'create', address } : { kind: 'take', lease } };
}

/** A mere wish keeps nobody from what was his own a moment ago. */
function rivalFor(address: Address, lease: LeaseRecord | undefined, { wish, terms }: Question): Promisee | undefined {
  const promisee = terms.promisedTo?.(address);
  const wasItsOwn = lease?.owner !== undefined && isSameUser(lease.owner, wish.owner);
  return promisee?.isWish && wasItsOwn ? undefined : promisee;
}

/** The address that waits for the MAC address; else one that is free; else one that has cooled down, those kept for other MAC addresses last. */
function anyOf(family: Family, question: Question): Found {
  const { pool, view, terms } = question;
  const kept = keptFor(family, question);
  if (kept !== undefined) return kept;
  const address = view.space.next(pool.name, family);
  if (address !== undefined) return { choice: { kind: 'create', address } };
  const cooling = view.cooling(family, terms);
  const pressed = { ...question, terms: { ...terms, ...underPressure(terms) } };
  for (const cooled of [cooling.first, cooling.kept]) {
    if (cooled !== undefined && takeability(cooled.lease, pressed) === true) {
      return { choice: { kind: 'take', lease: cooled.lease } };
    }
  }
  return { refusal: exhausted(family, question, cooling) };
}

/** @returns undefined where it can have, and waits for, no address in particular */
function keptFor(family: Family, question: Question): Found | undefined {
  const { wish, view, terms } = question;
  if (wish.mac === undefined || wish.seeksKept === false) return undefined;
  const kept = view.stickyLeases(family, wish.mac, terms);
  for (const lease of [...kept].sort(byPreferenceOf(wish.owner))) {
    const found = ofKept(lease, question);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What the static table promises to a MAC address is had or waited for: with another address the workload would be taken for somebody else. */
function ofKept(lease: LeaseRecord, question: Question): Found | undefined {
  const { pool, wish, view, terms } = question;
  const { address, metadata, owner } = lease;
  if (!isLeasable(pool, address)) return undefined;
  const isPromised = isOfTable(lease) && metadata.deletionTimestamp === undefined && owner?.uid !== wish.owner.uid;
  const refuse = (message: string, retryAt?: number) =>
    isPromised ? conflict(ofTable(lease, message), address, retryAt) : undefined;
  if (view.isPending(address)) return refuse(leasedJustNow(address), terms.now + JUST_NOW_MS);
  const promisee = rivalFor(address, lease, question);
  if (promisee !== undefined) return refuse(promisedTo(address, promisee, wish.owner));
  const answer = takeability(lease, question);
  if (answer === true) return { choice: { kind: 'take', lease } };
  if (!('until' in answer)) return refuse(heldBy(lease, answer.holder, wish.owner));
  if (!willBeKept(lease, answer.until, question)) return undefined;
  return conflict(tooEarly(lease, answer.until, terms), address, answer.until);
}

/** A VM that is made anew has the address that it had, or none yet: with another one it would come up too soon. */
function willBeKept(lease: LeaseRecord, until: number, { wish, terms }: Question): boolean {
  return isOfTable(lease) || (lease.owner?.namespace === wish.owner.namespace && until < expiresAt(lease, terms));
}

function exhausted(family: Family, { pool, terms }: Question, { count, first, kept }: Cooling): Refusal {
  const retryAt = Math.min(first?.at ?? Infinity, kept?.at ?? Infinity);
  const size = addressesOf(pool, family, 'open').size;
  const message = fullPool(pool, family, { size, cooling: count, heldByStopped: terms.heldByStopped?.(family) ?? 0 });
  return { reason: AllocationReason.Exhausted, message, family, ...(retryAt < Infinity && { retryAt }) };
}

function takeability(lease: LeaseRecord, { pool, wish, terms }: Question): Takeability {
  const { address } = lease;
  const { owner, mac } = wish;
  const request = {
    address,
    addressSpace: pool.addressSpace,
    pool: pool.name,
    owner,
    ...(mac !== undefined && { mac }),
  };
  return mayTake(lease, request, terms, terms.now);
}

/** The pool may have been narrowed since. */
function isLeasable(pool: Pool, address: Address): boolean {
  return subnetOf(pool, address)?.requestable.has(address.value) ?? false;
}

/** After this it is known whether an address that was being leased is. */
const JUST_NOW_MS = 1_000;

function conflict(message: string, address: Address, retryAt?: number): Found {
  const retry = retryAt === undefined || retryAt === Number.POSITIVE_INFINITY ? {} : { retryAt };
  return { refusal: { reason: AllocationReason.Conflict, message, address, ...retry } };
}

function outOfRange(message: string, address: Address): Found {
  return { refusal: { reason: AllocationReason.OutOfRange, message, address } };
}
