import { describeLeaseOwner } from '../../api/address-lease.js';
import { nameFirst } from '../../api/json.js';
import { formatAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';

/** The maximum of leases, or namespaces, that a message names. */
export const MAX_NAMED = 5;

/** The part of a lease that a message shows. */
type NamedLease = Pick<LeaseRecord, 'address' | 'owner' | 'releasedAt' | 'quarantine'>;

/**
 * Formats leases as `10.0.0.5 (IPAMClaim vms/vm1.data), … and 12 more`.
 * @param total the number of leases to name or count
 * @param reader the namespace whose users read it: owners in other namespaces are not named; undefined: an administrator reads it
 */
export function formatLeases(leases: Iterable<NamedLease>, total: number, reader?: string): string {
  const texts: string[] = [];
  for (const lease of leases) {
    if (texts.length === MAX_NAMED) break;
    texts.push(`${formatAddress(lease.address)} (${formatHolder(lease, reader)})`);
  }
  return nameFirst(texts, MAX_NAMED, total);
}

function formatHolder(lease: NamedLease, reader: string | undefined): string {
  const { owner } = lease;
  if (owner === undefined || stateOf(lease) !== 'held') return stateOf(lease);
  const isShown = reader === undefined || owner.namespace === reader;
  return isShown ? describeLeaseOwner(owner) : 'in another namespace';
}
