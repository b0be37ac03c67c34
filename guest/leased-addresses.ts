import type { IPAMClaim } from '../api/ipam-claim.js';
import type { Lister } from '../kube/cache.js';
import { type Address, readAddress } from '../ipam/core/address.js';
import { leaseName } from '../ipam/core/lease-name.js';
import { type LeaseRecord, stateOf } from '../ipam/core/lease.js';
import type { Pool } from '../ipam/core/pool.js';

/** Addresses of one claim. ipam writes at most two, but other users may write the status of a claim without a pool. */
const MAX_ADDRESSES = 16;

/** Returns the addresses in a claim's status; undefined if it has none, or if one of them cannot be read. */
export function shownAddresses({ status }: IPAMClaim): readonly Address[] | undefined {
  const ips = status?.ips ?? [];
  if (ips.length === 0 || ips.length > MAX_ADDRESSES) return undefined;
  const addresses = ips.map(readAddress);
  return addresses.every((address) => address !== undefined) ? addresses : undefined;
}

/**
 * Returns the addresses in a claim's status; undefined if it has none, or if one of them is not leased to the claim. The status is a mirror: only
 * leases decide.
 */
export function leasedAddresses(
  claim: IPAMClaim,
  { addressSpace, name }: Pick<Pool, 'addressSpace' | 'name'>,
  leases: Pick<Lister<LeaseRecord>, 'get'>,
): readonly Address[] | undefined {
  const addresses = shownAddresses(claim);
  const isLeased = (address: Address) => {
    const lease = leases.get(leaseName(addressSpace, address));
    return lease?.pool === name && lease.owner?.uid === claim.metadata.uid && stateOf(lease) === 'held';
  };
  return addresses?.every(isLeased) === true ? addresses : undefined;
}
