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
