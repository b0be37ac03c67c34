import type { AddressPool } from '../../api/address-pool.js';
import { MAX_ADD_TIMEOUT_MS } from '../../process/agent-config.js';

/** How long the API server may work on a request whose sender has given up (its flag --request-timeout). */
const ABANDONED_WRITE_MS = 60_000;

/**
 * Says how long a derived pool that is being deleted must stay, so that no pool of its name serves another address space too early.
 * The pool itself is what a new leader knows of it: the delay starts again then.
 */
export class MoveFence {
  /** A CNI ADD that read a pool before it was deleted has written its last lease so long after the deletion. */
  readonly durationMs: number;
  readonly #elapsed: () => number;
  /** By name of the pool. */
  readonly #seen = new Map<string, { uid: string | undefined; at: number }>();

  /**
   * @param elapsed milliseconds of a monotonic clock
   * @param maxStalenessMs an agent whose watch was silent for longer reads the pool from the API server before it leases from it
   */
  constructor(elapsed: () => number, maxStalenessMs: number) {
    this.#elapsed = elapsed;
    this.durationMs = maxStalenessMs + MAX_ADD_TIMEOUT_MS + ABANDONED_WRITE_MS;
  }

  /** @param pool that is being deleted; the delay starts with the first call */
  remainingMs({ metadata: { name, uid } }: Pick<AddressPool, 'metadata'>): number {
    const now = this.#elapsed();
    const known = this.#seen.get(name);
    if (known !== undefined && known.uid === uid) return Math.max(0, known.at + this.durationMs - now);
    this.#seen.set(name, { uid, at: now });
    return this.durationMs;
  }

  forget(name: string): void {
    this.#seen.delete(name);
  }
}
