import { type IPAMClaim, macOf } from '../../api/ipam-claim.js';
import type { AddressLease } from '../../api/address-lease.js';
import { AllocationReason } from '../../api/names.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { isAlreadyExists, isConflict, isForbidden, isInvalid, isNotFound, messageOf } from '../../kube/errors.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { type LeaseClient, writeLease } from '../../cluster/lease-writes.js';
import { mayHaveActed } from '../../kube/errors.js';
import { type Choice, type Refusal, addressOf } from '../core/allocator.js';
import { type LeaseRecord, type LeaseWrite, createLease, readLease, stateOf, takeLease } from '../core/lease.js';
import { leaseName } from '../core/lease-name.js';
import { MAX_INTERFACE, leaseOwnerOf } from '../core/lease-owner.js';
import type { Pool } from '../core/pool.js';
import type { LeaseBook } from '../leases/book.js';

/**
 * What became of one address: it is the claim's (`fresh`: by this very write); somebody was faster; or the API server does not want it.
 * `unreadable`: what has the name is no lease that could be read.
 */
export type Taken =
  | { kind: 'taken'; lease: LeaseRecord; fresh: boolean }
  | { kind: 'lost'; to: 'somebody' | 'unreadable' }
  | { kind: 'refused'; refusal: Refusal };

export interface TakeContext {
  claim: IPAMClaim;
  pool: Pool;
  client: LeaseClient & Pick<Client, 'get'>;
  book: Pick<LeaseBook, 'wrote' | 'forget'>;
  call: CallOptions;
}

/**
 * Writes one lease. Whatever the answer is, or if there is none, the lease itself says whose it is.
 * @throws {Error} where that cannot be found out, or nothing can be written
 */
export async function take(choice: Choice, context: TakeContext): Promise<Taken> {
  const { claim, pool, client, book, call } = context;
  const address = addressOf(choice);
  const podInterface = claim.spec.interface;
  const mac = macOf(claim);
  const request = {
    address,
    addressSpace: pool.addressSpace,
    pool: pool.name,
    owner: leaseOwnerOf(claim),
    ...(podInterface && podInterface.length <= MAX_INTERFACE && { interface: podInterface }),
    ...(mac !== undefined && { mac }),
  };
  const write: LeaseWrite = choice.kind === 'create' ? createLease(request) : takeLease(choice.lease, request);
  try {
    const lease = await writeLease(client, write, call);
    if (lease === undefined) throw new TypeError(`${write.verb} of a lease gave none`);
    book.wrote(lease);
    return { kind: 'taken', lease: readLease(lease), fresh: choice.kind === 'create' };
  } catch (error) {
    return judge(error, choice, context);
  }
}

async function judge(error: unknown, choice: Choice, context: TakeContext): Promise<Taken> {
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
  return recognise(found, { fresh: !lostRace && choice.kind === 'create' }, context);
}

function recognise(found: AddressLease, { fresh }: { fresh: boolean }, { claim, book }: TakeContext): Taken {
  let lease: LeaseRecord;
  try {
    lease = readLease(found);
  } catch {
    return { kind: 'lost', to: 'unreadable' };
  }
  book.wrote(found);
  const isOurs = stateOf(lease) === 'held' && lease.owner?.uid === claim.metadata.uid;
  return isOurs ? { kind: 'taken', lease, fresh } : { kind: 'lost', to: 'somebody' };
}
