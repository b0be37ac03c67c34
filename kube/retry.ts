import type { Random } from './clock.js';
import { StatusError, TransportError } from './errors.js';

/** What has been retried already within one request. */
export interface RetryState {
  refreshed: boolean;
  resent: boolean;
}

export interface RetryContext {
  /** The request changes nothing, so that sending it twice is harmless. */
  readOnly: boolean;
  remainingMs: number;
  random: Random;
}

export type RetryDecision = { after: number } | 'refresh' | undefined;

/** A connection that could not be made is tried once more, as another API server may stand behind the same address. */
const RESEND_UNSENT_MS = 50;

/**
 * Whether and when the transport itself sends a request again. A write is sent twice only where the server said that it has not
 * acted (429, 401) or cannot have seen it.
 */
export function planRetry(error: unknown, request: RetryContext, attempts: RetryState): RetryDecision {
  if (error instanceof StatusError) return planStatusRetry(error, request, attempts);
  if (!(error instanceof TransportError) || attempts.resent) return undefined;
  if (error.fault === 'unsent') return { after: RESEND_UNSENT_MS };
  // Most often a kept-alive connection that the server closed at the moment we used it.
  if (error.fault === 'broken' && request.readOnly) return { after: 0 };
  return undefined;
}

function planStatusRetry(error: StatusError, request: RetryContext, attempts: RetryState): RetryDecision {
  if (error.status === 401) return attempts.refreshed ? undefined : 'refresh';
  const mayRepeat = error.status === 429 || (error.status === 503 && request.readOnly);
  if (!mayRepeat || error.retryAfterMs === undefined) return undefined;
  // Spread, so that clients that were refused together do not come back together.
  const after = error.retryAfterMs * (1 + request.random() / 4);
  return after < request.remainingMs ? { after } : undefined;
}
