import { backoffDelay } from './retry.js';
import type { Clock, Random } from './clock.js';
import { type KubeMetrics, silentMetrics } from './metrics.js';
import { TimeSlice } from './run-in-slices.js';

interface WorkQueueOptions {
  /** For metrics. */
  name?: string;
  clock: Clock;
  random: Random;
  /** First delay of a failing key. Default 50. */
  baseMs?: number;
  /** Default 60 000. */
  maxMs?: number;
  metrics?: KubeMetrics;
  /** The group of a key. Default: its namespace; all cluster-scoped keys are one group. */
  groupOf?: (key: string) => string;
  /** The number of workers. Keys of one namespace occupy at most half of them. Default: no limit. */
  workers?: number;
}

/** Cluster-scoped keys belong to no tenant. */
const NO_TENANT = '';

interface DelayedKey {
  due: number;
  cancel: () => void;
}

/**
 * A queue of keys with the guarantees of client-go's workqueue. A waiting key is not queued twice. One worker at a time processes a key.
 * A key that is added while it is processed is processed again.
 *
 * Groups of keys take turns, so that the keys of one tenant, retries too, delay those of another one by one key at most. By default, a group is a namespace.
 * A group has at most half of the workers, because each of its syncs may take long.
 */
export class WorkQueue {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #delays: { baseMs: number; maxMs: number; random: Random };
  readonly #metrics: KubeMetrics;
  readonly #groupOf: (key: string) => string;
  readonly #maxPerGroup: number;
  /** The waiting keys of each group that has some. */
  readonly #groups = new Map<string, Fifo<string>>();
  /** The groups that wait and may have another worker. The one whose turn is next comes first. */
  readonly #turns = new Fifo<string>();
  /** How many keys of each group are being processed. */
  readonly #workersOf = new Map<string, number>();
  #length = 0;
  /** Keys that wait for a worker, including those that are being processed and will be queued again. */
  readonly #dirty = new Set<string>();
  /** The keys that workers have, with their groups. */
  readonly #processing = new Map<string, string>();
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
    this.#groupOf = options.groupOf ?? namespaceOf;
    this.#maxPerGroup = Math.ceil((options.workers ?? Infinity) / 2);
  }

  /** Keys that wait for a free worker. */
  get length(): number {
    return this.#length;
  }

  add(key: string): void {
    if (this.#shuttingDown || this.#dirty.has(key)) return;
    this.#dirty.add(key);
    if (!this.#processing.has(key)) this.#push(key);
  }

  /** Adds many keys, each once. Workers, timers and I/O run in between if it takes long. It ends early when the queue is shut down. */
  async addAll(keys: Iterable<string>): Promise<void> {
    const slice = new TimeSlice(this.#clock);
    // a key may be finished before it comes again
    const added = new Set<string>();
    for (const key of keys) {
      if (this.#shuttingDown) return;
      if (!added.has(key)) this.add(key);
      added.add(key);
      if (slice.isOver) await slice.renew();
    }
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
    const group = this.#processing.get(key);
    this.#processing.delete(key);
    if (group !== undefined) this.#freeWorker(group);
    if (this.#dirty.has(key)) this.#push(key);
    this.#serve();
    this.#settle();
  }

  /** Accepts no more keys and drops delayed ones. Waiting keys are still returned by `get`. */
  shutDown(): void {
    this.#shuttingDown = true;
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    // a key that still waits goes to a worker of its group, which has the most that it may have, or to the worker that processes it
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
    const group = this.#groupOf(key);
    let keys = this.#groups.get(group);
    if (keys === undefined) {
      keys = new Fifo();
      this.#groups.set(group, keys);
      if (this.#mayHaveWorker(group)) this.#turns.push(group);
    }
    keys.push(key);
    this.#length++;
    this.#serve();
    this.#metrics.queueDepth(this.#name, this.length);
  }

  /** Gives the next key to a worker that waits. */
  #serve(): void {
    if (this.#takers.length === 0) return;
    const key = this.#shift();
    if (key !== undefined) this.#takers.shift()?.(key);
  }

  #shift(): string | undefined {
    const group = this.#turns.shift();
    const keys = group === undefined ? undefined : this.#groups.get(group);
    const key = keys?.shift();
    if (group === undefined || keys === undefined || key === undefined) return undefined;
    this.#workersOf.set(group, (this.#workersOf.get(group) ?? 0) + 1);
    if (keys.length === 0) this.#groups.delete(group);
    else if (this.#mayHaveWorker(group)) this.#turns.push(group);
    this.#length--;
    this.#dirty.delete(key);
    this.#processing.set(key, group);
    this.#metrics.queueDepth(this.#name, this.length);
    return key;
  }

  #mayHaveWorker(group: string): boolean {
    return group === NO_TENANT || (this.#workersOf.get(group) ?? 0) < this.#maxPerGroup;
  }

  #freeWorker(group: string): void {
    const couldHaveMore = this.#mayHaveWorker(group);
    const workers = (this.#workersOf.get(group) ?? 0) - 1;
    if (workers > 0) this.#workersOf.set(group, workers);
    else this.#workersOf.delete(group);
    if (!couldHaveMore && this.#groups.has(group)) this.#turns.push(group);
  }

  #settle(): void {
    if (!this.#shuttingDown || this.length > 0 || this.#processing.size > 0) return;
    for (const drained of this.#drained.splice(0)) drained();
  }
}

function namespaceOf(key: string): string {
  return key.slice(0, Math.max(key.indexOf('/'), 0));
}

/** A queue with a moving head, because shifting an array of many thousands of elements is slow. */
class Fifo<T> {
  #elements: T[] = [];
  #head = 0;

  get length(): number {
    return this.#elements.length - this.#head;
  }

  push(element: T): void {
    this.#elements.push(element);
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const element = this.#elements[this.#head++];
    if (this.#head * 2 > this.#elements.length) {
      this.#elements = this.#elements.slice(this.#head);
      this.#head = 0;
    }
    return element;
  }
}
