export interface WeightLimits {
  /** Of all work that runs at once. */
  readonly max: number;
  /** Of the work of one key: less than {@link max}, so that others can start while it lasts. Heavier work counts as this. */
  readonly maxPerKey: number;
  /** Of the work of one key that waits. */
  readonly maxWaitingPerKey: number;
}

/** Work that was not started, because too much work of its key waits already. */
export class WeightLimitError extends Error {
  override readonly name = 'WeightLimitError';
}

interface Work {
  readonly weight: number;
  readonly start: () => void;
}

/** Bounds the total weight of work that runs at once. Keys take turns; the work of one key starts in the order in which it came. */
export class WeightLimit {
  readonly #limits: WeightLimits;
  #free: number;
  readonly #running = new Map<string, number>();
  /** The key whose turn is next comes first. */
  readonly #waiting = new Map<string, Work[]>();

  constructor(limits: WeightLimits) {
    this.#limits = limits;
    this.#free = limits.max;
  }

  /** @throws {WeightLimitError} if the work was not started; and what the work throws */
  async run<T>(key: string, weight: number, work: () => Promise<T>): Promise<T> {
    const counted = Math.min(weight, this.#limits.maxPerKey);
    await this.#turn(key, counted);
    try {
      return await work();
    } finally {
      this.#free += counted;
      const left = this.#runningOf(key) - counted;
      if (left > 0) this.#running.set(key, left);
      else this.#running.delete(key);
      this.#startWaiting();
    }
  }

  #turn(key: string, weight: number): Promise<void> {
    const waiting = this.#waiting.get(key) ?? [];
    const total = waiting.reduce((sum, work) => sum + work.weight, weight);
    if (waiting.length > 0 && total > this.#limits.maxWaitingPerKey)
      return Promise.reject(new WeightLimitError(`too much work of ${JSON.stringify(key)} waits already`));
    return new Promise((start) => {
      waiting.push({ weight, start });
      this.#waiting.set(key, waiting);
      this.#startWaiting();
    });
  }

  #startWaiting(): void {
    for (let next = this.#next(); next !== undefined && next.work.weight <= this.#free; next = this.#next()) {
      const { key, work, others } = next;
      this.#waiting.delete(key);
      if (others.length > 0) this.#waiting.set(key, others);
      this.#free -= work.weight;
      this.#running.set(key, this.#runningOf(key) + work.weight);
      work.start();
    }
  }

  /** The first work of the first key that may run more. If it does not fit yet, lighter work does not overtake it. */
  #next(): { key: string; work: Work; others: Work[] } | undefined {
    for (const [key, [work, ...others]] of this.#waiting) {
      if (work !== undefined && this.#runningOf(key) + work.weight <= this.#limits.maxPerKey)
        return { key, work, others };
    }
    return undefined;
  }

  #runningOf(key: string): number {
    return this.#running.get(key) ?? 0;
  }
}
