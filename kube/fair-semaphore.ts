import type { Clock } from './clock.js';

interface QueuedItems<T> {
  readonly items: Set<T>;
  weight: number;
}

/** Items of several keys. Keys take turns; the items of one key leave in the order in which they were added. */
export class FairQueue<T extends { readonly weight: number }> {
  readonly #maxWeight: number;
  /** The key whose turn is next comes first. */
  readonly #queued = new Map<string, QueuedItems<T>>();

  /** @param maxWeight the maximum weight of the items of one key; a key may always have one item */
  constructor(maxWeight: number) {
    this.#maxWeight = maxWeight;
  }

  /** @returns false if the key has too many items */
  add(key: string, item: T): boolean {
    const queued = this.#queued.get(key) ?? { items: new Set(), weight: 0 };
    const weight = queued.weight + item.weight;
    if (queued.items.size > 0 && weight > this.#maxWeight) return false;
    queued.items.add(item);
    queued.weight = weight;
    this.#queued.set(key, queued);
    return true;
  }

  /** Removes the next item that may be taken, of the first key whose next item may. That key then goes behind all others. */
  take(mayTake: (key: string, item: T) => boolean): { key: string; item: T } | undefined {
    for (const [key, queued] of this.#queued) {
      const [item] = queued.items;
      if (item === undefined || !mayTake(key, item)) continue;
      this.delete(key, item);
      if (this.#queued.delete(key)) this.#queued.set(key, queued);
      return { key, item };
    }
    return undefined;
  }

  delete(key: string, item: T): void {
    const queued = this.#queued.get(key);
    if (queued?.items.delete(item) !== true) return;
    queued.weight -= item.weight;
    if (queued.items.size === 0) this.#queued.delete(key);
  }

  /** Returns the weight of the items of one key. */
  weightOf(key: string): number {
    return this.#queued.get(key)?.weight ?? 0;
  }

  /** Returns the key whose items have the largest weight. */
  heaviestKey(): string | undefined {
    let heaviest: string | undefined;
    for (const key of this.#queued.keys()) {
      if (heaviest === undefined || this.weightOf(key) > this.weightOf(heaviest)) heaviest = key;
    }
    return heaviest;
  }
}

export interface FairSemaphoreLimits {
  /** The maximum weight of all work that runs at the same time. */
  readonly max: number;
  /** The maximum for one key. Less than {@link max}, so that other keys can start meanwhile. Heavier work counts as this. */
  readonly maxPerKey: number;
  /** The maximum weight of the queued work of one key. */
  readonly maxQueuedPerKey: number;
}

/** Work that was not started, because too much other work is queued or its time was over. */
export class FairSemaphoreError extends Error {
  override readonly name = 'FairSemaphoreError';
}

/** How long work may wait for its start. */
interface WaitLimit {
  readonly ms: number;
  readonly clock: Pick<Clock, 'setTimer'>;
}

interface WaitingWork {
  readonly weight: number;
  readonly start: () => void;
}

/** Limits the total weight of work that runs at the same time. Keys take turns; the work of one key starts in order. */
export class FairSemaphore {
  readonly #limits: FairSemaphoreLimits;
  readonly #subject: (key: string) => string;
  readonly #waiting: FairQueue<WaitingWork>;
  readonly #running = new Map<string, number>();
  #free: number;

  /** @param subject describes the work of a key, for errors: `live reads of namespace a` */
  constructor(limits: FairSemaphoreLimits, subject: (key: string) => string) {
    this.#limits = limits;
    this.#subject = subject;
    this.#waiting = new FairQueue(limits.maxQueuedPerKey);
    this.#free = limits.max;
  }

  /** @throws {FairSemaphoreError} if the work was not started; and what the work throws */
  async run<T>(key: string, weight: number, work: () => Promise<T>, wait?: WaitLimit): Promise<T> {
    const counted = Math.min(weight, this.#limits.maxPerKey);
    await this.#waitForTurn(key, counted, wait);
    try {
      return await work();
    } finally {
      this.#count(key, -counted);
      this.#startWaiting();
    }
  }

  #waitForTurn(key: string, weight: number, wait: WaitLimit | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const refuse = (message: string) => reject(new FairSemaphoreError(message));
      const start = () => {
        cancel?.();
        resolve();
      };
      const work = { weight, start };
      if (!this.#waiting.add(key, work)) {
        refuse(`too many ${this.#subject(key)} are queued`);
        return;
      }
      const cancel = wait?.clock.setTimer(wait.ms, () => {
        this.#waiting.delete(key, work);
        refuse(`earlier ${this.#subject(key)} took too long`);
      });
      this.#startWaiting();
    });
  }

  /** Starts the first work of each key that may run more. Lighter work does not overtake the next work if that does not fit yet. */
  #startWaiting(): void {
    let isFull = false;
    const mayStart = (key: string, { weight }: WaitingWork) => {
      if (isFull || this.#runningOf(key) + weight > this.#limits.maxPerKey) return false;
      isFull = weight > this.#free;
      return !isFull;
    };
    while (this.#free > 0) {
      const next = this.#waiting.take(mayStart);
      if (next === undefined) return;
      this.#count(next.key, next.item.weight);
      next.item.start();
    }
  }

  #count(key: string, weight: number): void {
    this.#free -= weight;
    const running = this.#runningOf(key) + weight;
    if (running > 0) this.#running.set(key, running);
    else this.#running.delete(key);
  }

  #runningOf(key: string): number {
    return this.#running.get(key) ?? 0;
  }
}
