import type { AddressLease } from '../../../api/address-lease.js';
import type { Pool } from '../../../ipam/core/pool.js';
import type { Clock, Random } from '../../../kube/clock.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import type { WatchSpec } from '../../../kube/informers.js';
import { type LeaseSummary, SpaceCandidates, type SpaceInformer, transformToLeaseSummary } from './space-candidates.js';

export interface CandidateRegistryDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** A space is followed from the first ADD on, and not only once guessing at its addresses has failed. */
  readonly isEager: boolean;
  /** Makes what follows leases; it is started and stopped here. */
  readonly createInformer: (watched: WatchSpec<AddressLease, LeaseSummary>) => SpaceInformer;
}

/** A node whose pods do not ask for a network any more need not follow its leases. */
const IDLE_MS = 15 * 60_000;

/** The address spaces from which pods of this node draw. */
export class CandidateRegistry {
  readonly #deps: CandidateRegistryDeps;
  readonly #spaces = new Map<string, SpaceCandidates>();

  constructor(deps: CandidateRegistryDeps) {
    this.#deps = deps;
  }

  /** All leases of the space: those of other pools stand in the way, too. */
  forPool(pool: Pool): SpaceCandidates {
    const { addressSpace } = pool;
    const space = this.#spaces.get(addressSpace) ?? this.#open(addressSpace);
    space.setPool(pool);
    if (this.#deps.isEager) space.watch();
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
    const { createInformer, clock, random } = this.#deps;
    const fieldSelector = `spec.addressSpace=${addressSpace}`;
    const open = () => createInformer({ resource: ADDRESS_LEASES, fieldSelector, shrink: transformToLeaseSummary });
    const space = new SpaceCandidates(addressSpace, { open, clock, random });
    this.#spaces.set(addressSpace, space);
    return space;
  }
}
