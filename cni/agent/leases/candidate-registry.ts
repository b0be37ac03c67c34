import type { AddressLease } from '../../../api/address-lease.js';
import type { Pool } from '../../../addressing/pool/pool.js';
import type { Clock, Random } from '../../../kube/clock.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import type { WatchSpec } from '../../../kube/informers.js';
import { type LeaseSummary, SpaceCandidates, type SpaceInformer, transformToLeaseSummary } from './space-candidates.js';

export interface CandidateRegistryDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Whether to watch an address space from the first ADD, and not only after random attempts have failed. */
  readonly isEager: boolean;
  /** Creates an informer of leases, which is started and stopped here. */
  readonly createInformer: (watched: WatchSpec<AddressLease, LeaseSummary>) => SpaceInformer;
}

/** How long the leases of an address space are watched after the last ADD that used it. */
const IDLE_MS = 15 * 60_000;

/** The candidates of each address space that pods of this node use. */
export class CandidateRegistry {
  readonly #deps: CandidateRegistryDeps;
  readonly #spaces = new Map<string, SpaceCandidates>();

  constructor(deps: CandidateRegistryDeps) {
    this.#deps = deps;
  }

  /** Returns the candidates of the pool's address space, which other pools may share. */
  forPool(pool: Pool): SpaceCandidates {
    const { addressSpace } = pool;
    const space = this.#spaces.get(addressSpace) ?? this.#open(addressSpace);
    space.setPool(pool);
    if (this.#deps.isEager) space.watch();
    return space;
  }

  /** Stops the watches of address spaces that were not used for a long time. */
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
    const open = () => createInformer({ resource: ADDRESS_LEASES, fieldSelector, transform: transformToLeaseSummary });
    const space = new SpaceCandidates(addressSpace, { open, clock, random });
    this.#spaces.set(addressSpace, space);
    return space;
  }
}
