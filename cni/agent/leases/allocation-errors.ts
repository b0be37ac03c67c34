import type { Address, Family } from '../../../addressing/address/address.js';
import {
  heldByMessage,
  notInPoolMessage,
  notLeasableMessage,
  notYetMessage,
  pendingWriteMessage,
  poolFullMessage,
  poolFullRemedy,
  reservationMessage,
} from '../../../addressing/allocator/refusal-messages.js';
import type { Availability, LeaseRecord, LeaseTimes } from '../../../addressing/lease/lease.js';
import { type Pool, addressesOf, growthRemedy } from '../../../addressing/pool/pool.js';
import type { Subnet } from '../../../addressing/pool/subnet.js';
import { StatusError, TransportError, isRejected, messageOf } from '../../../kube/errors.js';
import { CniCode, CniError } from '../cni-error.js';

/** The CNI errors of allocations. */

/** The owner of the request, and the lease times of the pool. */
interface AllocationRequester {
  readonly times: LeaseTimes;
  readonly owner: { readonly namespace: string };
}

/** Builds the error for a requested address that the pool does not lease. */
export function notLeasableError(address: Address, pool: Pool, subnet: Subnet | undefined): CniError {
  const words = subnet === undefined ? notInPoolMessage(address, pool) : notLeasableMessage(address, subnet, pool);
  return new CniError(CniCode.InvalidConfig, `ips: ${words}`);
}

/** Builds the error for a requested address that is not available. */
export function addressTakenError(
  lease: LeaseRecord,
  answer: Exclude<Availability, true>,
  asker: AllocationRequester,
): CniError {
  const words = describeHolderOrWait(lease, answer, asker);
  return new CniError(
    CniCode.TryAgain,
    `ips: ${words}: the kubelet retries until it is free; or request another address`,
  );
}

/** Builds the error for a reserved address that is not available. @param answer undefined if it is being leased now */
export function reservationTakenError(
  lease: LeaseRecord,
  answer: Exclude<Availability, true> | undefined,
  asker: AllocationRequester,
): CniError {
  const { address } = lease;
  const why = answer === undefined ? pendingWriteMessage(address) : describeHolderOrWait(lease, answer, asker);
  return new CniError(CniCode.TryAgain, `mac: ${reservationMessage(lease, why)}: the kubelet retries until it is free`);
}

export function leasedMeanwhileError(address: Address): CniError {
  return new CniError(CniCode.TryAgain, `ips: ${pendingWriteMessage(address)}: the kubelet retries`);
}

/** Builds the error for a full pool. @param cooling number of addresses that are cooling down */
export function poolFullError(pool: Pool, family: Family, cooling: number): CniError {
  const size = addressesOf(pool, family, 'open').size;
  const words = poolFullMessage(pool, family, { size, cooling, heldByStopped: 0 });
  return new CniError(
    CniCode.TryAgain,
    `${words}: the kubelet retries until an address is free. ${poolFullRemedy(pool, family)}`,
  );
}

export function contentionError(pool: Pool, attempts: number): CniError {
  const words = `pool ${pool.name}: other owners leased the picked address first, ${attempts} times in a row`;
  return new CniError(CniCode.TryAgain, `${words}: the kubelet retries; if it is nearly full, ${growthRemedy(pool)}`);
}

export function supersededError(containerId: string): CniError {
  const words = `sandbox ${containerId} is not the latest sandbox of its pod`;
  return new CniError(CniCode.TryAgain, `${words}: only the latest one gets addresses`);
}

/** Returns the CNI error for an error of an allocation. Unexpected errors are returned unchanged. */
export function asAllocationError(error: unknown, what: string, signal: AbortSignal): unknown {
  if (error instanceof CniError) return error;
  const options = { cause: error };
  if (signal.aborted)
    return new CniError(CniCode.TryAgain, `timeout, cannot ${what} now: the kubelet retries`, options);
  const message = messageOf(error);
  const subject = `cannot ${what}: the API server`;
  if (isRejected(error)) {
    return new CniError(CniCode.Refused, `${subject} rejected the AddressLease: ${message}`, options);
  }
  if (!(error instanceof TransportError || error instanceof StatusError)) return error;
  return new CniError(
    CniCode.TryAgain,
    `${subject} did not write the AddressLease, and the kubelet retries: ${message}`,
    options,
  );
}

function describeHolderOrWait(
  lease: LeaseRecord,
  answer: Exclude<Availability, true>,
  { times, owner }: AllocationRequester,
): string {
  return 'until' in answer ? notYetMessage(lease, answer.until, times) : heldByMessage(lease, answer.holder, owner);
}
