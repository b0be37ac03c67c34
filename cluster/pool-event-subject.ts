import type { ObjectMeta } from '../api/meta.js';
import { ADDRESS_POOL_KIND, IPAM_API_VERSION } from '../api/names.js';
import type { EventSubject } from '../kube/events.js';

export function poolEventSubject({ name, uid }: Pick<ObjectMeta, 'name' | 'uid'>): EventSubject {
  return { apiVersion: IPAM_API_VERSION, kind: ADDRESS_POOL_KIND, metadata: { name, ...(uid && { uid }) } };
}
