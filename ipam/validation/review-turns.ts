import { FairSemaphore } from '../../kube/fair-semaphore.js';
import type { Clock } from '../../kube/clock.js';

/** The API server waits 5 s for an answer. */
const MAX_WAIT_MS = 3_000;
const MAX_QUEUED = 64;

/**
 * Runs reviews that cost CPU time, of which tenants can cause as many as they want, also by dry runs. They get half of the time at most, because the leader
 * works in the same process. Namespaces take turns.
 */
export class ReviewTurns {
  readonly #clock: Pick<Clock, 'now' | 'setTimer'>;
  readonly #turns = new FairSemaphore(
    { max: 1, maxPerKey: 1, maxQueuedPerKey: MAX_QUEUED },
    (namespace) => `reviews of namespace ${namespace}`,
  );

  constructor(clock: Pick<Clock, 'now' | 'setTimer'>) {
    this.#clock = clock;
  }

  /** @throws {FairSemaphoreError} if there are too many; and what the review throws */
  run<T>(namespace: string, review: () => T): Promise<T> {
    const clock = this.#clock;
    return new Promise((resolve, reject) => {
      const work = async () => {
        const began = clock.now();
        try {
          resolve(review());
        } catch (error) {
          reject(error instanceof Error ? error : new TypeError(String(error)));
        }
        const tookMs = clock.now() - began;
        if (tookMs > 0) await new Promise<void>((over) => clock.setTimer(tookMs, over));
      };
      this.#turns.run(namespace, 1, work, { ms: MAX_WAIT_MS, clock }).catch(reject);
    });
  }
}
