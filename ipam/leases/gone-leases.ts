import { rememberRecent } from '../../kube/recent-entries.js';

/** News of a lease that is gone is older than the requests and events under way: a few thousand would do. */
const REMEMBERED = 16_384;

/** UIDs of leases that are gone, so that what was said of them before and arrives after does not bring them back. */
export class GoneLeases {
  readonly #uids = new Map<string, 'deleted' | 'removed'>();

  /** We deleted it: all that the watch still says of it is old, until it says that it is gone. */
  deleted(uid: string): void {
    rememberRecent(this.#uids, uid, 'deleted', REMEMBERED);
  }

  /** The watch says that it is gone: answers to our own writes may still be under way, but the watch itself goes in order. */
  removed(uid: string): void {
    rememberRecent(this.#uids, uid, 'removed', REMEMBERED);
  }

  /** Whether the answer to a write of ours is to be ignored. */
  hidesAnswer(uid: string): boolean {
    return this.#uids.has(uid);
  }

  /** Whether an event is to be ignored. */
  hidesEvent(uid: string): boolean {
    return this.#uids.get(uid) === 'deleted';
  }

  /** It is there after all. */
  returned(uid: string): void {
    this.#uids.delete(uid);
  }
}
