interface ScheduledEvent {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** A scheduler in virtual time, as a binary heap. Callbacks with the same time run in the order in which they were added. */
export class VirtualTime {
  readonly #heap: ScheduledEvent[] = [];
  #now: number;
  #order = 0;

  /** @param now ms since the epoch */
  constructor(now: number) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): void {
    const entry = { at: this.#now + ms, order: this.#order++, run };
    let place = this.#heap.push(entry) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(entry, this.#heap[parent]!)) break;
      this.#heap[place] = this.#heap[parent]!;
      place = parent;
    }
    this.#heap[place] = entry;
  }

  /** Runs all callbacks that are due until `end`. */
  runUntil(end: number): void {
    while (this.#heap.length > 0 && this.#heap[0]!.at <= end) {
      const next = this.#pop();
      this.#now = next.at;
      next.run();
    }
    this.#now = Math.max(this.#now, end);
  }

  #pop(): ScheduledEvent {
    const [first] = this.#heap;
    const last = this.#heap.pop()!;
    const { length } = this.#heap;
    if (length === 0) return first!;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= length) break;
      if (child + 1 < length && isBefore(this.#heap[child + 1]!, this.#heap[child]!)) child++;
      if (!isBefore(this.#heap[child]!, last)) break;
      this.#heap[place] = this.#heap[child]!;
      place = child;
    }
    this.#heap[place] = last;
    return first!;
  }
}

function isBefore(one: ScheduledEvent, other: ScheduledEvent): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}
