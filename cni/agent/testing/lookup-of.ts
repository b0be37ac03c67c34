import { type AddressPool, nadNamespaceOf } from '../../../api/address-pool.js';
import { joinKey, objectKey } from '../../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../../api/networks/network-attachment.js';
import type { Client } from '../../../kube/client.js';
import { TestInformer } from '../../../kube/testing/test-informer.js';
import { apiError } from '../../../test/api-errors.js';
import { ManualClock } from '../../../test/manual-clock.js';
import { PoolLookup } from '../pool-lookup.js';

/** Returns a lookup of an API server that has these objects, with the names of those that it reads. */
export function lookupOf(
  pools: readonly AddressPool[],
  nads: readonly NetworkAttachmentDefinition[],
): { lookup: PoolLookup; reads: string[] } {
  const adminPools = new TestInformer<AddressPool>();
  for (const pool of pools) if (nadNamespaceOf(pool) === undefined) adminPools.set(pool);
  const objects = new Map([...pools, ...nads].map((object) => [objectKey(object), object]));
  const reads: string[] = [];
  const get: Client['get'] = ({ plural }, { namespace, name }) => {
    const key = joinKey(namespace, name);
    reads.push(`${plural} ${key}`);
    const found = objects.get(key);
    if (found !== undefined) return Promise.resolve(found as never);
    return Promise.reject(apiError(404, 'NotFound', 'not found', name));
  };
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  return { lookup: new PoolLookup({ client: { get }, clock, adminPools, maxStalenessMs: 30_000 }), reads };
}
