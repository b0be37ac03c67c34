import type { Clock } from './clock.js';
import { setMostRecent } from './lru.js';

/** The same as client-go: 25 events about an object at once, then one in five minutes. */
const BURST = 25;
const REFILL_MS = 5 * 60_000;
/** Beyond this number of objects, the least recently used one is dropped. */
const MAX_BUCKETS = 4096;

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** A token bucket per object, so that an object with problems does not flood etcd. */
export class EventRateLimiter {
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns false if the object has no tokens left */
  tryAccept(about: string): boolean {
    const now = this.#clock.now();
    const bucket = this.#buckets.get(about) ?? { tokens: BURST, filledAt: now };
    const refilled = Math.floor((now - bucket.filledAt) / REFILL_MS);
    bucket.tokens = Math.min(BURST, bucket.tokens + refilled);
    bucket.filledAt += refilled * REFILL_MS;
    setMostRecent(this.#buckets, about, bucket, MAX_BUCKETS);
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }
}
