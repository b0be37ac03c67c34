/** Divides a limited number of slots among pools that are derived from NADs, and among their namespaces. A pool keeps its slot until it is gone. */
export class DerivedPoolSlots {
  readonly #max: number;
  readonly #maxOfNamespace: number;
  /** Namespaces by pool. */
  readonly #taken = new Map<string, string>();
  readonly #countOf = new Map<string, number>();
  readonly #leftOut = new Set<string>();

  constructor(max: number, maxOfNamespace: number) {
    this.#max = max;
    this.#maxOfNamespace = maxOfNamespace;
  }

  /** The number of pools that asked for a slot and have none. */
  get leftOut(): number {
    return this.#leftOut.size;
  }

  /** Returns whether the pool has a slot now. */
  take(pool: string, namespace: string): boolean {
    if (this.#taken.has(pool)) return true;
    const count = this.#countOf.get(namespace) ?? 0;
    if (this.#taken.size >= this.#max || count >= this.#maxOfNamespace) {
      this.#leftOut.add(pool);
      return false;
    }
    this.#leftOut.delete(pool);
    this.#taken.set(pool, namespace);
    this.#countOf.set(namespace, count + 1);
    return true;
  }

  release(pool: string): void {
    this.#leftOut.delete(pool);
    const namespace = this.#taken.get(pool);
    if (namespace === undefined) return;
    this.#taken.delete(pool);
    const count = (this.#countOf.get(namespace) ?? 1) - 1;
    if (count === 0) this.#countOf.delete(namespace);
    else this.#countOf.set(namespace, count);
  }

  clear(): void {
    this.#taken.clear();
    this.#countOf.clear();
    this.#leftOut.clear();
  }
}
