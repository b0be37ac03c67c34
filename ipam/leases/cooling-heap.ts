import type { CoolingLease } from '../../addressing/allocator/allocator.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';

/** How many stale entries a small heap may have before it is rebuilt. */
const STALE_ENTRIES_ALLOWED = 64;

/** A heap of leases by the end of their time. Deleted leases stay in it until they reach the top. */
export class CoolingHeap {
  readonly #live = new Set<LeaseRecord>();
  #heap: CoolingLease[] = [];

  get size(): number {
    return this.#live.size;
  }

  add(entry: CoolingLease): void {
    this.#live.add(entry.lease);
    this.#push(entry);
  }

  /** @param lease the same object that was added; others are ignored */
  delete(lease: LeaseRecord): void {
    if (!this.#live.delete(lease) || this.#heap.length <= 2 * this.#live.size + STALE_ENTRIES_ALLOWED) return;
    const entries = this.#heap;
    this.#heap = [];
    for (const entry of entries) if (this.#live.has(entry.lease)) this.#push(entry);
  }

  /** Returns the lease whose time ends first. @param isPending such leases are skipped */
  first(isPending: (lease: LeaseRecord) => boolean = () => false): CoolingLease | undefined {
    const skipped: CoolingLease[] = [];
    let first = this.#heap[0];
    while (first !== undefined && (!this.#live.has(first.lease) || isPending(first.lease))) {
      if (this.#live.has(first.lease)) skipped.push(first);
      this.#pop();
      first = this.#heap[0];
    }
    for (const entry of skipped) this.#push(entry);
    return first;
  }

  #push(entry: CoolingLease): void {
    let index = this.#heap.length;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#heap[above];
      if (parent === undefined || parent.cooledAt <= entry.cooledAt) break;
      this.#heap[index] = parent;
      index = above;
    }
    this.#heap[index] = entry;
  }

  /** Removes the first entry. */
  #pop(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    let index = 0;
    for (let child = this.#lesserChild(0); child !== undefined; child = this.#lesserChild(index)) {
      if (child.entry.cooledAt >= last.cooledAt) break;
      this.#heap[index] = child.entry;
      index = child.index;
    }
    this.#heap[index] = last;
  }

  #lesserChild(index: number): { index: number; entry: CoolingLease } | undefined {
    const [left, right] = [this.#heap[2 * index + 1], this.#heap[2 * index + 2]];
    if (left === undefined) return undefined;
    if (right !== undefined && right.cooledAt < left.cooledAt) return { index: 2 * index + 2, entry: right };
    return { index: 2 * index + 1, entry: left };
  }
}
