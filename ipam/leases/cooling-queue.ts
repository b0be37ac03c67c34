import type { Cooling } from '../core/allocator.js';
import { type LeaseRecord, type LeaseTimes, expiresAt } from '../core/lease.js';

interface Entry {
  readonly lease: LeaseRecord;
  /** When anybody may have the address, in milliseconds since the epoch. */
  readonly at: number;
}

/** Room for stale entries, so that a small queue is not rebuilt at every step. */
const SLACK = 64;

/** Released leases by when anybody may take them: a heap, in which those that are gone stay until they come up. */
export class CoolingQueue {
  readonly times: LeaseTimes;
  readonly #live = new Set<LeaseRecord>();
  #heap: Entry[] = [];

  constructor(times: LeaseTimes, leases: Iterable<LeaseRecord>) {
    this.times = { cooldownMs: times.cooldownMs, stickyMs: times.stickyMs };
    for (const lease of leases) this.add(lease);
  }

  isFor({ cooldownMs, stickyMs }: LeaseTimes): boolean {
    return cooldownMs === this.times.cooldownMs && stickyMs === this.times.stickyMs;
  }

  add(lease: LeaseRecord): void {
    // one that is being deleted can be had by nobody
    if (lease.metadata.deletionTimestamp !== undefined) return;
    this.#live.add(lease);
    this.#push({ lease, at: expiresAt(lease, this.times) });
  }

  /** @param lease the very one that was added; any other is ignored */
  delete(lease: LeaseRecord): void {
    if (!this.#live.delete(lease) || this.#heap.length <= 2 * this.#live.size + SLACK) return;
    const entries = this.#heap;
    this.#heap = [];
    for (const entry of entries) if (this.#live.has(entry.lease)) this.#push(entry);
  }

  /** @param isPending somebody is taking it: it is passed over */
  look(isPending: (lease: LeaseRecord) => boolean): Cooling {
    const passed: Entry[] = [];
    let first = this.#heap[0];
    while (first !== undefined && (!this.#live.has(first.lease) || isPending(first.lease))) {
      if (this.#live.has(first.lease)) passed.push(first);
      this.#pop();
      first = this.#heap[0];
    }
    for (const entry of passed) this.#push(entry);
    return { count: this.#live.size, ...(first !== undefined && { first }) };
  }

  #push(entry: Entry): void {
    let index = this.#heap.length;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#heap[above];
      if (parent === undefined || parent.at <= entry.at) break;
      this.#heap[index] = parent;
      index = above;
    }
    this.#heap[index] = entry;
  }

  /** Removes the first one. */
  #pop(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    let index = 0;
    for (let child = this.#lesserChild(0); child !== undefined; child = this.#lesserChild(index)) {
      if (child.entry.at >= last.at) break;
      this.#heap[index] = child.entry;
      index = child.index;
    }
    this.#heap[index] = last;
  }

  #lesserChild(index: number): { index: number; entry: Entry } | undefined {
    const [left, right] = [this.#heap[2 * index + 1], this.#heap[2 * index + 2]];
    if (left === undefined) return undefined;
    if (right !== undefined && right.at < left.at) return { index: 2 * index + 2, entry: right };
    return { index: 2 * index + 1, entry: left };
  }
}
