import { type ObjectMeta, isNewer, newerOf } from '../../api/meta.js';
import type { ObjectChange } from './informer.js';
import { setMostRecent } from './cache.js';

/** How many deleted objects are remembered. Only requests and events in flight can be older: a few thousand suffice. */
const MAX_TOMBSTONES = 16_384;

/** The last object of a name, if it was deleted. */
interface Tombstone {
  readonly uid: string;
  /** Older versions of any object of the name are ignored. */
  readonly version: string;
  /** The watch has shown the deletion. Its events are ordered, so no older one can follow. */
  readonly isConfirmed: boolean;
}

interface VersionedObject {
  readonly metadata: Pick<ObjectMeta, 'name' | 'deletionTimestamp'> & { uid: string; resourceVersion: string };
}

/** Where the objects of a {@link MutationCache} are stored, by name. */
interface MutationStore<S> {
  get(name: string): S | undefined;
  /** @returns the object as it is stored instead of the one that was known */
  set(object: S, known: S | undefined): S;
  delete(known: S): void;
}

/** A change of one object. If an object is replaced by another of the same name, handlers get a removal and an addition. */
export type MutationChange<S> =
  | { readonly before?: S; readonly after: S }
  | { readonly before: S; readonly after?: never };

/**
 * Objects of a watch, with the newer writes of this process, like client-go's MutationCache. Versions that are older than known ones are ignored,
 * however events and answers are ordered, and deleted objects do not come back.
 */
export class MutationCache<S extends VersionedObject> {
  readonly #store: MutationStore<S>;
  readonly #gone = new Map<string, Tombstone>();
  readonly #changed: ((change: MutationChange<S>) => void)[] = [];

  constructor(store: MutationStore<S>) {
    this.#store = store;
  }

  /** Calls the handler synchronously with each change. Handlers only enqueue. */
  onChange(handler: (change: MutationChange<S>) => void): void {
    this.#changed.push(handler);
  }

  /** Applies an event of the watch. */
  observe({ type, object }: ObjectChange<S>): void {
    const { name, uid, resourceVersion, deletionTimestamp } = object.metadata;
    if (type === 'removed') {
      this.#remove(name, { uid, version: resourceVersion, isConfirmed: true });
      return;
    }
    const gone = this.#gone.get(name);
    // a deleted object that still appears has a finalizer of somebody else
    const isLingering = deletionTimestamp !== undefined;
    if (gone?.isConfirmed === false && gone.uid === uid && !isLingering) return;
    if (gone?.isConfirmed !== false || isNewer(resourceVersion, gone.version)) this.#set(object);
  }

  /** Applies the answer to a write of this process. @returns false if the object was deleted since */
  wrote(object: S): boolean {
    const { name, uid, resourceVersion } = object.metadata;
    const gone = this.#gone.get(name);
    if (gone !== undefined && (gone.uid === uid || !isNewer(resourceVersion, gone.version))) return false;
    this.#set(object);
    return true;
  }

  /** Removes an object that this process deleted, or did not find by a live read. */
  forget(name: string, uid: string): void {
    this.#remove(name, { uid, version: '0', isConfirmed: false });
  }

  #set(object: S): void {
    const { name, uid, resourceVersion } = object.metadata;
    const known = this.#store.get(name);
    if (known !== undefined && !isNewer(resourceVersion, known.metadata.resourceVersion)) return;
    const after = this.#store.set(object, known);
    if (known?.metadata.uid === uid) {
      this.#tell({ before: known, after });
      return;
    }
    if (known !== undefined) this.#tell({ before: known });
    this.#tell({ after });
  }

  #remove(name: string, gone: Tombstone): void {
    const stored = this.#store.get(name);
    const known = stored?.metadata.uid === gone.uid ? stored : undefined;
    if (known !== undefined) {
      this.#store.delete(known);
      this.#tell({ before: known });
    }
    const version = newerOf(gone.version, known?.metadata.resourceVersion ?? '0');
    const former = this.#gone.get(name);
    // the deletion of an earlier object may arrive after that of a later one
    if (former !== undefined && former.uid !== gone.uid && isNewer(former.version, version)) return;
    const newest = newerOf(former?.version ?? version, version);
    setMostRecent(this.#gone, name, { ...gone, version: newest }, MAX_TOMBSTONES);
  }

  #tell(change: MutationChange<S>): void {
    for (const handler of this.#changed) handler(change);
  }
}
