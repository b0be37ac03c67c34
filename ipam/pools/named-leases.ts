import { formatAddress } from '../core/address.js';
import { type LeaseRecord, stateOf } from '../core/lease.js';

/** Leases, or namespaces, that a message names. */
export const MAX_NAMED = 5;

/**
 * `10.0.0.5 (IPAMClaim vms/vm1.data), … and 12 more`.
 * @param reader the namespace whose tenants read it: owners in other namespaces are not named; undefined: an administrator reads it
 */
export function listLeases(
  leases: Iterable<LeaseRecord>,
  total: number,
  isMeant: (lease: LeaseRecord) => boolean,
  reader?: string,
): string {
  const texts: string[] = [];
  for (const lease of leases) {
    if (texts.length === MAX_NAMED) break;
    if (isMeant(lease)) texts.push(describeLease(lease, reader));
  }
  const more = total - texts.length;
  return `${texts.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function describeLease(lease: LeaseRecord, reader: string | undefined): string {
  const { address, owner } = lease;
  const who = stateOf(lease) === 'released' ? 'released, not free yet' : describeHolder(owner, reader);
  return `${formatAddress(address)} (${who})`;
}

function describeHolder(owner: LeaseRecord['owner'], reader: string | undefined): string {
  if (owner === undefined) return 'reserved';
  const isShown = reader === undefined || owner.namespace === reader;
  return isShown ? `${owner.kind} ${owner.namespace}/${owner.name}` : 'in another namespace';
}
