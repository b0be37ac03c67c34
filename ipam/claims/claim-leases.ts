import { type IPAMClaim, claimMacOf } from '../../api/ipam-claim.js';
import type { AddressLease, LeaseWrite } from '../../api/address-lease.js';
import { AllocationReason } from '../../api/names.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isAlreadyExists, isConflict, isNotFound, isRejected, mayHaveActed, messageOf } from '../../kube/errors.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { type LeaseClient, writeLease } from '../../cluster/lease-writes.js';
import { type AllocationCandidate, type AllocationRefusal, addressOf } from '../../addressing/allocator/allocator.js';
import {
  type LeaseRecord,
  type LeaseRequest,
  createLease,
  isReservation,
  readLease,
  reallocateLease,
  releaseLease,
  stateOf,
  updateLeaseUsage,
  updateWorkload,
} from '../../addressing/lease/lease.js';
import type { Address, Family } from '../../addressing/address/address.js';
import { releaseTime } from '../../addressing/lease/cooling-start.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { MAX_INTERFACE, leaseOwnerOf } from '../../addressing/lease/lease-record.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { LeaseBook } from '../leases/lease-book.js';

/** Writes the leases of a claim: allocates, changes and releases them. */

/** What these writes need. */
export interface LeaseChangeContext {
  client: LeaseClient & Pick<Client, 'get'>;
  book: Pick<LeaseBook, 'recordWrite' | 'forget' | 'markPending' | 'clearPending'>;
  clock: Pick<Clock, 'now' | 'wall'>;
  call: CallOptions;
  unreadable: Pick<UnreadableAddresses, 'add'>;
}

/**
 * The claim has the address, another writer got it first, or the API server rejected the write. After `lost`, the next attempt picks another one.
 * `isUnreadable`: the object of that name is not a valid lease.
 */
type AllocationOutcome =
  | { kind: 'allocated' }
  | { kind: 'lost'; isUnreadable?: true }
  | { kind: 'refused'; refusal: AllocationRefusal };

/** Delay before a write that the API server rejected is tried again: only a change by another client can make it succeed. */
const REJECTED_RETRY_MS = 60_000;

/** Allocates the chosen addresses one after the other. Until all answers are in, this process picks none of them for another claim. */
export async function allocateAll(
  candidates: readonly AllocationCandidate[],
  owner: AllocationOwner,
  context: LeaseChangeContext,
): Promise<AllocationOutcome> {
  const { addressSpace } = owner.pool;
  const { book, unreadable } = context;
  const marked = candidates.filter((candidate) => book.markPending(addressSpace, addressOf(candidate)));
  const pending = new Set(marked);
  try {
    if (marked.length < candidates.length) return { kind: 'lost' };
    for (const candidate of candidates) {
      const result = await allocateLease(candidate, { ...context, ...owner });
      if (result.kind === 'allocated') continue;
      // the lease book cannot hold an unreadable lease, so it would offer the address again
      const isUnreadable = result.kind === 'lost' && result.isUnreadable === true;
      if (isUnreadable && pending.delete(candidate)) unreadable.add(addressSpace, addressOf(candidate));
      return result;
    }
    return { kind: 'allocated' };
  } finally {
    for (const candidate of pending) book.clearPending(addressSpace, addressOf(candidate));
  }
}

interface AllocationOwner {
  claim: IPAMClaim;
  pool: Pool;
  /** See {@link LeaseRequest.launchers}. */
  launchers?: ReadonlySet<string> | undefined;
  /** Whether the address is to be probed before the claim shows it. Never a reservation: nobody else gets its address. */
  isProbed: (family: Family) => boolean;
}

type AllocateLeaseContext = AllocationOwner & Pick<LeaseChangeContext, 'client' | 'book' | 'clock' | 'call'>;

/**
 * Writes one lease. After a conflict or a lost answer, the lease itself shows who owns it.
 * @throws {Error} if the lease cannot be read, or nothing can be written
 */
async function allocateLease(
  candidate: AllocationCandidate,
  context: AllocateLeaseContext,
): Promise<AllocationOutcome> {
  const { claim, pool, launchers, client, book, call } = context;
  const address = addressOf(candidate);
  const isReserved = candidate.kind === 'take' && isReservation(candidate.lease);
  const podInterface = claim.spec.interface;
  const mac = claimMacOf(claim);
  const request: LeaseRequest = {
    address,
    addressSpace: pool.addressSpace,
    pool: pool.name,
    owner: leaseOwnerOf(claim),
    ...(podInterface && podInterface.length <= MAX_INTERFACE && { interface: podInterface }),
    ...(mac !== undefined && { mac }),
    ...(launchers && { launchers }),
    isProbed: !isReserved && context.isProbed(address.family),
  };
  const write = candidate.kind === 'create' ? createLease(request) : reallocateLease(candidate.lease, request);
  try {
    const lease = await writeLease(client, write, call);
    if (lease === undefined) throw new TypeError(`${write.verb} of a lease returned no lease`);
    book.recordWrite(lease);
    return { kind: 'allocated' };
  } catch (error) {
    return resolveFailedWrite(error, candidate, context);
  }
}

