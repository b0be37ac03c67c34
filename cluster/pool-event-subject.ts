import { nadNamespaceOf } from '../api/address-pool.js';
import type { ObjectMeta } from '../api/meta.js';
import { ADDRESS_POOL_KIND, IPAM_API_VERSION } from '../api/names.js';
import type { EventSubject } from '../kube/events.js';

/** Events about a derived pool take the share of its NADs' namespace, so that they leave room for those of administrators' pools. */
export function poolEventSubject(pool: Pick<ObjectMeta, 'name' | 'uid' | 'annotations'>): EventSubject {
  const { name, uid } = pool;
  const tenant = nadNamespaceOf({ metadata: pool });
  return {
    ...{ apiVersion: IPAM_API_VERSION, kind: ADDRESS_POOL_KIND, metadata: { name, ...(uid && { uid }) } },
    ...(tenant !== undefined && { tenant }),
  };
}
