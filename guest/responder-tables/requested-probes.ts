import { formatAddress } from '../../addressing/address/address.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { type IPAMClaim, claimGuestMacOf, claimMacOf } from '../../api/ipam-claim.js';
import { joinKey } from '../../api/meta.js';
import type { Lister } from '../../kube/informers/cache.js';
import { BY_PROBED_POOL } from '../watch-specs.js';
import { fairOrder } from '../fair-order.js';
import type { RequestedProbe } from './guest-table.js';

/** More than responders can probe in the two seconds for which ipam waits. */
const MAX_REQUESTED_PROBES = 512;

/** Returns the probes that ipam requests of the responders of a pool: if there are too many, as many of each namespace. */
export function requestedProbes(
  pool: string,
  leases: Pick<Lister<LeaseRecord>, 'byIndex'>,
  claims: Pick<Lister<IPAMClaim>, 'get'>,
): RequestedProbe[] {
  const all = fairOrder(leases.byIndex(BY_PROBED_POOL, pool), ({ owner }) => owner?.namespace ?? '');
  const requested = all.slice(0, MAX_REQUESTED_PROBES).map((lease) => {
    const { name, uid, resourceVersion } = lease.metadata;
    const metadata = { name, uid, resourceVersion };
    return { metadata, address: formatAddress(lease.address), expected: expectedFor(lease, claims) };
  });
  // the same leases make the same table
  return requested.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

/** The MAC addresses of the guest for which the address is meant. */
function expectedFor({ owner }: LeaseRecord, claims: Pick<Lister<IPAMClaim>, 'get'>): string[] {
  const claim = owner && claims.get(joinKey(owner.namespace, owner.name));
  if (claim === undefined || claim.metadata.uid !== owner?.uid) return [];
  return [claimMacOf(claim), claimGuestMacOf(claim)].filter((mac) => mac !== undefined);
}
