import { SPACE_TAKEN_TTL_MS } from '../../cni/agent/leases/space-candidates.js';
import { AddressSpace } from '../../addressing/allocator/address-space.js';
import type { Address } from '../../addressing/address/address.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { Clock, Random } from '../../kube/clock.js';
import type { SimulatedEvent } from './api.js';

/** Limit of draws of addresses that this agent tries already. */
const MAX_DRAWS = 8;

/**
 * An address space as seen by agents whose watches have the same lag. They share one view, because a thousand agents with a hundred
 * thousand leases each do not fit in memory. What an agent tries itself is in {@link TriedAddresses}.
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

  /** The address space after all events that the watch has delivered. */
  get space(): AddressSpace {
    const until = this.#clock.now() - this.#lagMs;
    for (let next = this.#news[this.#seen]; next !== undefined && next.at <= until; next = this.#news[++this.#seen]) {
      if (next.isGone) this.#space.vacate(next.record.address);
      else this.#space.occupy(next.record.address);
    }
    return this.#space;
  }
}

/** The addresses that one agent tries or found taken. */
export class TriedAddresses {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #random: Random;
  readonly #until = new Map<bigint, { address: Address; until: number }>();

  constructor(clock: Pick<Clock, 'now'>, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Picks an address; {@link settle} must follow. @param suits returns false for other addresses that the agent must not try */
  pick(pool: Pool, space: AddressSpace, suits: (address: Address) => boolean): Address | undefined {
    this.#forget();
    const found = this.#draw(pool, space, suits) ?? this.#drawAmongOthers(pool, space);
    if (found !== undefined) this.#until.set(found.value, { address: found, until: Infinity });
    return found;
  }

  settle(address: Address): void {
    // in the order in which they were found taken
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

  /** Draws if few addresses are left, without those that this agent tries. */
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
