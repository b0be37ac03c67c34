import { backoffDelay } from './backoff.js';
import type { Clock, Random } from './clock.js';
import { type KubeMetrics, silentMetrics } from './metrics.js';

export interface WorkQueueOptions {
  /** For metrics. */
  name?: string;
  clock: Clock;
  random: Random;
  /** First delay of a failing key. Default 50. */
  baseMs?: number;
  /** Default 60 000. */
  maxMs?: number;
  metrics?: KubeMetrics;
}

interface DelayedKey {
  due: number;
  cancel: () => void;
}

/**
 * A queue of keys with the guarantees of client-go's workqueue. A waiting key is not queued twice. One worker at a time processes a key.
 * A key that is added while it is processed is processed again.
 */
export class WorkQueue {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #delays: { baseMs: number; maxMs: number; random: Random };
  readonly #metrics: KubeMetrics;
  /** FIFO with a moving head, because shifting an array of many thousands of keys is slow. */
  #queue: string[] = [];
  #head = 0;
  /** Keys that wait for a worker, including those that are being processed and will be queued again. */
  readonly #dirty = new Set<string>();
  readonly #processing = new Set<string>();
  readonly #delayed = new Map<string, DelayedKey>();
  readonly #failures = new Map<string, number>();
  #takers: ((key: string | undefined) => void)[] = [];
  #drained: (() => void)[] = [];
  #shuttingDown = false;

  constructor(options: WorkQueueOptions) {
    this.#name = options.name ?? '';
    this.#clock = options.clock;
    this.#delays = { baseMs: options.baseMs ?? 50, maxMs: options.maxMs ?? 60_000, random: options.random };
    this.#metrics = options.metrics ?? silentMetrics;
  }

  /** Keys that wait for a free worker. */
  get length(): number {
    return this.#queue.length - this.#head;
  }

  add(key: string): void {
    if (this.#shuttingDown || this.#dirty.has(key)) return;
    this.#dirty.add(key);
    if (!this.#processing.has(key)) this.#push(key);
  }

  /** Adds the key after a delay. If it is already delayed, the earlier time is used. */
  addAfter(key: string, ms: number): void {
    if (this.#shuttingDown) return;
    if (ms <= 0) {
      this.add(key);
      return;
    }
    const due = this.#clock.now() + ms;
    const waiting = this.#delayed.get(key);
    if (waiting !== undefined && waiting.due <= due) return;
    waiting?.cancel();
    const cancel = this.#clock.setTimer(ms, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { due, cancel });
  }

  /** Adds the key after a failure. The delay doubles with each failure until `forget`. */
  addRateLimited(key: string): void {
    const failures = this.retries(key);
    this.#failures.set(key, failures + 1);
    this.addAfter(key, backoffDelay(this.#delays, failures));
  }

  /** Resets the failures of a key. It stays queued. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** Returns the number of failures since the last `forget`. */
  retries(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** Returns the next key; the caller must call `done` for it. Undefined when the queue is shut down and empty. */
  get(): Promise<string | undefined> {
    const key = this.#shift();
    if (key !== undefined) return Promise.resolve(key);
    if (this.#shuttingDown) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  /** The worker has finished with the key. */
  done(key: string): void {
    this.#processing.delete(key);
    if (this.#dirty.has(key)) this.#push(key);
    this.#settle();
  }

  /** Accepts no more keys and drops delayed ones. Waiting keys are still returned by `get`. */
  shutDown(): void {
    this.#shuttingDown = true;
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    // Takers wait only while the queue is empty. A key that is processed and queued again goes to the worker that has it.
    for (const taker of this.#takers.splice(0)) taker(undefined);
    this.#settle();
  }

  /** Shuts down, and resolves when no key is waiting or being processed. */
  drain(): Promise<void> {
    const drained = new Promise<void>((resolve) => this.#drained.push(resolve));
    this.shutDown();
    return drained;
  }

  #push(key: string): void {
    this.#queue.push(key);
    const taker = this.#takers.shift();
    if (taker !== undefined) taker(this.#shift());
    else this.#metrics.queueDepth(this.#name, this.length);
  }

  #shift(): string | undefined {
    const key = this.#queue[this.#head];
    if (key === undefined) return undefined;
    this.#head++;
    if (this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    this.#dirty.delete(key);
    this.#processing.add(key);
    this.#metrics.queueDepth(this.#name, this.length);
    return key;
  }

  #settle(): void {
    if (!this.#shuttingDown || this.length > 0 || this.#processing.size > 0) return;
    for (const drained of this.#drained.splice(0)) drained();
  }
}
