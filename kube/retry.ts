import type { Random } from './clock.js';
import { StatusError, TransportError } from './errors.js';

interface BackoffOptions {
  baseMs: number;
  maxMs: number;
  random: Random;
  /** Default 2. With 1.3, a delay is about a third of the time already waited, so that the end of an outage is noticed early. */
  factor?: number;
}

/** Delays that grow while something keeps failing. */
export interface Backoff {
  next(): number;
  reset(): void;
}

/** Exponential backoff. Jitter takes away up to half of each delay, so that clients spread and none retries at once. */
export function backoff(options: BackoffOptions): Backoff {
  let failures = 0;
  return {
    next: () => backoffDelay(options, failures++),
    reset: () => {
      failures = 0;
    },
  };
}

/** Returns the delay after failure number `failures`, counted from 0. */
export function backoffDelay(options: BackoffOptions, failures: number): number {
  const { baseMs, maxMs, random, factor = 2 } = options;
  const ceiling = Math.min(maxMs, baseMs * factor ** failures);
  return (ceiling * (1 + random())) / 2;
}

interface WatchRetry {
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

/** The retries within one request so far. */
export interface RetryState {
  refreshed: boolean;
  resent: boolean;
  /** How often the server asked to try again. */
  refusals: number;
}

interface RetryContext {
  /** The request changes nothing, so it may be sent twice. */
  readOnly: boolean;
  remainingMs: number;
  random: Random;
}

export type RetryDecision = { after: number } | 'refresh' | undefined;

/** A failed connection is tried once more, because another API server may be behind the same address. */
const RESEND_UNSENT_MS = 50;
/** The least delay after a refusal, because a server or proxy may request 0 seconds again and again. */
const REFUSED = { baseMs: 100, maxMs: 1_000 };

/**
 * Decides whether and when the transport retries a request. A write is retried only if the server did not process it (429, 401) or cannot
 * have received it.
 */
export function planRetry(error: unknown, request: RetryContext, attempts: RetryState): RetryDecision {
  if (error instanceof StatusError) return planStatusRetry(error, request, attempts);
  if (!(error instanceof TransportError) || attempts.resent) return undefined;
  if (error.fault === 'unsent') return { after: RESEND_UNSENT_MS };
  // Usually a kept-alive connection that the server closed when we used it.
  if (error.fault === 'broken' && request.readOnly) return { after: 0 };
  return undefined;
}

function planStatusRetry(error: StatusError, request: RetryContext, attempts: RetryState): RetryDecision {
  if (error.status === 401) return attempts.refreshed ? undefined : 'refresh';
  const mayRepeat = error.status === 429 || (error.status === 503 && request.readOnly);
  if (!mayRepeat || error.retryAfterMs === undefined) return undefined;
  const { random } = request;
  // Random, so that clients do not retry together.
  const requestedMs = error.retryAfterMs * (1 + random() / 4);
  const after = Math.max(requestedMs, backoffDelay({ ...REFUSED, random }, attempts.refusals));
  return after < request.remainingMs ? { after } : undefined;
}
