import type { Family } from '../core/address.js';
import type { BlockRecord } from '../core/block.js';
import { containsAddress } from '../core/cidr.js';
import { type LeaseRecord, isHeldByPod } from '../core/lease.js';
import type { LeaseChange } from '../leases/lease-book.js';

/** What of the book of leases is read here. */
export interface LeaseSource {
  all(): Iterable<LeaseRecord>;
  onChange(handler: (change: LeaseChange) => void): void;
}

/** The leases that the pods of one node have of one pool. */
class NodePoolLeases {
  readonly leases = new Set<LeaseRecord>();
  readonly counts: Record<Family, number> = { 4: 0, 6: 0 };
  /** By UID of a block, for as long as nothing changes. */
  readonly countsByBlock = new Map<string, number>();
}

/** Held leases of pods, by pool and node, change by change: nodes that have such need addresses. */
export class NodeLeaseCounts {
  readonly #pools = new Map<string, Map<string, NodePoolLeases>>();

  constructor(book: LeaseSource) {
    for (const lease of book.all()) this.#add(lease);
    book.onChange(({ before, after }) => {
      if (before !== undefined) this.#delete(before);
      if (after !== undefined) this.#add(after);
    });
  }

  nodesOf(pool: string): Iterable<string> {
    return this.#pools.get(pool)?.keys() ?? [];
  }

  /** From which its pods have addresses. */
  poolsOf(node: string): string[] {
    return [...this.#pools].flatMap(([pool, nodes]) => (nodes.has(node) ? [pool] : []));
  }

  leasesOf(pool: string, node: string): Readonly<Record<Family, number>> {
    return this.#pools.get(pool)?.get(node)?.counts ?? NO_LEASES;
  }

  /** How many of them lie in a block of that node. */
  usedIn({ pool, node, cidr, metadata: { uid } }: BlockRecord): number {
    const use = this.#pools.get(pool)?.get(node);
    if (use === undefined) return 0;
    const known = use.countsByBlock.get(uid);
    if (known !== undefined) return known;
    let count = 0;
    for (const { address } of use.leases) if (containsAddress(cidr, address)) count++;
    use.countsByBlock.set(uid, count);
    return count;
  }

  #add(lease: LeaseRecord): void {
    const { pool, node } = lease;
    if (node === undefined || !isHeldByPod(lease)) return;
    const nodes = this.#pools.get(pool) ?? new Map<string, NodePoolLeases>();
    const use = nodes.get(node) ?? new NodePoolLeases();
    use.leases.add(lease);
    use.counts[lease.address.family]++;
    use.countsByBlock.clear();
    this.#pools.set(pool, nodes.set(node, use));
  }

  #delete(lease: LeaseRecord): void {
    const { pool, node } = lease;
    const nodes = this.#pools.get(pool);
    const use = node === undefined ? undefined : nodes?.get(node);
    if (node === undefined || nodes === undefined || use?.leases.delete(lease) !== true) return;
    use.counts[lease.address.family]--;
    use.countsByBlock.clear();
    if (use.leases.size === 0) nodes.delete(node);
    if (nodes.size === 0) this.#pools.delete(pool);
  }
}

const NO_LEASES: Readonly<Record<Family, number>> = { 4: 0, 6: 0 };
