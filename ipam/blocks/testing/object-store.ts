import { isRecord } from '../../../api/json.js';
import type { KubeObject, ObjectMeta } from '../../../api/meta.js';
import { type Preconditions, apiError, checkPreconditions } from '../../../test/api-errors.js';

/** One write of an object, in the form that leases and blocks use. */
export type ObjectWrite<O> =
  | { readonly verb: 'create'; readonly object: O }
  | { readonly verb: 'patch' | 'patch-status'; readonly name: string; readonly body: object }
  | ({ readonly verb: 'delete'; readonly name: string } & Preconditions);

export type StoredObject<O> = O & { metadata: ObjectMeta & { uid: string; resourceVersion: string } };

/** An event of a watch: an object before and after a write. */
export interface ObjectEvent<O> {
  readonly before: StoredObject<O> | undefined;
  /** undefined if the object was deleted. */
  readonly after: StoredObject<O> | undefined;
}

/** The next resourceVersion: one counter for all kinds of a cluster. */
export function versions(): () => number {
  let version = 0;
  return () => ++version;
}

/**
 * The objects of one kind under the API server's rules: names are unique, uid and resourceVersion are preconditions, the status is a
 * subresource, and a deleted object exists until its last finalizer is removed. Returned objects never change.
 */
export class ObjectStore<O extends KubeObject & { status?: object }> {
  readonly objects = new Map<string, StoredObject<O>>();
  readonly #next: () => number;
  readonly #observe: (event: ObjectEvent<O>) => void;

  /** @param observe called synchronously with each successful write */
  constructor(next: () => number, observe: (event: ObjectEvent<O>) => void = () => undefined) {
    this.#next = next;
    this.#observe = observe;
  }

  /**
   * @returns the object after the write; undefined if it no longer exists
   * @throws {StatusError} 409 AlreadyExists, 409 Conflict, 404 NotFound
   */
  write(write: ObjectWrite<O>): StoredObject<O> | undefined {
    switch (write.verb) {
      case 'create':
        return this.#create(write.object);
      case 'delete':
        return this.#delete(this.#find(write.name, write));
      default: {
        const { metadata, ...body } = write.body as { metadata?: Preconditions };
        const found = this.#find(write.name, metadata);
        const { spec, status } = body as { spec?: object; status?: object };
        const patch = write.verb === 'patch' ? { metadata: changesOf(metadata), spec } : { status };
        return this.#store(found, mergedObject(found, patch) as StoredObject<O>);
      }
    }
  }

  #create(object: O): StoredObject<O> {
    const { name } = object.metadata;
    if (this.objects.has(name)) throw apiError(409, 'AlreadyExists', 'AlreadyExists', name);
    const uid = `uid-${this.#next()}`;
    const { status: _status, ...made } = object;
    return this.#store(undefined, { ...made, metadata: { ...object.metadata, uid } } as unknown as StoredObject<O>)!;
  }

  #delete(found: StoredObject<O>): StoredObject<O> | undefined {
    const { metadata } = found;
    if ((metadata.finalizers ?? []).length === 0) {
      this.#remove(found);
      return;
    }
    if (metadata.deletionTimestamp !== undefined) return found;
    return this.#store(found, { ...found, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  }

  #store(before: StoredObject<O> | undefined, given: StoredObject<O>): StoredObject<O> | undefined {
    const { deletionTimestamp, finalizers = [] } = given.metadata;
    if (before !== undefined && deletionTimestamp !== undefined && finalizers.length === 0) {
      this.#remove(before);
      return;
    }
    const after = { ...given, metadata: { ...given.metadata, resourceVersion: String(this.#next()) } };
    this.objects.set(after.metadata.name, after);
    this.#observe({ before, after });
    return after;
  }

  #remove(before: StoredObject<O>): undefined {
    this.#next();
    this.objects.delete(before.metadata.name);
    this.#observe({ before, after: undefined });
    return undefined;
  }

  #find(name: string, preconditions?: Preconditions): StoredObject<O> {
    const found = this.objects.get(name);
    if (found === undefined) throw apiError(404, 'NotFound', 'NotFound', name);
    checkPreconditions(found, preconditions);
    return found;
  }
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

function changesOf({ uid: _uid, resourceVersion: _version, ...changes }: Preconditions & object = {}): object {
  return changes;
}
