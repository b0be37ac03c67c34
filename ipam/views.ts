import type { ProcessContext } from '../process/context.js';
import { intern } from '../cluster/share.js';
import { ADDRESS_POOL_WATCH, NAD_WATCH, NODE_WATCH } from '../cluster/watch-specs.js';
import { CLAIM_PODS, ClaimPods } from './claims/running/claim-pods.js';
import { REFERRING_NAMESPACES, ReferringPods } from './claims/running/referring-pods.js';
import { Informer } from '../kube/informers/informer.js';
import { LeaseBook } from './leases/lease-book.js';
import { createPoolDirectory } from '../addressing/directory/create-directory.js';
import { PoolUsage, claimUseCheck } from './pools/usage.js';
import { SERVED_CLAIM_WATCH } from './claims/claim-transform.js';
import type { AddressLease } from '../api/address-lease.js';
import type { WatchSpec } from '../kube/informers/informers.js';
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
  const { creationTimestamp } = record.metadata;
  if (creationTimestamp !== undefined) record.metadata.creationTimestamp = intern(creationTimestamp);
  if (record.node !== undefined) record.node = intern(record.node);
  if (record.owner !== undefined) record.owner.namespace = intern(record.owner.namespace);
  return record;
}

/** All state of the process, rebuilt from the API server at every start. */
export type Views = ReturnType<typeof createIpamViews>;

export function createIpamViews({ informers, client, clock, random, log, metrics }: ProcessContext) {
  const watched = {
    leases: informers.get(ADDRESS_LEASE_WATCH),
    pools: informers.get(ADDRESS_POOL_WATCH),
    claims: informers.get(SERVED_CLAIM_WATCH),
    networks: informers.get(NAD_WATCH),
    /** The launchers. */
    pods: informers.get(CLAIM_PODS),
    nodes: informers.get(NODE_WATCH),
  };
  const { leases, claims } = watched;
  const book = new LeaseBook();
  book.attach(leases, clock);
  const directory = createPoolDirectory(watched, clock);
  const referring = new ReferringPods({
    launchers: watched.pods,
    namespaces: informers.get(REFERRING_NAMESPACES),
    watch: ({ resource, ...options }) =>
      new Informer(client, resource, { ...options, clock, random, log, metrics: metrics.kube }),
    log,
  });
  const users = new ClaimPods(referring, claims.cache);
  // the status names an owner pod until that has ended, also while no cache has the pod
  const isUsed = claimUseCheck(
    claims.cache,
    (claim) => claim.status?.ownerPod !== undefined || users.podsOf(claim).length > 0,
  );
  return { watched, book, directory, referring, users, usage: new PoolUsage(book, isUsed) };
}
