import { isProofOfAbsence } from '../../kube/absence.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { LeaseRecord } from '../core/lease.js';

/** What of the lease book is read and written; {@link LeaseBook} is one. */
export interface UnseenLeases {
  unseen(): readonly LeaseRecord[];
  forget(name: string, uid: string): void;
}

export interface UnseenLeaseDeps {
  readonly book: UnseenLeases;
  readonly client: Pick<Client, 'get'>;
}

/** Each costs a request. */
const MAX_CHECKS_PER_ROUND = 50;

/**
 * Looks for leases that only the book knows: we made them, and they were deleted before any watch showed them. Their addresses would never be
 * leased again, or be taken for those of a claim that has none.
 */
export class UnseenLeaseCheck {
  readonly #deps: UnseenLeaseDeps;
  readonly #afterMs: number;
  /** By UID: since when it is unseen, in ms. */
  #unseen = new Map<string, number>();

  /** @param afterMs how long a watch may lag behind */
  constructor(deps: UnseenLeaseDeps, afterMs: number) {
    this.#deps = deps;
    this.#afterMs = afterMs;
  }

  /** Proves only what the API server says of this very lease; everything else is asked again after a while. */
  async round(now: number, signal?: AbortSignal): Promise<void> {
    const { book } = this.#deps;
    const unseen = book.unseen();
    this.#unseen = new Map(unseen.map(({ metadata: { uid } }) => [uid, this.#unseen.get(uid) ?? now]));
    const due = unseen.filter(({ metadata: { uid } }) => now - (this.#unseen.get(uid) ?? now) >= this.#afterMs);
    for (const { metadata } of due.slice(0, MAX_CHECKS_PER_ROUND)) {
      if (signal?.aborted) return;
      this.#unseen.delete(metadata.uid);
      if (await this.#isGone(metadata, signal)) book.forget(metadata.name, metadata.uid);
    }
  }

  async #isGone({ name, uid }: LeaseRecord['metadata'], signal: AbortSignal | undefined): Promise<boolean> {
    try {
      const lease = await this.#deps.client.get(ADDRESS_LEASES, { name }, signal === undefined ? {} : { signal });
      return lease.metadata.uid !== undefined && lease.metadata.uid !== uid;
    } catch (error) {
      return isProofOfAbsence(error, ADDRESS_LEASES, name);
    }
  }
}
