import { omitUndefined } from '../api/json.js';
import type { ObjectMeta, OwnerReference } from '../api/meta.js';
import { intern } from './share.js';

/** What caches keep of an object's metadata. */

export function identityMetadataOf(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, resourceVersion, deletionTimestamp } = metadata;
  const small: ObjectMeta = omitUndefined({ name, namespace: namespace && intern(namespace), uid, resourceVersion });
  if (deletionTimestamp !== undefined) small.deletionTimestamp = deletionTimestamp;
  return small;
}

/** Also when the object was created. */
export function datedMetadataOf(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  const small: ObjectMeta = omitUndefined({
    name,
    namespace: namespace && intern(namespace),
    uid,
    resourceVersion,
    creationTimestamp: creationTimestamp && intern(creationTimestamp),
  });
  if (deletionTimestamp !== undefined) small.deletionTimestamp = deletionTimestamp;
  return small;
}

export function pickKeys(
  map: Record<string, string> | undefined,
  keys: readonly string[],
): Record<string, string> | undefined {
  const found = Object.entries(map ?? {}).filter(([key]) => keys.includes(key));
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

/** Shares what is the same for all objects. */
export function transformReference(reference: OwnerReference): OwnerReference {
  const { controller, blockOwnerDeletion } = reference;
  const [apiVersion, kind] = [intern(reference.apiVersion), intern(reference.kind)];
  const [name, uid] = [intern(reference.name), intern(reference.uid)];
  return omitUndefined({ apiVersion, kind, name, uid, controller, blockOwnerDeletion });
}
