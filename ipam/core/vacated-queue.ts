/** Room for stale entries, so that a small order is not rebuilt at every step. */
const STALE_ENTRIES_ALLOWED = 64;

/** The values that were vacated, in the order in which they were. All is O(1), amortised. */
export class VacatedQueue {
  readonly #limit: number;
  /** Where in the queue a value stands, counted from the first one ever; entries that stand elsewhere are stale. */
  readonly #places = new Map<bigint, number>();
  #queue: bigint[] = [];
  /** The place of the queue's first entry is 0; before `#head` all are stale. */
  #head = 0;

  /** @param limit how many are remembered: beyond it the oldest are forgotten */
  constructor(limit = Number.POSITIVE_INFINITY) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#places.size;
  }

  has(value: bigint): boolean {
    return this.#places.has(value);
  }

  /** It becomes the newest. @returns the oldest, where that one is forgotten for it */
  add(value: bigint): bigint | undefined {
    this.#places.set(value, this.#queue.length);
    this.#queue.push(value);
    this.#compact();
    if (this.#places.size <= this.#limit) return undefined;
    const forgotten = this.oldest();
    if (forgotten !== undefined) this.delete(forgotten);
    return forgotten;
  }

  delete(value: bigint): boolean {
    const known = this.#places.delete(value);
    if (known) this.#compact();
    return known;
  }

  oldest(): bigint | undefined {
    if (this.size === 0) return undefined;
    while (!this.#isLive(this.#head)) this.#head++;
    return this.#queue[this.#head];
  }

  /** @returns one of the older half or so; those who pick from the same order at once rarely pick the same one */
  pick(random: () => number): bigint | undefined {
    const oldest = this.oldest();
    if (oldest === undefined) return undefined;
    const span = Math.ceil((this.#queue.length - this.#head) / 2);
    for (let place = this.#head + Math.floor(random() * span); place < this.#queue.length; place++) {
      if (this.#isLive(place)) return this.#queue[place];
    }
    return oldest;
  }

  /** Oldest first. */
  *values(): Iterable<bigint> {
    for (const [place, value] of this.#queue.entries()) if (this.#places.get(value) === place) yield value;
  }

  #isLive(place: number): boolean {
    const value = this.#queue[place];
    return value !== undefined && this.#places.get(value) === place;
  }

  #compact(): void {
    if (this.#queue.length <= 2 * this.size + STALE_ENTRIES_ALLOWED) return;
    this.#queue = [...this.values()];
    this.#head = 0;
    this.#queue.forEach((value, place) => this.#places.set(value, place));
  }
}
