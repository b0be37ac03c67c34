import type { IPAMClaim } from '../../api/ipam-claim.js';
import { isBeingDeleted } from '../../api/meta.js';
import { requestOf } from '../claims/requests.js';
import { type Address, parseAddressOrPrefix, sameAddress } from '../core/address.js';
import { type LeaseRecord, stateOf } from '../core/lease.js';

/** What bears on whether a claim needs one of its leases. */
export interface Usage {
  claim: IPAMClaim;
  /** The leases of this claim's UID. */
  siblings: readonly LeaseRecord[];
  /** Of each pod that uses the claim the addresses, as text, that it reports. */
  reports: readonly (readonly string[])[];
}

/**
 * The lease of the claim's that vouches for another one being surplus: named by the claim's status, which does not name the other one; and of the
 * same family, where the status names any of that. Undefined where the lease is needed, or may be: it is asked for, the claim is being deleted, a pod has the address or does not say that it has the other one, or there is something that cannot be read.
 */
export function voucherFor(lease: LeaseRecord, { claim, siblings, reports }: Usage): LeaseRecord | undefined {
  if (isBeingDeleted(claim)) return undefined;
  const named = readAddresses(claim.status?.ips ?? []);
  const requested = requestedBy(claim);
  if (named === undefined || requested === undefined || isAmong(lease.address, [...named, ...requested])) {
    return undefined;
  }
  const { family } = lease.address;
  const isShown = named.some((address) => address.family === family);
  const used = reports.map(readAddresses);
  return siblings.find(
    (sibling) =>
      (sibling.address.family === family || !isShown) &&
      stateOf(sibling) === 'held' &&
      sibling.owner?.uid === claim.metadata.uid &&
      isAmong(sibling.address, named) &&
      used.every((has) => has !== undefined && isAmong(sibling.address, has) && !isAmong(lease.address, has)),
  );
}

function isAmong(address: Address, addresses: readonly Address[]): boolean {
  return addresses.some((other) => sameAddress(other, address));
}

/** @returns undefined if it cannot be read */
function requestedBy(claim: IPAMClaim): readonly Address[] | undefined {
  const request = requestOf(claim);
  if (request.kind === 'invalid') return undefined;
  return request.kind === 'addresses' ? request.addresses : [];
}

function readAddresses(texts: readonly unknown[]): Address[] | undefined {
  try {
    return texts.map((text) => parseAddressOrPrefix(String(text)).address);
  } catch {
    return undefined;
  }
}
