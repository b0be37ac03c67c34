import type { IPAMClaim } from '../api/ipam-claim.js';
import type { Lister } from '../kube/informers/cache.js';
import { type Address, readAllAddresses } from '../addressing/address/address.js';
import { leaseName } from '../addressing/lease/lease-name.js';
import { type LeaseRecord, stateOf } from '../addressing/lease/lease.js';
import type { Pool } from '../addressing/pool/pool.js';

/** Addresses of one claim. ipam writes at most two, but other users may write the status of a claim without a pool. */
const MAX_ADDRESSES = 16;

/** Returns the addresses in a claim's status; undefined if it has none, or if one of them cannot be read. */
export function shownAddresses({ status }: IPAMClaim): readonly Address[] | undefined {
  const ips = status?.ips ?? [];
  return ips.length === 0 || ips.length > MAX_ADDRESSES ? undefined : readAllAddresses(ips);
}

/**
 * Returns the addresses in a claim's status that are leased to it, from whichever pool of the address space. The status is a mirror: only leases
 * decide.
 */
export function leasedAddresses(
  claim: IPAMClaim,
  { addressSpace }: Pick<Pool, 'addressSpace'>,
  leases: Pick<Lister<LeaseRecord>, 'get'>,
): readonly Address[] {
  return (shownAddresses(claim) ?? []).filter((address) => {
    const lease = leases.get(leaseName(addressSpace, address));
    return lease !== undefined && lease.owner?.uid === claim.metadata.uid && stateOf(lease) === 'held';
  });
}

/** Returns the addresses in a claim's status; undefined if it has none, or if one of them is not leased to the claim. */
export function allLeasedAddresses(
  claim: IPAMClaim,
  pool: Pick<Pool, 'addressSpace'>,
  leases: Pick<Lister<LeaseRecord>, 'get'>,
): readonly Address[] | undefined {
  const leased = leasedAddresses(claim, pool, leases);
  return leased.length > 0 && leased.length === shownAddresses(claim)?.length ? leased : undefined;
}
