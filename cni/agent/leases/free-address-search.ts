import type { LeaseOwner } from '../../../api/address-lease.js';
import type { Address, Family } from '../../../addressing/address/address.js';
import { coolingStart } from '../../../addressing/lease/cooling-start.js';
import { REUSE_MS, timesWhenExhausted } from '../../../addressing/lease/lease-times.js';
import { type LeaseRecord, type LeaseTimes, availabilityOf, expiresAt } from '../../../addressing/lease/lease.js';
import { type Pool, subnetOf } from '../../../addressing/pool/pool.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import type { BlockCandidates, PickOutcome } from '../blocks/block-candidates.js';
import { type RequestContext, waitIdle } from '../request-queue.js';
import type { LeaseWriter, PodLeaseRequest } from './lease-writer.js';
import type { PickSource, PodLeaseMetrics } from '../metrics.js';
import type { NodeLeases } from '../node-leases.js';
import { contentionError, poolFullError } from './allocation-errors.js';
import type { SpaceCandidates } from './space-candidates.js';
import { findUnleasedAddress } from './unleased-addresses.js';

export interface AddressSearchDeps {
  readonly own: NodeLeases;
  readonly writer: LeaseWriter;
  readonly client: Pick<Client, 'listAs'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly metrics: PodLeaseMetrics;
}

/** The pool to search, and the lease to create. */
export interface AddressSearchRequest {
  readonly pool: Pool;
  readonly candidates: SpaceCandidates;
  /** Blocks of the node; absent if the feature gate NodeBlocks is off. */
  readonly blocks: BlockCandidates | undefined;
  readonly times: LeaseTimes;
  readonly owner: LeaseOwner;
  readonly requestFor: (address: Address) => PodLeaseRequest;
  readonly call: RequestContext;
}

/** Counters of the search for one family. */
interface SearchProgress {
  attempts: number;
  /** Released leases that are cooling down, or could not be allocated. */
  cooling: number;
}

/** Limit of attempts per family. */
export const MAX_ALLOCATION_ATTEMPTS = 128;
/** Of these, attempts with addresses that the watch shows as free. */
export const WATCHED_ATTEMPTS = 16;
/**
 * Random attempts before the leases of the address space are watched, which costs far more. All fail in 0.1 % of the cases if nine tenths of the
 * pool are leased. More follow while all leases are listed.
 */
export const MAX_BLIND_ATTEMPTS = 64;
/** Attempts with released leases of the node. */
const MAX_REUSE_ATTEMPTS = 4;
/** Attempts in the node's own blocks. If so many addresses are taken, claims use the blocks. */
export const MAX_BLOCK_ATTEMPTS = 8;

/**
 * Leases an address to a pod that requests none. It tries the node's own blocks first, then random addresses of the pool. Only if many
 * of these are taken, it watches the leases of the address space and picks among the free addresses.
 */
export class FreeAddressSearch {
  readonly #deps: AddressSearchDeps;
  readonly #search: AddressSearchRequest;

  constructor(deps: AddressSearchDeps, search: AddressSearchRequest) {
    this.#deps = deps;
    this.#search = search;
  }

