import type { Clock } from './clock.js';
import { setMostRecent } from './informers/cache.js';

interface TokenBucketOptions {
  readonly clock: Pick<Clock, 'now'>;
  /** Tokens of a full bucket. */
  readonly burst: number;
  /** The time after which a bucket gets one more token. */
  readonly refillMs: number;
  /** Beyond this number of keys, the least recently used bucket is dropped. */
  readonly maxKeys: number;
}

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** Rate limits by key: one token bucket for each. */
export class TokenBuckets {
  readonly #options: TokenBucketOptions;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: TokenBucketOptions) {
    this.#options = options;
  }

  /** @returns false if the key has no tokens left */
  tryTake(key: string): boolean {
    const { clock, burst, refillMs, maxKeys } = this.#options;
    const now = clock.now();
    const bucket = this.#buckets.get(key) ?? { tokens: burst, filledAt: now };
    const refilled = Math.floor((now - bucket.filledAt) / refillMs);
    bucket.tokens = Math.min(burst, bucket.tokens + refilled);
    bucket.filledAt += refilled * refillMs;
    setMostRecent(this.#buckets, key, bucket, maxKeys);
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }
}
