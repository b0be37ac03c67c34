import type { Clock } from '../kube/clock.js';
import { TokenBuckets } from '../kube/token-buckets.js';

/** A review that was not sent, because its client or all clients together send too many. */
export class TooManyReviewsError extends Error {
  override readonly name = 'TooManyReviewsError';
}

/** Two reviews a minute are enough for a scraper. A client that sends one invalid token after the other reaches this. */
const PER_CLIENT = { burst: 10, refillMs: 1_000, maxKeys: 1_024 };
/** All clients together, in requests to the API server. */
const IN_ALL = { burst: 40, refillMs: 100, maxKeys: 1 };
const MAX_RUNNING_PER_CLIENT = 2;

/** Bounds the reviews that a group of clients can cause: how many at the same time and how many per second, for each client and for all of them. */
export class ReviewLimits {
  readonly #perClient: TokenBuckets;
  readonly #inAll: TokenBuckets;
  readonly #maxRunning: number;
  readonly #running = new Map<string, number>();
  #runningInAll = 0;

  /** @param maxRunning reviews of all clients at the same time */
  constructor(clock: Pick<Clock, 'now'>, maxRunning: number) {
    this.#maxRunning = maxRunning;
    this.#perClient = new TokenBuckets({ clock, ...PER_CLIENT });
    this.#inAll = new TokenBuckets({ clock, ...IN_ALL });
  }

  /**
   * @param client its address, or the hash of its token
   * @throws {TooManyReviewsError}; and what the review throws
   */
  async run<T>(client: string, review: () => Promise<T>): Promise<T> {
    const own = this.#running.get(client) ?? 0;
    if (own >= MAX_RUNNING_PER_CLIENT || this.#runningInAll >= this.#maxRunning)
      throw new TooManyReviewsError('too many reviews at the same time');
    // the client's own bucket first: a client that has emptied it takes nothing from the others
    if (!this.#perClient.tryTake(client) || !this.#inAll.tryTake(''))
      throw new TooManyReviewsError('too many tokens to review');
    this.#runningInAll++;
    this.#running.set(client, own + 1);
    try {
      return await review();
    } finally {
      this.#runningInAll--;
      const left = (this.#running.get(client) ?? 1) - 1;
      if (left > 0) this.#running.set(client, left);
      else this.#running.delete(client);
    }
  }
}