  /**
   * Leases one address of a family.
   * @throws {CniError} if no address is available
   * @throws {Error} if a request to the API server failed
   */
  async lease(family: Family): Promise<LeaseRecord> {
    const { pool } = this.#search;
    const { metrics } = this.#deps;
    const count = { attempts: 0, cooling: 0 };
    try {
      const lease =
        (await this.#leaseFromBlocks(family, count)) ??
        (await this.#leaseReleased(family, count)) ??
        (await this.#leaseFree(family, count)) ??
        (await this.#leaseCooled(family, count));
      if (lease !== undefined) return lease;
      if (count.attempts >= MAX_ALLOCATION_ATTEMPTS) throw contentionError(pool, count.attempts);
      throw poolFullError(pool, family, count.cooling);
    } finally {
      metrics.allocated(count.attempts);
    }
  }

  /** Tries addresses of the node's blocks: of its released leases that ipam still keeps, else free ones, else of any released lease. */
  async #leaseFromBlocks(family: Family, count: SearchProgress): Promise<LeaseRecord | undefined> {
    const { pool, blocks } = this.#search;
    if (blocks === undefined) return undefined;
    while (count.attempts < MAX_BLOCK_ATTEMPTS) {
      const kept = this.#pickReleased(this.#keptLeases(family), blocks);
      const free = kept === undefined ? this.#pickFromBlocks(family, blocks) : undefined;
      const cooled = free === undefined ? (kept ?? this.#pickReleased(this.#releasedHere(family), blocks)) : undefined;
      const tried = free ?? cooled?.address;
      if (tried === undefined) return undefined;
      count.attempts++;
      const lease = await this.#attempt(tried, cooled, (outcome) => blocks.settle(pool, tried, outcome));
      if (lease !== undefined) return this.#count(lease, 'block');
    }
    return undefined;
  }

  /** Picks an address to try. If the leases of the address space are watched, addresses that others hold are skipped. */
  #pickFromBlocks(family: Family, blocks: BlockCandidates): Address | undefined {
    const { pool, candidates } = this.#search;
    for (;;) {
      const address = blocks.pick(pool, family);
      if (address === undefined || !candidates.isKnown(address)) return address;
      blocks.settle(pool, address, 'lost');
    }
  }

  /** Picks a released lease to try. */
  #pickReleased(leases: readonly LeaseRecord[], blocks: BlockCandidates): LeaseRecord | undefined {
    const { pool } = this.#search;
    return leases.find(
      (lease) => blocks.isUsable(pool, lease.address) && this.#isAllocatable(lease) && blocks.try(pool, lease.address),
    );
  }

  /** Tries leases that pods of this node had, which have cooled down: no object is created, and ipam need not delete one. */
  async #leaseReleased(family: Family, count: SearchProgress): Promise<LeaseRecord | undefined> {
    // outside of its blocks, a node leaves them to others
    if (this.#search.blocks !== undefined) return undefined;
    for (const found of this.#keptLeases(family)) {
      if (count.attempts >= MAX_REUSE_ATTEMPTS) return undefined;
      if (!this.#isAllocatable(found) || !this.#startAttempt(found)) continue;
      count.attempts++;
      const lease = await this.#attemptOutside(found.address, found);
      if (lease !== undefined) return this.#count(lease, 'released');
    }
    return undefined;
  }

  /** Returns released leases of this node whose time is over and that ipam has not deleted yet. */
  #keptLeases(family: Family): LeaseRecord[] {
    return this.#releasedHere(family, this.#deps.clock.now() - REUSE_MS);
  }

  /**
   * Returns leases of this node whose cool-down is over, the one released first at the beginning.
   * @param from leaves out those whose time ended before: a node may have a thousand
   */
  #releasedHere(family: Family, from = -Infinity): LeaseRecord[] {
    const { pool, times } = this.#search;
    const first = from - Math.max(times.cooldownMs, times.stickyMs);
    const last = this.#deps.clock.now() - times.cooldownMs;
    const isFound = (lease: LeaseRecord) => {
      const start = coolingStart(lease);
      return start > first && start <= last && lease.address.family === family && expiresAt(lease, times) > from;
    };
    const found = this.#deps.own.releasedOf(pool).filter(isFound);
    return found.sort((a, b) => coolingStart(a) - coolingStart(b));
  }

  /** Tries addresses without a lease: those that the watch shows, or random ones. The watch begins when many of these are taken. */
  async #leaseFree(family: Family, count: SearchProgress): Promise<LeaseRecord | undefined> {
    const { candidates, call } = this.#search;
    const before = count.attempts;
    while (count.attempts < MAX_ALLOCATION_ATTEMPTS) {
      const { hasSynced } = candidates;
      const guesses = count.attempts - before;
      const isBlind = !hasSynced && guesses > 0;
      if (isBlind && guesses >= MAX_BLIND_ATTEMPTS) candidates.watch();
      const address = isBlind ? await this.#readUnleased(family, count, before) : this.#pickFree(family);
      if (address === undefined && hasSynced) return undefined;
      if (address === undefined) {
        if (!isBlind) await waitIdle(call, () => candidates.synced(call.signal));
        continue;
      }
      count.attempts++;
      const lease = await this.#attemptOutside(address);
      if (lease !== undefined) return this.#count(lease, hasSynced ? 'watched' : 'blind');
    }
    return undefined;
  }

