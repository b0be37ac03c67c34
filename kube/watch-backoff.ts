import { type Backoff, backoff } from './backoff.js';
import type { Random } from './clock.js';
import { StatusError, TransportError } from './errors.js';

export interface WatchRetry {
  delayMs: number;
  /** The known resourceVersion is of no use any more. */
  relist: boolean;
  /** The first failure since all was well. */
  isFirstFailure: boolean;
}

/** How long a reflector waits after what kind of failure. */
export class WatchBackoff {
  readonly #unreachable;
  readonly #silent;
  readonly #expired;
  readonly #refused;
  readonly #absent;
  #failures = 0;

  constructor(random: Random) {
    // A server that restarts is back in seconds, and being refused costs it nothing: ask early and often.
    this.#unreachable = backoff({ baseMs: 150, maxMs: 5_000, factor: 1.3, random });
    // The idle limit has spaced the attempts already; a kind that never changed since the server's start may get no bookmarks.
    this.#silent = backoff({ baseMs: 150, maxMs: 150, random });
    // Once is normal after a compaction or a restart; again and again would be a storm of lists.
    this.#expired = backoff({ baseMs: 200, maxMs: 30_000, random });
    this.#refused = backoff({ baseMs: 800, maxMs: 30_000, random });
    this.#absent = backoff({ baseMs: 1_000, maxMs: 15_000, random });
  }

  /** A watch worked: the next failure is a first one again. */
  reset(): void {
    this.#failures = 0;
    for (const delays of [this.#unreachable, this.#expired, this.#refused, this.#absent]) delays.reset();
  }

  /** The kind is not there, and need not be. */
  afterNotServed(): number {
    return this.#absent.next();
  }

  afterError(error: unknown): WatchRetry {
    const first = this.#failures++ === 0;
    if (error instanceof StatusError) return { isFirstFailure: first, ...this.#afterStatus(error) };
    return { isFirstFailure: first, delayMs: this.#delaysAfter(error).next(), relist: false };
  }

  #delaysAfter(error: unknown): Backoff {
    if (!(error instanceof TransportError) || error.fault === 'malformed') return this.#refused;
    return error.fault === 'idle' ? this.#silent : this.#unreachable;
  }

  #afterStatus(error: StatusError): { delayMs: number; relist: boolean } {
    if (error.status === 410) return { delayMs: this.#expired.next(), relist: true };
    const delayMs = Math.max(this.#refused.next(), error.retryAfterMs ?? 0);
    return { delayMs, relist: error.status === 404 || error.status === 400 || isFromTheFuture(error) };
  }
}

/** etcd was restored from a backup: our resourceVersion has not happened yet. */
function isFromTheFuture(error: StatusError): boolean {
  return error.details?.causes?.some((cause) => cause.reason === 'ResourceVersionTooLarge') ?? false;
}
