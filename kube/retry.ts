import type { Random } from './clock.js';
import { StatusError, TransportError } from './errors.js';

/** The retries within one request so far. */
export interface RetryState {
  refreshed: boolean;
  resent: boolean;
}

export interface RetryContext {
  /** The request changes nothing, so it may be sent twice. */
  readOnly: boolean;
  remainingMs: number;
  random: Random;
}

export type RetryDecision = { after: number } | 'refresh' | undefined;

/** A failed connection is tried once more, because another API server may be behind the same address. */
const RESEND_UNSENT_MS = 50;

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
  // Random, so that clients do not retry together.
  const after = error.retryAfterMs * (1 + request.random() / 4);
  return after < request.remainingMs ? { after } : undefined;
}
