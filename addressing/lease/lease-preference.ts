import type { LeaseOwner } from '../../api/address-lease.js';
import { type LeaseRecord, isReservation } from './lease.js';

/**
 * Orders the leases that are kept for an owner or its MAC address by preference: reservations, leases of the owner's name, of its
 * namespace, of others; each group latest release first. MAC addresses are not secret, so the own namespace comes before others.
 */
export function byPreferenceOf({ namespace, name }: LeaseOwner): (a: LeaseRecord, b: LeaseRecord) => number {
  const rank = (record: LeaseRecord) => {
    if (isReservation(record)) return 3;
    if (record.owner?.namespace !== namespace) return 0;
    return record.owner.name === name ? 2 : 1;
  };
  return (a, b) => rank(b) - rank(a) || (b.releasedAt ?? 0) - (a.releasedAt ?? 0);
}
