import type { ObjectMeta } from '../api/meta.js';
import { setMostRecent } from './lru.js';
import { isNewer, newerOf } from './resource-version.js';

/** How many deleted objects are remembered. Only requests and events in flight can be older: a few thousand suffice. */
const MAX_TOMBSTONES = 16_384;

interface Tombstone {
  /** The UID of the last object of the name. */
  readonly uid: string;
  /** Older versions of any object of the name are ignored. */
  readonly version: string;
  /** The watch has shown the deletion. Its events are ordered, so no older one can follow. */
  readonly isConfirmed: boolean;
}

type ObjectVersion = Pick<ObjectMeta, 'name' | 'deletionTimestamp'> & { uid: string; resourceVersion: string };

/** Deleted objects, by name. Older answers and events that arrive late do not bring them back. */
export class Tombstones {
  readonly #gone = new Map<string, Tombstone>();

  /** This process deleted the object. @param version the last known version of any object of the name */
  noteDeleted(name: string, uid: string, version: string): void {
    this.#remember(name, { uid, version, isConfirmed: false });
  }

  /** The watch has shown the deletion. */
  noteRemoved(name: string, uid: string, version: string): void {
    this.#remember(name, { uid, version, isConfirmed: true });
  }

  /** True if the answer to an own write is older than the deletion. */
  isStaleAnswer({ name, uid, resourceVersion }: ObjectVersion): boolean {
    const gone = this.#gone.get(name);
    return gone !== undefined && (gone.uid === uid || !isNewer(resourceVersion, gone.version));
  }

  /** True if an event of the watch is older than the deletion. */
  isStaleEvent({ name, uid, resourceVersion, deletionTimestamp }: ObjectVersion): boolean {
    const gone = this.#gone.get(name);
    if (gone === undefined || gone.isConfirmed) return false;
    // a deleted object that still appears has a finalizer of somebody else
    const isLingering = deletionTimestamp !== undefined;
    return (gone.uid === uid && !isLingering) || !isNewer(resourceVersion, gone.version);
  }

  #remember(name: string, gone: Tombstone): void {
    const before = this.#gone.get(name);
    // the deletion of an earlier object may arrive after that of a later one
    if (before !== undefined && before.uid !== gone.uid && isNewer(before.version, gone.version)) return;
    const version = newerOf(before?.version ?? gone.version, gone.version);
    setMostRecent(this.#gone, name, { ...gone, version }, MAX_TOMBSTONES);
  }
}
