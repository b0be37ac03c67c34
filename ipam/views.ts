import type { ProcessContext } from '../process/context.js';
import { ADDRESS_POOL_WATCH, NADS } from '../cluster/watched.js';
import { CLAIM_PODS, ClaimPods } from './claims/pods.js';
import { LeaseBook } from './leases/book.js';
import { PoolDirectory } from './directory/directory.js';
import { PoolUsage, usedBy } from './pools/usage.js';
import { SERVED_CLAIMS } from './claims/watched.js';
import { ADDRESS_LEASE_WATCH } from './leases/lease-watch.js';

/** All that a process knows, rebuilt from the API server at every start. */
export type Views = ReturnType<typeof createViews>;

export function createViews({ informers }: Pick<ProcessContext, 'informers'>) {
  const watched = {
    leases: informers.get(ADDRESS_LEASE_WATCH),
    pools: informers.get(ADDRESS_POOL_WATCH),
    claims: informers.get(SERVED_CLAIMS),
    networks: informers.get(NADS),
    pods: informers.get(CLAIM_PODS),
  };
  const { leases, pools, claims, networks } = watched;
  const book = new LeaseBook();
  book.attach(leases);
  const directory = new PoolDirectory({
    pools: pools.cache,
    networks: networks.cache,
    areNetworksServed: () => networks.isServed,
  });
  const users = new ClaimPods(watched.pods, claims.cache);
  const isUsed = usedBy(claims.cache, (claim) => users.usersOf(claim));
  return { watched, book, directory, users, usage: new PoolUsage(book, isUsed) };
}