  /** Finds an address without a lease by reads, or waits for the list of all leases if no candidate is left. */
  async #readUnleased(family: Family, count: SearchProgress, before: number): Promise<Address | undefined> {
    const { candidates, requestFor, call } = this.#search;
    const pick = () => this.#pickFree(family);
    const isPickable = (address: Address) => this.#isOpen(address);
    const isLeased = (address: Address) => this.#deps.writer.isLeased(requestFor(address), call);
    const left = MAX_ALLOCATION_ATTEMPTS - WATCHED_ATTEMPTS - (count.attempts - before);
    const { address, taken, picked } = await findUnleasedAddress({ candidates, pick, isPickable, isLeased }, left);
    count.attempts += taken;
    if (picked === 0) await waitIdle(call, () => candidates.synced(call.signal));
    return address;
  }

  /** Picks an address outside of the node's blocks, which are tried first. */
  #pickFree(family: Family): Address | undefined {
    const { pool, candidates, blocks } = this.#search;
    for (;;) {
      const address = candidates.pick(this.#pickablePool(), family);
      if (address === undefined || candidates.hasSynced || blocks?.isKnown(pool, address) !== true) return address;
      candidates.settle(address, true);
    }
  }

  /**
   * Tries leases that have cooled down and are not deleted yet, the one released first at the beginning and sticky ones at the end. There
   * may be very many, so they are listed once.
   */
  async #leaseCooled(family: Family, count: SearchProgress): Promise<LeaseRecord | undefined> {
    const { times } = this.#search;
    const cooling = this.#releasedLeases(family);
    count.cooling = cooling.length;
    const lost = new Set<LeaseRecord>();
    for (const each of [times, timesWhenExhausted(times)]) {
      for (const found of cooling) {
        if (count.attempts >= MAX_ALLOCATION_ATTEMPTS) return undefined;
        if (lost.has(found) || !this.#isAllocatable(found, each) || !this.#startAttempt(found)) continue;
        count.attempts++;
        const lease = await this.#attemptOutside(found.address, found);
        if (lease !== undefined) return this.#count(lease, 'watched');
        lost.add(found);
      }
    }
    return undefined;
  }

  /** Starts an attempt. @returns false if the pool no longer has the address, or another attempt is under way */
  #startAttempt({ address }: LeaseRecord): boolean {
    return this.#isOpen(address) && this.#search.candidates.try(address);
  }

  /** Returns released leases whose addresses the pool still has. */
  #releasedLeases(family: Family): LeaseRecord[] {
    const released = this.#search.candidates.releasedOf(this.#pickablePool(), family);
    return released.filter(({ address }) => this.#isOpen(address));
  }

  /** Whether the address may be picked now. */
  #isOpen(address: Address): boolean {
    return subnetOf(this.#pickablePool(), address)?.open.has(address.value) === true;
  }

  /** Returns the pool without blocks that go back to it, as known now: no address of them may be picked. */
  #pickablePool(): Pool {
    const { pool, blocks, candidates } = this.#search;
    const elsewhere = blocks?.withoutWithheld(pool) ?? pool;
    candidates.setPool(elsewhere);
    return elsewhere;
  }

  #isAllocatable(lease: LeaseRecord, times = this.#search.times): boolean {
    const { requestFor } = this.#search;
    return availabilityOf(lease, requestFor(lease.address), times, this.#deps.clock.now()) === true;
  }

  /** Tries an address outside of the node's blocks. */
  #attemptOutside(address: Address, released?: LeaseRecord): Promise<LeaseRecord | undefined> {
    const { candidates } = this.#search;
    return this.#attempt(address, released, (outcome) => candidates.settle(address, outcome !== 'failed'));
  }

  /** @param released the lease to allocate again; undefined: a new one is created */
  async #attempt(
    address: Address,
    released: LeaseRecord | undefined,
    settle: (outcome: PickOutcome) => void,
  ): Promise<LeaseRecord | undefined> {
    const { requestFor, call } = this.#search;
    const { writer } = this.#deps;
    let outcome: PickOutcome = 'failed';
    try {
      const request = requestFor(address);
      const lease = await (released === undefined
        ? writer.create(request, call)
        : writer.reallocate(released, request, call));
      outcome = lease === undefined ? 'lost' : 'ours';
      return lease;
    } finally {
      settle(outcome);
    }
  }

  #count(lease: LeaseRecord, source: PickSource): LeaseRecord {
    this.#deps.metrics.picked(source);
    return lease;
  }
}
