import { AddressSpaces } from '../../../addressing/allocator/address-space.js';
import type { Address, Family } from '../../../addressing/address/address.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { type Pool, subnetOf } from '../../../addressing/pool/pool.js';
import type { Clock, Random } from '../../../kube/clock.js';
import type { LentBlocks } from './lent-blocks.js';
import type { RangeSet } from '../../../addressing/address/ranges.js';

/** The result of an attempt. `lost`: another owner has the address; `failed`: the result is unknown. */
export type PickOutcome = 'ours' | 'lost' | 'failed';

/** A pool restricted to the blocks of the node at one revision. */
interface RestrictedPool {
  readonly pool: Pool;
  readonly revision: number;
  /** The addresses of the node's own blocks that may be picked. */
  readonly usable: Pool;
  /** The addresses that may be picked anywhere: all but those of blocks that go back to the pool. */
  readonly elsewhere: Pool;
}

/** When to retry an address that another node or a claim has. No watch tells when it is free, and most are held for a long time. */
export const BLOCK_TAKEN_TTL_MS = 30 * 60_000;
/** How many recently vacated addresses per address space and family are picked last. */
const MAX_RECENTLY_VACATED = 4_096;
/** How many restricted pools are cached. Tenants create pools, and restricting one again is cheap. */
const MAX_RESTRICTED_POOLS = 256;

/**
 * The addresses of a node's own blocks that may be free: not leased on this node, not being tried, and not found taken recently.
 * Pure, as {@link LentBlocks} is. The write decides whether an address is free.
 */
export class BlockCandidates {
  readonly #lent: LentBlocks;
  readonly #source: { readonly clock: Pick<Clock, 'now'>; readonly random: Random };
  readonly #spaces = new AddressSpaces(MAX_RECENTLY_VACATED);
  /** By name of the pool. */
  readonly #restricted = new Map<string, RestrictedPool>();
  /** Names of leases of this node, in any state. */
  readonly #leased = new Set<string>();
  /** Names of leases that are being written. */
  readonly #tried = new Set<string>();
  /** By name of the lease, in the order in which they were found taken. */
  readonly #taken = new Map<string, { addressSpace: string; address: Address; until: number }>();

  constructor(lent: LentBlocks, source: { clock: Pick<Clock, 'now'>; random: Random }) {
    this.#lent = lent;
    this.#source = source;
  }

  /** Picks an address of a usable block that is not known to be taken. It counts as used until {@link settle}, which must follow. */
  pick(pool: Pool, family: Family): Address | undefined {
    this.#forgetTaken(this.#source.clock.now());
    this.#restrict(pool);
    const address = this.#spaces.of(pool.addressSpace).random(pool.name, family, this.#source.random);
    if (address !== undefined) this.try(pool, address);
    return address;
  }

  /**
   * Reserves the address for one attempt. Its block counts as used until {@link settle}, which must follow.
   * @returns false if another attempt is under way, or the address was found taken recently
   */
  try(pool: Pool, address: Address): boolean {
    const name = leaseName(pool.addressSpace, address);
    if (this.#tried.has(name) || this.#taken.has(name)) return false;
    this.#tried.add(name);
    this.#lent.addUse(attemptKey(name), { pool: pool.name, address });
    this.#spaces.of(pool.addressSpace).occupy(address);
    return true;
  }

  /** Ends an attempt. @param outcome `ours`: {@link addLease} was called for its lease */
  settle({ addressSpace }: Pool, address: Address, outcome: PickOutcome): void {
    const name = leaseName(addressSpace, address);
    this.#tried.delete(name);
    this.#lent.removeUse(attemptKey(name));
    this.#taken.delete(name);
    const until = this.#source.clock.now() + BLOCK_TAKEN_TTL_MS;
    if (outcome === 'lost') this.#taken.set(name, { addressSpace, address, until });
    this.#vacate(addressSpace, address);
  }

  /** Records that this node has a lease of the address, in any state. */
  addLease(addressSpace: string, address: Address): void {
    const name = leaseName(addressSpace, address);
    this.#leased.add(name);
    this.#taken.delete(name);
    this.#spaces.of(addressSpace).occupy(address);
  }

  /** Records that this node has no lease of the address any more. */
  removeLease(addressSpace: string, address: Address): void {
    this.#leased.delete(leaseName(addressSpace, address));
    this.#vacate(addressSpace, address);
  }

  /** Whether the address is leased on this node, is being tried, or was found taken recently. */
  isKnown({ addressSpace }: Pool, address: Address): boolean {
    return this.#spaces.isOccupied(addressSpace, address);
  }

  /** Whether the address lies in a block from which addresses may be picked. */
  isUsable(pool: Pool, address: Address): boolean {
    return subnetOf(this.#restrict(pool).usable, address)?.open.has(address.value) === true;
  }

  /** Returns the pool without blocks that go back to it, for picks outside of blocks. It is the same object until that changes. */
  withoutWithheld(pool: Pool): Pool {
    return this.#restrict(pool).elsewhere;
  }

  /** Restricts the pool to the current blocks, so that no address of a withdrawn block is picked. */
  #restrict(pool: Pool): RestrictedPool {
    const { name } = pool;
    const known = this.#restricted.get(name);
    const revision = this.#lent.revisionOf(name);
    if (known?.pool === pool && known.revision === revision) return known;
    const usable = restrictPool(pool, (open, family) => open.intersect(this.#lent.usable(name, family)));
    const isWhole = pool.families.every((family) => this.#lent.withheld(name, family).isEmpty);
    const elsewhere = isWhole
      ? pool
      : restrictPool(pool, (open, family) => open.subtract(this.#lent.withheld(name, family)));
    this.#spaces.of(pool.addressSpace).setPool(usable);
    const restricted = { pool, revision, usable, elsewhere };
    this.#restricted.delete(name);
    this.#restricted.set(name, restricted);
    if (this.#restricted.size > MAX_RESTRICTED_POOLS) this.#forgetOldestRestricted();
    return restricted;
  }

  #forgetOldestRestricted(): void {
    const [oldest] = this.#restricted.values();
    if (oldest === undefined) return;
    const { name, addressSpace } = oldest.pool;
    this.#restricted.delete(name);
    this.#spaces.removePool(addressSpace, name);
  }

  #forgetTaken(now: number): void {
    for (const [name, { addressSpace, address, until }] of this.#taken) {
      if (until > now) return;
      this.#taken.delete(name);
      this.#vacate(addressSpace, address);
    }
  }

  #vacate(addressSpace: string, address: Address): void {
    const name = leaseName(addressSpace, address);
    if (this.#leased.has(name) || this.#tried.has(name) || this.#taken.has(name)) return;
    this.#spaces.vacate(addressSpace, address);
  }
}

function attemptKey(leaseOf: string): string {
  return `try ${leaseOf}`;
}

/** Returns the pool with fewer open addresses. The addresses that may be requested stay the same. */
function restrictPool(pool: Pool, keep: (open: RangeSet, family: Family) => RangeSet): Pool {
  const subnets = pool.subnets.map((subnet) => ({ ...subnet, open: keep(subnet.open, subnet.cidr.family) }));
  return { ...pool, subnets };
}
