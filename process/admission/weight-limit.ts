/** Bounds the total weight of work that runs at once. Other work waits in the order in which it came. */
export class WeightLimit {
  readonly #max: number;
  #free: number;
  readonly #waiting: { readonly weight: number; readonly start: () => void }[] = [];

  constructor(max: number) {
    this.#max = max;
    this.#free = max;
  }

  async run<T>(weight: number, work: () => Promise<T>): Promise<T> {
    const counted = Math.min(weight, this.#max);
    await new Promise<void>((start) => {
      this.#waiting.push({ weight: counted, start });
      this.#startWaiting();
    });
    try {
      return await work();
    } finally {
      this.#free += counted;
      this.#startWaiting();
    }
  }

  #startWaiting(): void {
    for (let [next] = this.#waiting; next !== undefined && next.weight <= this.#free; [next] = this.#waiting) {
      this.#waiting.shift();
      this.#free -= next.weight;
      next.start();
    }
  }
}
