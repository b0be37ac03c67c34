import { AddressSpace } from '../../../ipam/core/address-space.js';
import type { Address, Family } from '../../../ipam/core/address.js';
import { leaseName } from '../../../ipam/core/lease-name.js';
import { type Pool, subnetOf } from '../../../ipam/core/pool.js';
import type { Random } from '../../../kube/clock.js';
import type { LentBlocks } from './lent-blocks.js';
import { restrictPool } from './restrict-pool.js';

/** What became of a try. `lost`: somebody else has the address; `failed`: nothing is known of it. */
export type PickOutcome = 'ours' | 'lost' | 'failed';

/** A pool as it was last asked about, cut to the blocks that there were then. */
interface RestrictedPool {
  readonly pool: Pool;
  readonly revision: number;
  /** What may be picked of the node's own blocks. */
  readonly usable: Pool;
  /** What may be picked anywhere: all but the blocks that are being given back. */
  readonly elsewhere: Pool;
}

/** No watch tells when an address that somebody outside this node has is free again. He has it for long, mostly: it is tried again after so long. */
export const BLOCK_TAKEN_TTL_MS = 30 * 60_000;
/** Vacated addresses of an address space and family that are picked last. */
const MAX_RECENTLY_VACATED = 4_096;
/** Pools that are remembered as cut: tenants make new ones, and cutting one again is cheap. */
const MAX_RESTRICTED_POOLS = 256;

/**
 * Which addresses of a node's own blocks may be free: neither leased on this node, nor being tried, nor found taken lately. Pure, as
 * {@link LentBlocks} is. Whether an address is free, the write decides.
 */
export class BlockCandidates {
  readonly #lent: LentBlocks;
  /** By name. */
  readonly #spaces = new Map<string, AddressSpace>();
  /** By name of the pool. */
  readonly #cuts = new Map<string, RestrictedPool>();
  /** Names of leases of this node, in whatever state. */
  readonly #leased = new Set<string>();
  /** Names of leases of which a write is under way. */
  readonly #tried = new Set<string>();
  /** By name of the lease; those that were found taken first come first. */
  readonly #noted = new Map<string, { addressSpace: string; address: Address; until: number }>();

  constructor(lent: LentBlocks) {
    this.#lent = lent;
  }

  /**
   * An address of a usable block that nobody is known to have. It is being tried from now on, and counts as used; {@link settle} must follow.
   * @param now in the clock's ms
   */
  pick(pool: Pool, family: Family, { now, random }: { now: number; random: Random }): Address | undefined {
    this.#forgetNotes(now);
    this.#cutOf(pool);
    const address = this.#spaceOf(pool.addressSpace).random(pool.name, family, random);
    if (address !== undefined) this.try(pool, address);
    return address;
  }

  /**
   * Nobody else of this agent picks it, and its block counts as used; {@link settle} must follow.
   * @returns false where somebody tries it already, or it was found taken lately
   */
  try(pool: Pool, address: Address): boolean {
    const name = leaseName(pool.addressSpace, address);
    if (this.#tried.has(name) || this.#noted.has(name)) return false;
    this.#tried.add(name);
    this.#lent.addUse(attemptKey(name), { pool: pool.name, address });
    this.#spaceOf(pool.addressSpace).occupy(address);
    return true;
  }

  /** @param outcome `ours`: its lease has been told of */
  settle({ addressSpace }: Pool, address: Address, { outcome, now }: { outcome: PickOutcome; now: number }): void {
    const name = leaseName(addressSpace, address);
    this.#tried.delete(name);
    this.#lent.removeUse(attemptKey(name));
    this.#noted.delete(name);
    if (outcome === 'lost') this.#noted.set(name, { addressSpace, address, until: now + BLOCK_TAKEN_TTL_MS });
    this.#vacate(addressSpace, address);
  }

  /** This node has a lease of the address, in whatever state. */
  addLease(addressSpace: string, address: Address): void {
    const name = leaseName(addressSpace, address);
    this.#leased.add(name);
    this.#noted.delete(name);
    this.#spaceOf(addressSpace).occupy(address);
  }

  /** It has none any more. */
  removeLease(addressSpace: string, address: Address): void {
    this.#leased.delete(leaseName(addressSpace, address));
    this.#vacate(addressSpace, address);
  }

  /** The address is leased on this node, is being tried, or was found taken: there is no use in trying it. */
  isKnown({ addressSpace }: Pool, address: Address): boolean {
    return this.#spaces.get(addressSpace)?.isOccupied(address) === true;
  }

  /** It lies in a block from which may be picked. */
  isUsable(pool: Pool, address: Address): boolean {
    return subnetOf(this.#cutOf(pool).usable, address)?.open.has(address.value) === true;
  }

  /** The pool without the blocks that this node is asked for, or has given back: for picks that are not of a block. The same object until that changes. */
  withoutWithheld(pool: Pool): Pool {
    return this.#cutOf(pool).elsewhere;
  }

  /** As the blocks are now: one that is withdrawn is not picked from, however long ago somebody asked. */
  #cutOf(pool: Pool): RestrictedPool {
    const { name } = pool;
    const known = this.#cuts.get(name);
    const revision = this.#lent.revisionOf(name);
    if (known?.pool === pool && known.revision === revision) return known;
    const usable = restrictPool(pool, (open, family) => open.intersect(this.#lent.usable(name, family)));
    const isWhole = pool.families.every((family) => this.#lent.withheld(name, family).isEmpty);
    const elsewhere = isWhole
      ? pool
      : restrictPool(pool, (open, family) => open.subtract(this.#lent.withheld(name, family)));
    this.#spaceOf(pool.addressSpace).setPool(usable);
    const cut = { pool, revision, usable, elsewhere };
    this.#cuts.delete(name);
    this.#cuts.set(name, cut);
    if (this.#cuts.size > MAX_RESTRICTED_POOLS) this.#forgetOldestCut();
    return cut;
  }

  #forgetOldestCut(): void {
    const [oldest] = this.#cuts.values();
    if (oldest === undefined) return;
    const { name, addressSpace } = oldest.pool;
    this.#cuts.delete(name);
    this.#spaces.get(addressSpace)?.removePool(name);
  }

  #spaceOf(name: string): AddressSpace {
    const space = this.#spaces.get(name) ?? new AddressSpace(MAX_RECENTLY_VACATED);
    this.#spaces.set(name, space);
    return space;
  }

  #forgetNotes(now: number): void {
    for (const [name, { addressSpace, address, until }] of this.#noted) {
      if (until > now) return;
      this.#noted.delete(name);
      this.#vacate(addressSpace, address);
    }
  }

  #vacate(addressSpace: string, address: Address): void {
    const name = leaseName(addressSpace, address);
    if (this.#leased.has(name) || this.#tried.has(name) || this.#noted.has(name)) return;
    this.#spaceOf(addressSpace).vacate(address);
  }
}

function attemptKey(leaseOf: string): string {
  return `try ${leaseOf}`;
}
