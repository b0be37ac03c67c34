import { type IPAMClaim, claimMacOf } from '../../api/ipam-claim.js';
import type { AddressLease } from '../../api/address-lease.js';
import { AllocationReason } from '../../api/names.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import {
  isAlreadyExists,
  isConflict,
  isForbidden,
  isInvalid,
  isNotFound,
  mayHaveActed,
  messageOf,
} from '../../kube/errors.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { type LeaseClient, writeLease } from '../../cluster/lease-writes.js';
import {
  type AllocationCandidate,
  type AllocationRefusal,
  type LeaseRecord,
  type LeaseRequest,
  addressOf,
  createLease,
  reallocateLease,
} from '../../addressing/index.js';
import type { Family } from '../../addressing/address/address.js';
import { isReservation, readLease, stateOf } from '../../addressing/lease/lease.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { MAX_INTERFACE, leaseOwnerOf } from '../../addressing/lease/lease-owner.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { LeaseBook } from '../leases/lease-book.js';

/**
 * The outcome for one address: the claim has it (`isNew`: this write created the lease), another writer got it first, or the API server rejected the write.
 * `unreadable`: the object of that name is not a valid lease.
 */
export type LeaseAllocation =
  | { kind: 'allocated'; lease: LeaseRecord; isNew: boolean }
  | { kind: 'lost'; to: 'other' | 'unreadable' }
  | { kind: 'refused'; refusal: AllocationRefusal };

export interface AllocateLeaseContext {
  claim: IPAMClaim;
  pool: Pool;
  /** See {@link LeaseRequest.launchers}. */
  launchers?: ReadonlySet<string> | undefined;
  /** Whether the address is to be probed before the claim shows it. Never a reservation: nobody else gets its address. */
  isProbed: (family: Family) => boolean;
  client: LeaseClient & Pick<Client, 'get'>;
  book: Pick<LeaseBook, 'recordWrite' | 'forget'>;
  call: CallOptions;
}

/**
 * Writes one lease. After a conflict or a lost answer, the lease itself shows who owns it.
 * @throws {Error} if the lease cannot be read, or nothing can be written
 */
export async function allocateLease(
  candidate: AllocationCandidate,
  context: AllocateLeaseContext,
): Promise<LeaseAllocation> {
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
    return { kind: 'allocated', lease: readLease(lease), isNew: candidate.kind === 'create' };
  } catch (error) {
    return resolveFailedWrite(error, candidate, context);
  }
}

async function resolveFailedWrite(
  error: unknown,
  candidate: AllocationCandidate,
  context: AllocateLeaseContext,
): Promise<LeaseAllocation> {
  const name = leaseName(context.pool.addressSpace, addressOf(candidate));
  if (isInvalid(error) || isForbidden(error)) {
    const message = `The API server rejected AddressLease ${name}: ${messageOf(error)}`;
    return { kind: 'refused', refusal: { reason: AllocationReason.Internal, message } };
  }
  const lostRace = isAlreadyExists(error) || isConflict(error) || (candidate.kind === 'take' && isNotFound(error));
  if (!lostRace && !mayHaveActed(error)) throw error;
  const found = await findUnlessGone(context.client, ADDRESS_LEASES, { name }, context.call);
  if (found === undefined) {
    if (candidate.kind === 'take') context.book.forget(name, candidate.lease.metadata.uid);
    if (!lostRace) throw error;
    return { kind: 'lost', to: 'other' };
  }
  return classifyLease(found, !lostRace && candidate.kind === 'create', context);
}

function classifyLease(found: AddressLease, isNew: boolean, context: AllocateLeaseContext): LeaseAllocation {
  const { claim, book } = context;
  let lease: LeaseRecord;
  try {
    lease = readLease(found);
  } catch {
    return { kind: 'lost', to: 'unreadable' };
  }
  book.recordWrite(found);
  const isOurs = stateOf(lease) === 'held' && lease.owner?.uid === claim.metadata.uid;
  return isOurs ? { kind: 'allocated', lease, isNew } : { kind: 'lost', to: 'other' };
}
