/** How many stale entries a small queue may have before it is rebuilt. */
const STALE_ENTRIES_ALLOWED = 64;

/** The vacated values, oldest first. All operations are O(1), amortised. */
export class VacatedQueue {
  readonly #limit: number;
  /** The index of each value in the queue. Entries at other indexes are stale. */
  readonly #indexes = new Map<bigint, number>();
  #queue: bigint[] = [];
  /** All entries before this index are stale. */
  #head = 0;

  /** @param limit how many values are remembered; the oldest are forgotten first */
  constructor(limit = Number.POSITIVE_INFINITY) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#indexes.size;
  }

  has(value: bigint): boolean {
    return this.#indexes.has(value);
  }

  /** Adds a value as the newest one. @returns the oldest value if it is forgotten because of the limit */
  add(value: bigint): bigint | undefined {
    this.#indexes.set(value, this.#queue.length);
    this.#queue.push(value);
    this.#compact();
    if (this.#indexes.size <= this.#limit) return undefined;
    const forgotten = this.oldest();
    if (forgotten !== undefined) this.delete(forgotten);
    return forgotten;
  }

  delete(value: bigint): boolean {
    const known = this.#indexes.delete(value);
    if (known) this.#compact();
    return known;
  }

  oldest(): bigint | undefined {
    if (this.size === 0) return undefined;
    while (!this.#isLive(this.#head)) this.#head++;
    return this.#queue[this.#head];
  }

  /** Returns a random value of about the older half, so that concurrent callers rarely pick the same one. */
  pick(random: () => number): bigint | undefined {
    const oldest = this.oldest();
    if (oldest === undefined) return undefined;
    const span = Math.ceil((this.#queue.length - this.#head) / 2);
    for (let index = this.#head + Math.floor(random() * span); index < this.#queue.length; index++) {
      if (this.#isLive(index)) return this.#queue[index];
    }
    return oldest;
  }

  /** Yields the values, oldest first. */
  *values(): Iterable<bigint> {
    for (const [index, value] of this.#queue.entries()) if (this.#indexes.get(value) === index) yield value;
  }

  #isLive(index: number): boolean {
    const value = this.#queue[index];
    return value !== undefined && this.#indexes.get(value) === index;
  }

  #compact(): void {
    if (this.#queue.length <= 2 * this.size + STALE_ENTRIES_ALLOWED) return;
    this.#queue = [...this.values()];
    this.#head = 0;
    this.#queue.forEach((value, index) => this.#indexes.set(value, index));
  }
}
