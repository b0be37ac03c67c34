import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { IpamConfig } from '../../process/config.js';
import { PeriodicTask } from '../../process/periodic-task.js';
import type { PersistentIPsGate } from '../../cluster/persistent-ips-gate.js';
import type { ClaimPod, ClaimPods } from '../claims/running/claim-pods.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import { collectIntervalMs, minCooldownMs } from '../../addressing/lease/lease-times.js';
import { Expiry, type ExpiryDeps } from './expiry.js';
import { UnseenLeaseCheck, type UnseenLeaseDeps } from './unseen-leases.js';
import type { CollectorReport } from './report.js';
import { type FollowedCache, LeakSearch, type LeakSearchDeps } from './leak-search.js';
import { leaseTimesLookup } from './lease-times-lookup.js';

export interface CollectorDeps {
  readonly book: LeakSearchDeps['book'] & ExpiryDeps['book'] & UnseenLeaseDeps['book'];
  readonly client: Pick<Client, 'get' | 'listAs' | 'create' | 'patch' | 'delete'>;
  /** The informers of claims and of all pods. */
  readonly claims: FollowedCache<IPAMClaim>;
  readonly pods: FollowedCache<ClaimPod>;
  readonly users: Pick<ClaimPods, 'podsOf'>;
  readonly directory: Pick<PoolDirectory, 'pool' | 'stateOf' | 'poolsOf'>;
  readonly clock: Clock;
  readonly report: CollectorReport;
  /** While it is closed, nothing is released or deleted. */
  readonly gate: PersistentIPsGate;
  readonly config: Pick<IpamConfig, 'collectAfterMs' | 'maxStalenessMs' | 'featureGates'>;
}

/** Releases leaked leases, and deletes released ones after their time. */
export interface Collector {
  /** Starts to work. All caches must be filled. May be called again after {@link stop}. */
  start(): void;
  /** Stops, and resolves after the last write. */
  stop(): Promise<void>;
}

/** Creates the collector. Create only one per process, because it never stops following the lease book. */
export function createCollector(deps: CollectorDeps): Collector {
  return new LeaseCollector(deps);
}

class LeaseCollector implements Collector {
  readonly #deps: CollectorDeps;
  readonly #expiry: Expiry;
  #rounds: PeriodicTask | undefined;

  constructor(deps: CollectorDeps) {
    const { directory, gate, config } = deps;
    this.#deps = deps;
    const timesOf = leaseTimesLookup(directory, {
      maxStalenessMs: config.maxStalenessMs,
      stickyMAC: config.featureGates.stickyMAC,
    });
    this.#expiry = new Expiry({
      ...deps,
      timesOf,
      isDerived: (pool) => isDerived(pool, directory),
      minCooldownMs: minCooldownMs(config.maxStalenessMs),
      isGateOpen: () => gate.isOpen(),
    });
  }

  start(): void {
    const { clock, config, gate } = this.#deps;
    const leaks = new LeakSearch({ ...this.#deps, collectAfterMs: config.collectAfterMs });
    const unseenLeases = new UnseenLeaseCheck(this.#deps, config.collectAfterMs);
    const run = async (signal: AbortSignal) => {
      await unseenLeases.round(clock.now(), signal);
      if (gate.isOpen()) await leaks.round(signal);
      else leaks.forget();
    };
    this.#rounds = new PeriodicTask({ clock, pauseMs: collectIntervalMs(config.collectAfterMs), run });
    this.#expiry.start();
    this.#rounds.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#expiry.stop(), this.#rounds?.stop()]);
    this.#deps.report.candidates(0);
  }
}

function isDerived(pool: string, directory: CollectorDeps['directory']): boolean {
  const network = directory.pool(pool)?.network;
  const pools = network === undefined ? [] : directory.poolsOf(network);
  return pools.some(({ name, nadNamespace }) => name === pool && nadNamespace !== undefined);
}
