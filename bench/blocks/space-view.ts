import { SPACE_TAKEN_TTL_MS } from '../../cni/agent/leases/space-candidates.js';
import { AddressSpace } from '../../ipam/core/address-space.js';
import type { Address } from '../../ipam/core/address.js';
import type { LeaseRecord } from '../../ipam/core/lease.js';
import type { Pool } from '../../ipam/core/pool.js';
import type { Clock, Random } from '../../kube/clock.js';
import type { SimulatedEvent } from './api.js';

/** So often an address may be drawn that this agent tries already. */
const MAX_DRAWS = 8;

/**
 * What those know of an address space whose watch lags behind by the same time. A thousand agents that each know a hundred thousand leases do
 * not fit in memory here: those that lag alike share what they know, and differ in what they try themselves.
 */
export class SpaceView {
  readonly #space = new AddressSpace();
  readonly #news: readonly SimulatedEvent<LeaseRecord>[];
  readonly #lagMs: number;
  readonly #clock: Pick<Clock, 'now'>;
  #seen = 0;

  constructor(
    pool: Pool,
    news: readonly SimulatedEvent<LeaseRecord>[],
    { lagMs, clock }: { lagMs: number; clock: Pick<Clock, 'now'> },
  ) {
    this.#space.setPool(pool);
    this.#news = news;
    this.#lagMs = lagMs;
    this.#clock = clock;
  }

  /** Up to date, as far as the watch has come. */
  get space(): AddressSpace {
    const until = this.#clock.now() - this.#lagMs;
    for (let next = this.#news[this.#seen]; next !== undefined && next.at <= until; next = this.#news[++this.#seen]) {
      if (next.isGone) this.#space.vacate(next.record.address);
      else this.#space.occupy(next.record.address);
    }
    return this.#space;
  }
}

/** What one agent tries, or found taken, whatever its watch has told. */
export class TriedAddresses {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #random: Random;
  readonly #until = new Map<bigint, { address: Address; until: number }>();

  constructor(clock: Pick<Clock, 'now'>, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** {@link settle} must follow. @param suits other reasons of this agent not to try an address */
  pick(pool: Pool, space: AddressSpace, suits: (address: Address) => boolean): Address | undefined {
    this.#forget();
    const found = this.#draw(pool, space, suits) ?? this.#drawAmongOthers(pool, space);
    if (found !== undefined) this.#until.set(found.value, { address: found, until: Infinity });
    return found;
  }

  settle(address: Address): void {
    // those that were found taken first come first
    this.#until.delete(address.value);
    this.#until.set(address.value, { address, until: this.#clock.now() + SPACE_TAKEN_TTL_MS });
  }

  #draw(pool: Pool, space: AddressSpace, suits: (address: Address) => boolean): Address | undefined {
    for (let draw = 0; draw < MAX_DRAWS; draw++) {
      const address = space.random(pool.name, 4, this.#random);
      if (address === undefined || (!this.#until.has(address.value) && suits(address))) return address;
    }
    return undefined;
  }

  /** Where there are few left, with what this agent tries out of the way. */
  #drawAmongOthers(pool: Pool, space: AddressSpace): Address | undefined {
    const own = [...this.#until.values()].filter(({ address }) => !space.isOccupied(address));
    for (const { address } of own) space.occupy(address);
    const found = space.random(pool.name, 4, this.#random);
    for (const { address } of own) space.vacate(address);
    return found;
  }

  #forget(): void {
    for (const [key, { until }] of this.#until) {
      if (until > this.#clock.now()) return;
      this.#until.delete(key);
    }
  }
}
