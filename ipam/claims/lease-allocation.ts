import { type IPAMClaim, claimMacOf } from '../../api/ipam-claim.js';
import type { AddressLease } from '../../api/address-lease.js';
import { AllocationReason } from '../../api/names.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { isAlreadyExists, isConflict, isForbidden, isInvalid, isNotFound, messageOf } from '../../kube/errors.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { type LeaseClient, writeLease } from '../../cluster/lease-writes.js';
import { mayHaveActed } from '../../kube/errors.js';
import { type AllocationCandidate, type AllocationRefusal, addressOf } from '../core/allocator.js';
import { type LeaseRecord, type LeaseWrite, createLease, readLease, stateOf, reallocateLease } from '../core/lease.js';
import { leaseName } from '../core/lease-name.js';
import { MAX_INTERFACE, leaseOwnerOf } from '../core/lease-owner.js';
import type { Pool } from '../core/pool.js';
import type { LeaseBook } from '../leases/lease-book.js';

/**
 * What became of one address: it is the claim's (`fresh`: by this very write); somebody was faster; or the API server does not want it.
 * `unreadable`: what has the name is no lease that could be read.
 */
export type LeaseAllocation =
  | { kind: 'taken'; lease: LeaseRecord; fresh: boolean }
  | { kind: 'lost'; to: 'somebody' | 'unreadable' }
  | { kind: 'refused'; refusal: AllocationRefusal };

export interface AllocateLeaseContext {
  claim: IPAMClaim;
  pool: Pool;
  client: LeaseClient & Pick<Client, 'get'>;
  book: Pick<LeaseBook, 'recordWrite' | 'forget'>;
  call: CallOptions;
}

/**
 * Writes one lease. Whatever the answer is, or if there is none, the lease itself says whose it is.
 * @throws {Error} where that cannot be found out, or nothing can be written
 */
export async function allocateLease(
  choice: AllocationCandidate,
  context: AllocateLeaseContext,
): Promise<LeaseAllocation> {
  const { claim, pool, client, book, call } = context;
  const address = addressOf(choice);
  const podInterface = claim.spec.interface;
  const mac = claimMacOf(claim);
  const request = {
    address,
    addressSpace: pool.addressSpace,
    pool: pool.name,
    owner: leaseOwnerOf(claim),
    ...(podInterface && podInterface.length <= MAX_INTERFACE && { interface: podInterface }),
    ...(mac !== undefined && { mac }),
  };
  const write: LeaseWrite = choice.kind === 'create' ? createLease(request) : reallocateLease(choice.lease, request);
  try {
    const lease = await writeLease(client, write, call);
    if (lease === undefined) throw new TypeError(`${write.verb} of a lease gave none`);
    book.recordWrite(lease);
    return { kind: 'taken', lease: readLease(lease), fresh: choice.kind === 'create' };
  } catch (error) {
    return resolveFailedWrite(error, choice, context);
  }
}

async function resolveFailedWrite(
  error: unknown,
  choice: AllocationCandidate,
  context: AllocateLeaseContext,
): Promise<LeaseAllocation> {
  const name = leaseName(context.pool.addressSpace, addressOf(choice));
  if (isInvalid(error) || isForbidden(error)) {
    const message = `AddressLease ${name} is refused by the API server: ${messageOf(error)}`;
    return { kind: 'refused', refusal: { reason: AllocationReason.Internal, message } };
  }
  const lostRace = isAlreadyExists(error) || isConflict(error) || (choice.kind === 'take' && isNotFound(error));
  if (!lostRace && !mayHaveActed(error)) throw error;
  const found = await findUnlessGone(context.client, ADDRESS_LEASES, { name }, context.call);
  if (found === undefined) {
    if (choice.kind === 'take') context.book.forget(name, choice.lease.metadata.uid);
    if (!lostRace) throw error;
    return { kind: 'lost', to: 'somebody' };
  }
  return classifyLease(found, { fresh: !lostRace && choice.kind === 'create' }, context);
}

function classifyLease(
  found: AddressLease,
  { fresh }: { fresh: boolean },
  { claim, book }: AllocateLeaseContext,
): LeaseAllocation {
  let lease: LeaseRecord;
  try {
    lease = readLease(found);
  } catch {
    return { kind: 'lost', to: 'unreadable' };
  }
  book.recordWrite(found);
  const isOurs = stateOf(lease) === 'held' && lease.owner?.uid === claim.metadata.uid;
  return isOurs ? { kind: 'taken', lease, fresh } : { kind: 'lost', to: 'somebody' };
}
