import type { AddressPool } from '../../api/address-pool.js';
import { MAX_ADD_TIMEOUT_MS } from '../../process/agent-config.js';

/** How long an agent may use a pool that is gone: a watch that hears nothing for this long is closed. */
const STALE_POOL_MS = 150_000;
/** How long the API server may work on a request whose sender has given up (its flag --request-timeout). */
const ABANDONED_WRITE_MS = 60_000;

/** A CNI ADD that read a pool before it was deleted has written its last lease this long after the deletion. */
export const FENCE_MS = STALE_POOL_MS + MAX_ADD_TIMEOUT_MS + ABANDONED_WRITE_MS;

/**
 * Says how long a derived pool that is being deleted must stay, so that no pool of its name serves another address space too early.
 * The pool itself is what a new leader knows of it: the delay starts again then.
 */
export class MoveFence {
  readonly #elapsed: () => number;
  /** By name of the pool. */
  readonly #seen = new Map<string, { uid: string | undefined; at: number }>();

  /** @param elapsed milliseconds of a monotonic clock */
  constructor(elapsed: () => number) {
    this.#elapsed = elapsed;
  }

  /** @param pool that is being deleted; the delay starts with the first call */
  leftMs({ metadata: { name, uid } }: Pick<AddressPool, 'metadata'>): number {
    const now = this.#elapsed();
    const known = this.#seen.get(name);
    if (known !== undefined && known.uid === uid) return Math.max(0, known.at + FENCE_MS - now);
    this.#seen.set(name, { uid, at: now });
    return FENCE_MS;
  }

  forget(name: string): void {
    this.#seen.delete(name);
  }
}
