import type { AddressPool } from '../../api/address-pool.js';
import { MAX_ADD_TIMEOUT_MS } from '../../process/agent-config.js';

/** How long the API server may work on a request that its client has given up (its flag --request-timeout). */
const ABANDONED_WRITE_MS = 60_000;

/**
 * Tells how long a derived pool that is being deleted must stay, so that no pool of its name serves another address space too early. A new leader knows only the
 * pool itself, so the delay starts again then.
 */
export class MoveFence {
  /** This long after the deletion of a pool, every CNI ADD that read it before has written its last lease. */
  readonly durationMs: number;
  readonly #elapsed: () => number;
  /** By name of the pool. */
  readonly #seen = new Map<string, { uid: string | undefined; at: number }>();

  /**
   * @param elapsed milliseconds of a monotonic clock
   * @param maxStalenessMs an agent leases from a pool that it has read from the API server at most this long ago
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
