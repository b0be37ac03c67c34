import type { AddressLease } from '../../../api/address-lease.js';
import type { Pool } from '../../../ipam/core/pool.js';
import type { Clock, Random } from '../../../kube/clock.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import type { Watched } from '../../../kube/informers.js';
import { type SeenLease, SpaceCandidates, type SpaceFeed, shrinkSeen } from './space-candidates.js';

export interface CandidatesDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** A space is followed from the first ADD on, and not only once guessing at its addresses has failed. */
  readonly isEager: boolean;
  /** Makes what follows leases; it is started and stopped here. */
  readonly follow: (watched: Watched<AddressLease, SeenLease>) => SpaceFeed;
}

/** A node whose pods do not ask for a network any more need not follow its leases. */
const IDLE_MS = 15 * 60_000;

/** The address spaces from which pods of this node draw. */
export class Candidates {
  readonly #deps: CandidatesDeps;
  readonly #spaces = new Map<string, SpaceCandidates>();

  constructor(deps: CandidatesDeps) {
    this.#deps = deps;
  }

  /** All leases of the space: those of other pools stand in the way, too. */
  of(pool: Pool): SpaceCandidates {
    const { addressSpace } = pool;
    const space = this.#spaces.get(addressSpace) ?? this.#open(addressSpace);
    space.use(pool);
    if (this.#deps.isEager) space.follow();
    return space;
  }

  /** Follows no more what nobody has asked for in a long time. */
  async prune(): Promise<void> {
    const now = this.#deps.clock.now();
    const idle = [...this.#spaces].filter(([, { usedAt }]) => now - usedAt >= IDLE_MS);
    for (const [name] of idle) this.#spaces.delete(name);
    await Promise.all(idle.map(([, space]) => space.stop()));
  }

  async stop(): Promise<void> {
    const spaces = [...this.#spaces.values()];
    this.#spaces.clear();
    await Promise.all(spaces.map((space) => space.stop()));
  }

  #open(addressSpace: string): SpaceCandidates {
    const { follow, clock, random } = this.#deps;
    const fieldSelector = `spec.addressSpace=${addressSpace}`;
    const open = () => follow({ resource: ADDRESS_LEASES, fieldSelector, shrink: shrinkSeen });
    const space = new SpaceCandidates(addressSpace, { open, clock, random });
    this.#spaces.set(addressSpace, space);
    return space;
  }
}
