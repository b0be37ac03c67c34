/** A queue that serves its keys in turn. Items of one key leave in the order in which they were added. */
export class FairQueue<T> {
  readonly #limit: number;
  /** The next key comes first. */
  readonly #items = new Map<string, Set<T>>();

  /** @param limit how many items of one key may wait */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @returns false if the queue of the key is full */
  add(key: string, item: T): boolean {
    const items = this.#items.get(key) ?? new Set();
    if (items.size >= this.#limit) return false;
    this.#items.set(key, items.add(item));
    return true;
  }

  /** Removes the next item of the first eligible key, and moves that key to the end. */
  take(isEligible: (key: string) => boolean): { key: string; item: T } | undefined {
    for (const [key, items] of this.#items) {
      const [item] = items;
      if (item === undefined || !isEligible(key)) continue;
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
