import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { IpamConfig } from '../../process/config.js';
import type { PersistentIPsGate } from '../../cluster/persistent-ips-gate.js';
import type { ClaimPod, ClaimPods } from '../claims/claim-pods.js';
import type { PoolDirectory } from '../directory/directory.js';
import { collectIntervalMs } from '../core/lease-times.js';
import { Expiry, type ReleasedLeases } from './expiry.js';
import { UnseenLeaseCheck, type UnseenLeases } from './unseen-leases.js';
import type { CollectorReport } from './report.js';
import { type FollowedCache, LeakSearch, type LeaseLedger } from './leak-search.js';
import { leaseTimesLookup } from './lease-times-lookup.js';

export interface CollectorDeps {
  /** A {@link LeaseBook}. */
  readonly book: LeaseLedger & ReleasedLeases & UnseenLeases;
  readonly client: Pick<Client, 'get' | 'listAs' | 'create' | 'patch' | 'delete'>;
  /** The informers of claims and of all pods. */
  readonly claims: FollowedCache<IPAMClaim>;
  readonly pods: FollowedCache<ClaimPod>;
  readonly users: Pick<ClaimPods, 'podsOf'>;
  readonly directory: Pick<PoolDirectory, 'pool' | 'stateOf'>;
  readonly clock: Clock;
  readonly report: CollectorReport;
  /** Closed: nothing is freed. */
  readonly gate: PersistentIPsGate;
  readonly config: Pick<IpamConfig, 'collectAfterMs' | 'maxStalenessMs' | 'featureGates'>;
}

/** Frees what nobody needs: leaked leases are released, released ones deleted after their time. */
export interface Collector {
  /** Begins to work, once all caches are filled; again after a stop. */
  start(): void;
  /** Resolves when nothing is written any more. */
  stop(): Promise<void>;
}

/** To be made once in a process: it follows the book for good. */
export function createCollector(deps: CollectorDeps): Collector {
  return new LeaseCollector(deps);
}

class LeaseCollector implements Collector {
  readonly #deps: CollectorDeps;
  readonly #expiry: Expiry;
  readonly #roundMs: number;
  #abort: AbortController | undefined;
  #rounds: Promise<void> = Promise.resolve();

  constructor(deps: CollectorDeps) {
    const { directory, gate, config } = deps;
    this.#deps = deps;
    this.#roundMs = collectIntervalMs(config.collectAfterMs);
    const timesOf = leaseTimesLookup(directory, {
      maxStalenessMs: config.maxStalenessMs,
      stickyMAC: config.featureGates.stickyMAC,
    });
    this.#expiry = new Expiry({ ...deps, timesOf, isGateOpen: () => gate.isOpen() });
  }

  start(): void {
    this.#abort = new AbortController();
    this.#expiry.start();
    this.#rounds = this.#search(this.#abort.signal);
  }

  async stop(): Promise<void> {
    this.#abort?.abort();
    await Promise.all([this.#expiry.stop(), this.#rounds]);
  }

  async #search(signal: AbortSignal): Promise<void> {
    const { clock, config, gate, report } = this.#deps;
    const leaks = new LeakSearch({ ...this.#deps, collectAfterMs: config.collectAfterMs });
    const phantoms = new UnseenLeaseCheck(this.#deps, config.collectAfterMs);
    while (!signal.aborted) {
      await phantoms.round(clock.now(), signal);
      if (gate.isOpen()) await leaks.round(signal);
      else leaks.forget();
      await clock.sleep(this.#roundMs, signal);
    }
    report.suspected(0);
  }
}
