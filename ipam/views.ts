import type { ProcessContext } from '../process/context.js';
import { intern } from '../cluster/share.js';
import { ADDRESS_POOL_WATCH, NAD_WATCH } from '../cluster/watch-specs.js';
import { CLAIM_PODS, ClaimPods } from './claims/running/claim-pods.js';
import { LeaseBook } from './leases/lease-book.js';
import { createPoolDirectory } from '../addressing/directory/create-directory.js';
import { PoolUsage, claimUseCheck } from './pools/usage.js';
import { SERVED_CLAIM_WATCH } from './claims/claim-transform.js';
import type { AddressLease } from '../api/address-lease.js';
import type { WatchSpec } from '../kube/informers.js';
import { ADDRESS_LEASES } from '../kube/resources.js';
import { type LeaseRecord, readLease } from '../addressing/lease/lease.js';

/**
 * Watches leases without indexes: the lease book has its own, which include the process's own writes. Not optional: without leases
 * the process cannot know what is leased.
 */
export const ADDRESS_LEASE_WATCH: WatchSpec<AddressLease, LeaseRecord> = {
  resource: ADDRESS_LEASES,
  transform: readSharedLease,
};

function readSharedLease(lease: AddressLease): LeaseRecord {
  const record = readLease(lease);
  record.addressSpace = intern(record.addressSpace);
  record.pool = intern(record.pool);
  if (record.node !== undefined) record.node = intern(record.node);
  if (record.owner !== undefined) record.owner.namespace = intern(record.owner.namespace);
  return record;
}

/** All state of the process, rebuilt from the API server at every start. */
export type Views = ReturnType<typeof createIpamViews>;

export function createIpamViews({ informers, clock }: Pick<ProcessContext, 'informers' | 'clock'>) {
  const watched = {
    leases: informers.get(ADDRESS_LEASE_WATCH),
    pools: informers.get(ADDRESS_POOL_WATCH),
    claims: informers.get(SERVED_CLAIM_WATCH),
    networks: informers.get(NAD_WATCH),
    pods: informers.get(CLAIM_PODS),
  };
  const { leases, claims } = watched;
  const book = new LeaseBook();
  book.attach(leases, clock);
  const directory = createPoolDirectory(watched, clock);
  const users = new ClaimPods(watched.pods, claims.cache);
  const isUsed = claimUseCheck(claims.cache, (claim) => users.podsOf(claim));
  return { watched, book, directory, users, usage: new PoolUsage(book, isUsed) };
}
