import { isProofOfAbsence } from '../../kube/absence.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { LeaseBook } from '../leases/lease-book.js';

export interface UnseenLeaseDeps {
  readonly book: Pick<LeaseBook, 'unseen' | 'forget'>;
  readonly client: Pick<Client, 'get'>;
}

/** Each check costs one request. */
const MAX_CHECKS_PER_ROUND = 50;

/**
 * Finds leases that only the lease book knows: this process created them, and they were deleted before the watch showed them. Otherwise
 * their addresses would stay occupied, or count as addresses of a claim that has none.
 */
export class UnseenLeaseCheck {
  readonly #deps: UnseenLeaseDeps;
  readonly #afterMs: number;
  /** When each unseen lease was first found, by UID, in milliseconds. */
  #unseen = new Map<string, number>();

  /** @param afterMs how long the watch may lag behind */
  constructor(deps: UnseenLeaseDeps, afterMs: number) {
    this.#deps = deps;
    this.#afterMs = afterMs;
  }

  /** Checks the leases that are due. Only a definite answer about this lease removes it; all others are checked again later. */
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
