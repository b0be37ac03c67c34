import type { Family } from '../../addressing/address/address.js';
import { containsAddress } from '../../addressing/address/cidr.js';
import type { BlockRecord } from '../../addressing/block/block.js';
import { type LeaseRecord, isHeldByPod } from '../../addressing/lease/lease.js';
import type { LeaseBook } from '../leases/lease-book.js';

/** The leases of one pool that pods of one node hold. */
class NodePoolLeases {
  readonly leases = new Set<LeaseRecord>();
  readonly counts: Record<Family, number> = { 4: 0, 6: 0 };
  /** Cached numbers of leases by UID of the block, cleared by each change. */
  readonly countsByBlock = new Map<string, number>();
}

/** Counts the held leases of pods by pool and node. A node with at least one needs addresses. */
export class NodeLeaseCounts {
  readonly #pools = new Map<string, Map<string, NodePoolLeases>>();

  constructor(book: Pick<LeaseBook, 'all' | 'onChange'>) {
    for (const lease of book.all()) this.#add(lease);
    book.onChange(({ before, after }) => {
      if (before !== undefined) this.#delete(before);
      if (after !== undefined) this.#add(after);
    });
  }

  nodesOf(pool: string): Iterable<string> {
    return this.#pools.get(pool)?.keys() ?? [];
  }

  /** The pools whose addresses pods of the node hold. */
  poolsOf(node: string): string[] {
    return [...this.#pools].flatMap(([pool, nodes]) => (nodes.has(node) ? [pool] : []));
  }

  leasesOf(pool: string, node: string): Readonly<Record<Family, number>> {
    return this.#pools.get(pool)?.get(node)?.counts ?? NO_LEASES;
  }

  /** How many leases of the node's pods are in the block. */
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

/** When claims last found no free address outside of blocks. They then get an address of a block, and ipam reclaims unused blocks. */
export class ClaimShortages {
  readonly #shortageAt = new Map<string, Partial<Record<Family, number>>>();
  readonly #handlers: ((pool: string) => void)[] = [];

  onShortage(handler: (pool: string) => void): void {
    this.#handlers.push(handler);
  }

  /** @param at clock time in ms */
  noteShortage(pool: string, family: Family, at: number): void {
    this.#shortageAt.set(pool, { ...this.#shortageAt.get(pool), [family]: at });
    for (const handler of this.#handlers) handler(pool);
  }

  of(pool: string): Readonly<Partial<Record<Family, number>>> {
    return this.#shortageAt.get(pool) ?? {};
  }

  forget(pool: string): void {
    this.#shortageAt.delete(pool);
  }
}
