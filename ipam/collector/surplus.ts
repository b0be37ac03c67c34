import type { IPAMClaim } from '../../api/ipam-claim.js';
import { isBeingDeleted } from '../../api/meta.js';
import { readAddressRequest } from '../claims/shown/claim-addresses.js';
import { type Address, readAllAddresses, sameAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';

/** Everything that decides whether a claim needs one of its leases. */
export interface ClaimUsage {
  claim: IPAMClaim;
  /** The leases of the claim's UID. */
  claimLeases: readonly LeaseRecord[];
  /** The addresses that each pod of the claim reports, as text. */
  reportedAddresses: readonly (readonly string[])[];
}

/**
 * Returns the claim's lease that proves another one surplus: the claim's status contains its address and not the other one. Both are of
 * one family if the status contains an address of that family. Returns undefined if the lease may be needed: its address is requested,
 * the claim is being deleted, a pod has the address or does not report the other one, or something cannot be parsed.
 */
export function surplusProof(lease: LeaseRecord, usage: ClaimUsage): LeaseRecord | undefined {
  const { claim, claimLeases, reportedAddresses } = usage;
  if (isBeingDeleted(claim)) return undefined;
  const inStatus = readAllAddresses(claim.status?.ips ?? []);
  const requested = requestedAddressesOf(claim);
  if (inStatus === undefined || requested === undefined) return undefined;
  if (isAmong(lease.address, [...inStatus, ...requested])) return undefined;
  const { family } = lease.address;
  const hasFamilyInStatus = inStatus.some((address) => address.family === family);
  const used = reportedAddresses.map(readAllAddresses);
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

/** @returns undefined if the request is invalid */
function requestedAddressesOf(claim: IPAMClaim): readonly Address[] | undefined {
  const request = readAddressRequest(claim);
  if (request.kind === 'invalid') return undefined;
  return request.kind === 'addresses' ? request.addresses : [];
}
