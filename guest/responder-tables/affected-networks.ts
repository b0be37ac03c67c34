import { BY_NETWORK } from '../../addressing/directory/affected.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import { joinKey, objectKey } from '../../api/meta.js';
import { changesNetwork } from '../../cluster/transforms.js';
import { BY_WORKLOAD, workloadOfClaim } from '../../cluster/watch-specs.js';
import { networksOnWire } from '../running-guests.js';
import type { GuestViews } from '../views.js';
import { probedPoolOf } from '../watch-specs.js';

/** Collects the networks whose tables depend on what changes. */
export class AffectedNetworks {
  readonly #views: GuestViews;
  /** Of a claim, VMI or lease that has changed. */
  readonly #networks = new Set<string>();
  /** Whose pools or NADs have changed: other interfaces of their VMs may get or lose the default route. */
  readonly #redefined = new Set<string>();
  /** Whose addresses ipam wants probed, or no longer. */
  #pools = new Set<string>();
  /** As they were when the networks were taken last. */
  #wires: Pick<PoolDirectory, 'poolsBySegment'> = { poolsBySegment: new Map() };

  constructor(views: GuestViews) {
    this.#views = views;
  }

  /** @param onChange called after each change that may concern a network */
  follow(onChange: () => void): void {
    const { directory, watched } = this.#views;
    const { claims, vmis, networks, claimLeases } = watched;
    claims.onChange(({ object, before = object }) => {
      for (const claim of [before, object]) {
        this.#networks.add(claim.spec.network);
        for (const workload of workloadOfClaim(claim)) this.#addWorkload(workload);
      }
      onChange();
    });
    vmis.onChange(({ object }) => {
      this.#addWorkload(objectKey(object));
      onChange();
    });
    claimLeases.onChange(({ object, before = object }) => {
      for (const lease of [before, object]) {
        const { owner } = lease;
        const claim = owner && claims.cache.get(joinKey(owner.namespace, owner.name));
        if (claim !== undefined) this.#networks.add(claim.spec.network);
        for (const pool of probedPoolOf(lease)) this.#pools.add(pool);
      }
      onChange();
    });
    networks.onChange((change) => {
      if (!changesNetwork(change)) return;
      const { object, before = object } = change;
      for (const { config } of [before, object]) if (config.ok) this.#redefined.add(config.network.name);
      onChange();
    });
    directory.onChange((changes) => {
      for (const network of changes.keys()) this.#redefined.add(network);
      onChange();
    });
  }

  /** Returns what has changed since the last call. */
  take(): { networks: ReadonlySet<string>; pools: ReadonlySet<string> } {
    // the directory tells its changes at the latest when it is asked
    const { poolsBySegment } = this.#views.directory;
    this.#addRoutes();
    // a network that has left a segment may have had a MAC address there
    const wires = [this.#wires, { poolsBySegment }].map((wire) => networksOnWire([...this.#networks], wire));
    const pools = this.#pools;
    this.#wires = { poolsBySegment };
    this.#networks.clear();
    this.#pools = new Set();
    return { networks: new Set(wires.flatMap((each) => [...each])), pools };
  }

  #addRoutes(): void {
    const { cache } = this.#views.watched.claims;
    const workloads = new Set<string>();
    for (const network of this.#redefined) {
      this.#networks.add(network);
      for (const claim of cache.byIndex(BY_NETWORK, network))
        for (const workload of workloadOfClaim(claim)) workloads.add(workload);
    }
    this.#redefined.clear();
    for (const workload of workloads) this.#addWorkload(workload);
  }

  #addWorkload(workload: string): void {
    for (const { spec } of this.#views.watched.claims.cache.byIndex(BY_WORKLOAD, workload))
      this.#networks.add(spec.network);
  }
}
