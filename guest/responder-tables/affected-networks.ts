import { joinKey, objectKey } from '../../api/meta.js';
import { BY_WORKLOAD, workloadOfClaim } from '../../cluster/watch-specs.js';
import { onAffectedWorkloads } from '../layer2-guests.js';
import { KnownWires } from '../running-guests.js';
import type { GuestViews } from '../views.js';
import { probedPoolOf } from '../watch-specs.js';

/** Collects the networks whose tables depend on what changes. */
export class AffectedNetworks {
  readonly #views: GuestViews;
  /** Of a claim, VMI or lease that has changed. */
  readonly #networks = new Set<string>();
  /** Workloads on pools or NADs that have changed: other interfaces of their VMs may get or lose the default route. */
  readonly #workloads = new Set<string>();
  /** Whose addresses ipam wants probed, or no longer. */
  #pools = new Set<string>();
  readonly #wires = new KnownWires();

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
    onAffectedWorkloads({ claims: claims.cache, vmis: vmis.cache }, { networks, directory }, (workloads) => {
      for (const workload of workloads) this.#workloads.add(workload);
      onChange();
    });
    directory.onChange((changes) => {
      // an administrator's pool, whose table says more than its guests
      for (const [network, namespaces] of changes) if (namespaces === undefined) this.#networks.add(network);
    });
  }

  /** Returns what has changed since the last call. */
  take(): { networks: ReadonlySet<string>; pools: ReadonlySet<string> } {
    // the directory tells its changes at the latest when it is asked
    const { poolsBySegment } = this.#views.directory;
    for (const workload of this.#workloads) this.#addWorkload(workload);
    this.#workloads.clear();
    const networks = this.#wires.concernedBy(this.#networks, { poolsBySegment });
    const pools = this.#pools;
    this.#networks.clear();
    this.#pools = new Set();
    return { networks, pools };
  }

  #addWorkload(workload: string): void {
    for (const { spec } of this.#views.watched.claims.cache.byIndex(BY_WORKLOAD, workload))
      this.#networks.add(spec.network);
  }
}
