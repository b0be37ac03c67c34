import type { IPAMClaim } from '../../api/ipam-claim.js';
import { isBeingDeleted } from '../../api/meta.js';
import { readAddressRequest } from '../claims/claim-addresses.js';
import { type Address, parseAddressOrPrefix, sameAddress } from '../core/address.js';
import { type LeaseRecord, stateOf } from '../core/lease.js';

/** What bears on whether a claim needs one of its leases. */
export interface ClaimUsage {
  claim: IPAMClaim;
  /** The leases of this claim's UID. */
  claimLeases: readonly LeaseRecord[];
  /** Of each pod that uses the claim the addresses, as text, that it reports. */
  reportedAddresses: readonly (readonly string[])[];
}

/**
 * The lease of the claim's that vouches for another one being surplus: named by the claim's status, which does not name the other one; and of the
 * same family, where the status names any of that. Undefined where the lease is needed, or may be: it is asked for, the claim is being deleted, a pod has the address or does not say that it has the other one, or there is something that cannot be read.
 */
export function surplusProof(
  lease: LeaseRecord,
  { claim, claimLeases, reportedAddresses }: ClaimUsage,
): LeaseRecord | undefined {
  if (isBeingDeleted(claim)) return undefined;
  const inStatus = parseAddresses(claim.status?.ips ?? []);
  const requested = requestedAddressesOf(claim);
  if (inStatus === undefined || requested === undefined || isAmong(lease.address, [...inStatus, ...requested])) {
    return undefined;
  }
  const { family } = lease.address;
  const hasFamilyInStatus = inStatus.some((address) => address.family === family);
  const used = reportedAddresses.map(parseAddresses);
  return claimLeases.find(
    (sibling) =>
      (sibling.address.family === family || !hasFamilyInStatus) &&
      stateOf(sibling) === 'held' &&
      sibling.owner?.uid === claim.metadata.uid &&
      isAmong(sibling.address, inStatus) &&
      used.every((has) => has !== undefined && isAmong(sibling.address, has) && !isAmong(lease.address, has)),
  );
}

function isAmong(address: Address, addresses: readonly Address[]): boolean {
  return addresses.some((other) => sameAddress(other, address));
}

/** @returns undefined if it cannot be read */
function requestedAddressesOf(claim: IPAMClaim): readonly Address[] | undefined {
  const request = readAddressRequest(claim);
  if (request.kind === 'invalid') return undefined;
  return request.kind === 'addresses' ? request.addresses : [];
}

function parseAddresses(texts: readonly unknown[]): Address[] | undefined {
  try {
    return texts.map((text) => parseAddressOrPrefix(String(text)).address);
  } catch {
    return undefined;
  }
}