async function resolveFailedWrite(
  error: unknown,
  candidate: AllocationCandidate,
  context: AllocateLeaseContext,
): Promise<AllocationOutcome> {
  if (isRejected(error)) {
    const message = `The API server rejected an AddressLease of pool ${context.pool.name}: ${messageOf(error)}`;
    const retryAt = context.clock.now() + REJECTED_RETRY_MS;
    return { kind: 'refused', refusal: { reason: AllocationReason.Internal, message, retryAt } };
  }
  const name = leaseName(context.pool.addressSpace, addressOf(candidate));
  const lostRace = isAlreadyExists(error) || isConflict(error) || (candidate.kind === 'take' && isNotFound(error));
  if (!lostRace && !mayHaveActed(error)) throw error;
  const found = await findUnlessGone(context.client, ADDRESS_LEASES, { name }, context.call);
  if (found === undefined) {
    if (candidate.kind === 'take') context.book.forget(name, candidate.lease.metadata.uid);
    if (!lostRace) throw error;
    return { kind: 'lost' };
  }
  return classifyLease(found, context);
}

function classifyLease(found: AddressLease, context: AllocateLeaseContext): AllocationOutcome {
  const { claim, book } = context;
  let lease: LeaseRecord;
  try {
    lease = readLease(found);
  } catch {
    return { kind: 'lost', isUnreadable: true };
  }
  book.recordWrite(found);
  const isOurs = stateOf(lease) === 'held' && lease.owner?.uid === claim.metadata.uid;
  return isOurs ? { kind: 'allocated' } : { kind: 'lost' };
}

/**
 * Releases leases, also those that no status has shown: a release without an answer may arrive after the claim shows the address, and then the
 * claim takes the lease back.
 * @throws {Error} the first error, after all leases have been tried
 */
export async function releaseAll(leases: readonly LeaseRecord[], context: LeaseChangeContext): Promise<void> {
  const errors: unknown[] = [];
  for (const lease of leases) {
    try {
      await writeChange(lease, releaseLease(lease, releaseTime(context.clock)), context);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/** Records the MAC address for which the leases will be sticky after their release. */
export async function recordMac(
  leases: readonly LeaseRecord[],
  mac: string,
  context: LeaseChangeContext,
): Promise<void> {
  for (const lease of leases) {
    const { interface: podInterface } = lease;
    const usage = { mac, ...(podInterface !== undefined && { interface: podInterface }) };
    await writeChange(lease, updateLeaseUsage(lease, usage), context);
  }
}

/** Records the VM whose next claim may get the addresses before their cool-down ends. */
export async function recordWorkload(
  leases: readonly LeaseRecord[],
  workloadUID: string,
  context: LeaseChangeContext,
): Promise<void> {
  for (const lease of leases) await writeChange(lease, updateWorkload(lease, workloadUID), context);
}

/** @returns false if another writer changed the lease first: the next plan sees its current state */
export async function writeChange(
  lease: LeaseRecord,
  change: LeaseWrite,
  context: LeaseChangeContext,
): Promise<boolean> {
  const { client, book, call } = context;
  const { name, uid } = lease.metadata;
  try {
    const after = await writeLease(client, change, call);
    if (after === undefined) book.forget(name, uid);
    else book.recordWrite(after);
    return true;
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    const found = await findUnlessGone(client, ADDRESS_LEASES, { name }, call);
    if (found === undefined) book.forget(name, uid);
    else book.recordWrite(found);
    return false;
  }
}

interface UnreadableAddress {
  readonly addressSpace: string;
  readonly address: Address;
  /** In ms. */
  readonly until: number;
}

const UNREADABLE_RETRY_MS = 60_000;

/**
 * Addresses whose lease cannot be read. The lease book has no such lease, so the address stays marked as if a write were pending. It is tried again
 * after a while, because no event tells that the lease was repaired or deleted.
 */
export class UnreadableAddresses {
  readonly #book: Pick<LeaseBook, 'clearPending'>;
  readonly #clock: Pick<Clock, 'now'>;
  /** The oldest first. */
  #unreadable: readonly UnreadableAddress[] = [];

  constructor(book: Pick<LeaseBook, 'clearPending'>, clock: Pick<Clock, 'now'>) {
    this.#book = book;
    this.#clock = clock;
  }

  /** Keeps a pending address pending for a while. */
  add(addressSpace: string, address: Address): void {
    this.#unreadable = [...this.#unreadable, { addressSpace, address, until: this.#clock.now() + UNREADABLE_RETRY_MS }];
  }

  /** Frees the addresses to be tried again. Call it before addresses are picked. */
  retryDue(): void {
    const now = this.#clock.now();
    const due = this.#unreadable.filter(({ until }) => until <= now);
    if (due.length === 0) return;
    this.#unreadable = this.#unreadable.filter(({ until }) => until > now);
    for (const { addressSpace, address } of due) this.#book.clearPending(addressSpace, address);
  }
}
