import type { AddressLease } from '../../../api/address-lease.js';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { objectKey } from '../../../api/meta.js';
import { IPS_ALLOCATED } from '../../../api/names.js';
import { messageOf } from '../../../kube/errors.js';
import { type Address, BITS, parseAddressOrPrefix } from '../../../addressing/address/address.js';
import { type LeaseRecord, heldByMessage } from '../../../addressing/index.js';
import { holderOf, readLease } from '../../../addressing/lease/lease.js';
import { type Pool, subnetOf } from '../../../addressing/pool/pool.js';
import type { GrantedAddress } from '../result.js';

/** An address in the status of a claim. */
export interface StatusAddress {
  readonly address: Address;
  readonly prefixLength: number;
}

/** Returns the addresses in the claim's status, or a message if there are none yet. */
export function readStatusAddresses(claim: IPAMClaim): readonly StatusAddress[] | string {
  const ips = claim.status?.ips ?? [];
  const conditions = claim.status?.conditions ?? [];
  const subject = `IPAMClaim ${objectKey(claim)}`;
  const allocated = conditions.find(({ type }) => type === IPS_ALLOCATED);
  if (allocated?.status !== 'True' || ips.length === 0) {
    const why = allocated === undefined || allocated.status === 'True' ? '' : `: ${allocated.message}`;
    return `${subject} has no addresses yet${why}`;
  }
  try {
    return ips
      .map(parseAddressOrPrefix)
      .map(({ address, prefixLength = BITS[address.family] }) => ({ address, prefixLength }));
  } catch (error) {
    return `${subject}: status.ips is invalid: ${messageOf(error)}`;
  }
}

/** Returns the parsed lease, or a message if the claim does not hold it. The lease is the authority; `status.ips` mirrors it. */
export function readHeldLease(lease: AddressLease, claim: IPAMClaim): LeaseRecord | string {
  let record: LeaseRecord;
  try {
    record = readLease(lease);
  } catch (error) {
    return messageOf(error);
  }
  const { owner, releasedAt, metadata } = record;
  if (owner?.kind !== 'IPAMClaim' || owner.uid !== claim.metadata.uid) {
    return describeOtherHolder(record, claim);
  }
  const name = `AddressLease ${metadata.name}`;
  if (releasedAt !== undefined) return `${name} was released at ${new Date(releasedAt).toISOString()}`;
  return metadata.deletionTimestamp === undefined ? record : `${name} is being deleted`;
}

function describeOtherHolder(lease: LeaseRecord, { metadata: { namespace = '', name } }: IPAMClaim): string {
  const { owner } = lease;
  const words = heldByMessage(lease, holderOf(lease), { namespace });
  const isNamesake = owner?.kind === 'IPAMClaim' && owner.namespace === namespace && owner.name === name;
  return isNamesake ? `${words}, a deleted claim of the same name` : words;
}

/** Adds prefix length and gateway. @param pool that of the lease; if unknown, the claim's prefix length counts and there is no gateway */
export function grantedAddress({ address, prefixLength }: StatusAddress, pool: Pool | undefined): GrantedAddress {
  const subnet = pool && subnetOf(pool, address);
  if (subnet === undefined) return { address, prefixLength };
  const { cidr, gateway } = subnet;
  return { address, prefixLength: cidr.prefixLength, ...(gateway !== undefined && { gateway }) };
}
