import type { Pool } from '../../addressing/pool/pool.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { Lister } from '../../kube/cache.js';
import { leasedAddresses } from '../leased-addresses.js';
import { type GuestCaches, findGuests } from '../running-guests.js';
import { type GuestTable, type RunningGuest, buildTable } from './table.js';

export interface TableCaches extends GuestCaches {
  readonly leases: Pick<Lister<LeaseRecord>, 'get'>;
}

/** Guests whose leases are read in one step. */
const GUESTS_PER_STEP = 500;

/** Builds the table of a pool from the caches as they are. Yields between short steps. */
export function* buildPoolTable(pool: Pool, caches: TableCaches): Generator<undefined, GuestTable> {
  const { served } = yield* findGuests(pool.network, caches);
  const own = served.filter((guest) => guest.pool.name === pool.name);
  const guests: RunningGuest[] = [];
  for (const { claim, mac, nad, hasDefaultRoute } of own) {
    const addresses = leasedAddresses(claim, pool, caches.leases);
    guests.push({ claim, mac, hasDefaultRoute, addresses, nadOptions: nad.guestOptions });
    if (guests.length % GUESTS_PER_STEP === 0) yield;
  }
  yield;
  return yield* buildTable(pool, guests);
}
