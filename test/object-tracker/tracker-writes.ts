import { isRecord } from '../../api/json.js';
import type { KubeObject, ObjectPatch, ObjectWrite } from '../../api/meta.js';
import type { Kind, ObjectTracker } from '../../kube/testing/object-tracker.js';

/**
 * Makes a write without a client, at once.
 * @returns the object after the write; undefined if it no longer exists
 * @throws {StatusError} 409 AlreadyExists, 409 Conflict, 404 NotFound
 */
export function writeObject<O extends KubeObject>(
  tracker: ObjectTracker,
  kind: Kind<O>,
  write: ObjectWrite<O> | ObjectPatch<'patch-status'>,
): O | undefined {
  if (write.verb === 'create') return tracker.create(kind, write.object);
  const ref = { name: write.name };
  if (write.verb === 'delete') tracker.delete(kind, ref, { uid: write.uid, resourceVersion: write.resourceVersion });
  else {
    const subresource = write.verb === 'patch-status' ? 'status' : undefined;
    tracker.update(kind, ref, (found) => mergedObject(found, write.body) as O, { subresource });
  }
  return tracker.find(kind, ref);
}

/** Applies a merge patch (RFC 7386) to a copy that shares unchanged fields. */
function mergedObject(target: object, patch: object): object {
  const result: Record<string, unknown> = { ...target };
  for (const [key, value] of Object.entries(patch) as [string, unknown][]) {
    if (value === null) Reflect.deleteProperty(result, key);
    else if (isRecord(value)) result[key] = mergedObject(isRecord(result[key]) ? result[key] : {}, value);
    else if (value !== undefined) result[key] = value;
  }
  return result;
}
