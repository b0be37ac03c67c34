import { type Backoff, backoff } from './backoff.js';
import type { Random } from './clock.js';
import { StatusError, TransportError } from './errors.js';

export interface WatchRetry {
  delayMs: number;
  /** The known resourceVersion can no longer be used. */
  relist: boolean;
  /** True for the first failure since a watch worked. */
  isFirstFailure: boolean;
}

/** The delays of a reflector, by kind of failure. */
export class WatchBackoff {
  readonly #unreachable;
  readonly #silent;
  readonly #expired;
  readonly #refused;
  readonly #absent;
  #failures = 0;

  constructor(random: Random) {
    // A server restarts within seconds, and refused connections cost it nothing: retry early and often.
    this.#unreachable = backoff({ baseMs: 150, maxMs: 5_000, factor: 1.3, random });
    // The idle limit already separates the attempts; a kind without changes since the server's start may get no bookmarks.
    this.#silent = backoff({ baseMs: 150, maxMs: 150, random });
    // One relist is normal after a compaction or a restart; repeated relists must be slow.
    this.#expired = backoff({ baseMs: 200, maxMs: 30_000, random });
    this.#refused = backoff({ baseMs: 800, maxMs: 30_000, random });
    this.#absent = backoff({ baseMs: 1_000, maxMs: 15_000, random });
  }

  /** Called when a watch worked: the next failure counts as the first. */
  reset(): void {
    this.#failures = 0;
    for (const delays of [this.#unreachable, this.#expired, this.#refused, this.#absent]) delays.reset();
  }

  /** Returns the delay if an optional kind is not served. */
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

/** True after etcd was restored from a backup: our resourceVersion is newer than its state. */
function isFromTheFuture(error: StatusError): boolean {
  return error.details?.causes?.some((cause) => cause.reason === 'ResourceVersionTooLarge') ?? false;
}
