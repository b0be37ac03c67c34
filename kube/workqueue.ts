import { backoffDelay } from './retry.js';
import type { Clock, Random } from './clock.js';
import { type KubeMetrics, silentMetrics } from './metrics.js';
import { TimeSlice } from './run-in-slices.js';
import { WorkQueueLane } from './workqueue-lane.js';

/**
 * Keys of changes have normal priority, and keys of all objects, when a leader begins, low priority. A key that waits with low priority is raised
 * by a change.
 */
export type Priority = 'normal' | 'low';

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
/** After so many keys of normal priority, one of low priority is next: otherwise these could wait forever. */
const NORMAL_IN_A_ROW = 3;

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
 *
 * Keys of normal priority come before those of low priority, which get a quarter of the turns.
 */
export class WorkQueue {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #delays: { baseMs: number; maxMs: number; random: Random };
  readonly #metrics: KubeMetrics;
  readonly #groupOf: (key: string) => string;
  readonly #maxPerGroup: number;
  readonly #lanes: Readonly<Record<Priority, WorkQueueLane>>;
  /** Keys of normal priority that were taken while others of low priority waited. */
  #normalInARow = 0;
  /** How many keys of each group are being processed. */
  readonly #workersOf = new Map<string, number>();
  #length = 0;
  /** The keys that workers have, with their groups. */
  readonly #processing = new Map<string, string>();
  /** Keys that are being processed and will be queued again. */
  readonly #again = new Map<string, Priority>();
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
    const mayHaveWorker = (group: string) => this.#mayHaveWorker(group);
    this.#lanes = { normal: new WorkQueueLane(mayHaveWorker), low: new WorkQueueLane(mayHaveWorker) };
  }

  /** Keys that wait for a free worker. */
  get length(): number {
    return this.#length;
  }

  add(key: string, priority: Priority = 'normal'): void {
    if (this.#shuttingDown) return;
    if (!this.#processing.has(key)) this.#push(key, priority);
    else if (this.#again.get(key) !== 'normal') this.#again.set(key, priority);
  }

  /**
   * Adds many keys, each once. Workers, timers and I/O run in between if it takes long. It ends early when the queue is shut down.
   * @param keys undefined where the search for the next key takes long
   */
  async addAll(keys: Iterable<string | undefined>, priority: Priority = 'normal'): Promise<void> {
    const slice = new TimeSlice(this.#clock);
    // a key may be finished before it comes again
    const added = new Set<string>();
    for (const key of keys) {
      if (this.#shuttingDown) return;
      if (key !== undefined && !added.has(key)) {
        added.add(key);
        this.add(key, priority);
      }
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

  /** Adds the key after a failure. The delay doubles with each failure until `forget`. A longer `requestedMs` replaces it, and doubles nothing. */
  addRateLimited(key: string, requestedMs = 0): void {
    const failures = this.retries(key);
    const delayMs = backoffDelay(this.#delays, failures);
    if (delayMs >= requestedMs) this.#failures.set(key, failures + 1);
    this.addAfter(key, Math.max(delayMs, requestedMs));
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
    if (group !== undefined) this.#setWorkers(group, (this.#workersOf.get(group) ?? 0) - 1);
    const again = this.#again.get(key);
    if (again !== undefined && this.#again.delete(key)) this.#push(key, again);
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

  #push(key: string, priority: Priority): void {
    const { normal, low } = this.#lanes;
    if (normal.has(key) || (priority === 'low' && low.has(key))) return;
    if (!low.delete(key)) this.#length++;
    this.#lanes[priority].add(key, this.#groupOf(key));
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
    const next = this.#nextLane().take();
    if (next === undefined) return undefined;
    const { group, key } = next;
    this.#setWorkers(group, (this.#workersOf.get(group) ?? 0) + 1);
    this.#length--;
    this.#processing.set(key, group);
    this.#metrics.queueDepth(this.#name, this.length);
    return key;
  }

  #nextLane(): WorkQueueLane {
    const { normal, low } = this.#lanes;
    const isNormal = normal.isReady && (!low.isReady || this.#normalInARow < NORMAL_IN_A_ROW);
    this.#normalInARow = isNormal && low.isReady ? this.#normalInARow + 1 : 0;
    return isNormal ? normal : low;
  }

  #mayHaveWorker(group: string): boolean {
    return group === NO_TENANT || (this.#workersOf.get(group) ?? 0) < this.#maxPerGroup;
  }

  #setWorkers(group: string, workers: number): void {
    if (workers > 0) this.#workersOf.set(group, workers);
    else this.#workersOf.delete(group);
    for (const lane of [this.#lanes.normal, this.#lanes.low]) lane.update(group);
  }

  #settle(): void {
    if (!this.#shuttingDown || this.length > 0 || this.#processing.size > 0) return;
    for (const drained of this.#drained.splice(0)) drained();
  }
}

function namespaceOf(key: string): string {
  return key.slice(0, Math.max(key.indexOf('/'), 0));
}
