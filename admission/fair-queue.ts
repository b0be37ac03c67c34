/** Items of several keys. Keys take turns; the items of one key leave in the order in which they were added. */
export class FairQueue<T extends { readonly weight: number }> {
  readonly #maxWeight: number;
  /** The key whose turn is next comes first. */
  readonly #items = new Map<string, Set<T>>();

  /** @param maxWeight the maximum weight of the items of one key; a key may always have one item */
  constructor(maxWeight: number) {
    this.#maxWeight = maxWeight;
  }

  /** @returns false if the key has too many items */
  add(key: string, item: T): boolean {
    const items = this.#items.get(key) ?? new Set();
    let weight = item.weight;
    for (const each of items) weight += each.weight;
    if (items.size > 0 && weight > this.#maxWeight) return false;
    this.#items.set(key, items.add(item));
    return true;
  }

  /** Removes the next item that may be taken, of the first key whose next item may. That key then goes behind all others. */
  take(mayTake: (key: string, item: T) => boolean): { key: string; item: T } | undefined {
    for (const [key, items] of this.#items) {
      const [item] = items;
      if (item === undefined || !mayTake(key, item)) continue;
      this.#items.delete(key);
      items.delete(item);
      if (items.size > 0) this.#items.set(key, items);
      return { key, item };
    }
    return undefined;
  }

  delete(key: string, item: T): void {
    const items = this.#items.get(key);
    items?.delete(item);
    if (items?.size === 0) this.#items.delete(key);
  }
}
