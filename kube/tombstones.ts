import type { ObjectMeta } from '../api/meta.js';
import { setMostRecent } from './lru.js';
import { isNewer, newerOf } from './resource-version.js';

/** News of a lease that is gone is older than the requests and events under way: a few thousand would do. */
const MAX_TOMBSTONES = 16_384;

interface Tombstone {
  /** Of the last lease of its name. */
  readonly uid: string;
  /** No older version of any lease of its name counts. */
  readonly version: string;
  /** The watch has told that it is gone, and goes in order: it says nothing older any more. */
  readonly isConfirmed: boolean;
}

type ObjectVersion = Pick<ObjectMeta, 'name' | 'deletionTimestamp'> & { uid: string; resourceVersion: string };

/** Leases that are gone, by name: what was said of them before, and arrives after, does not bring them back. */
export class Tombstones {
  readonly #gone = new Map<string, Tombstone>();

  /** We deleted it. @param version the last one known of any lease of the name */
  noteDeleted(name: string, uid: string, version: string): void {
    this.#remember(name, { uid, version, isConfirmed: false });
  }

  /** The watch says that it is gone. */
  noteRemoved(name: string, uid: string, version: string): void {
    this.#remember(name, { uid, version, isConfirmed: true });
  }

  /** Whether the answer to a write of ours is too late to count. */
  isStaleAnswer({ name, uid, resourceVersion }: ObjectVersion): boolean {
    const gone = this.#gone.get(name);
    return gone !== undefined && (gone.uid === uid || !isNewer(resourceVersion, gone.version));
  }

  /** Whether an event of the watch is too late to count. */
  isStaleEvent({ name, uid, resourceVersion, deletionTimestamp }: ObjectVersion): boolean {
    const gone = this.#gone.get(name);
    if (gone === undefined || gone.isConfirmed) return false;
    // Somebody's finalizer is the only reason why a deleted object is seen again: it is still there.
    const isLingering = deletionTimestamp !== undefined;
    return (gone.uid === uid && !isLingering) || !isNewer(resourceVersion, gone.version);
  }

  #remember(name: string, gone: Tombstone): void {
    const before = this.#gone.get(name);
    // the end of an earlier lease may be told after that of a later one
    if (before !== undefined && before.uid !== gone.uid && isNewer(before.version, gone.version)) return;
    const version = newerOf(before?.version ?? gone.version, gone.version);
    setMostRecent(this.#gone, name, { ...gone, version }, MAX_TOMBSTONES);
  }
}
