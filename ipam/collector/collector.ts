import type { PoolDirectory } from '../../addressing/directory/directory.js';
import { collectIntervalMs, minCooldownMs } from '../../addressing/lease/lease-times.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { isProofOfAbsence } from '../../kube/absence.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { IpamConfig } from '../../process/config/config.js';
import { PeriodicTask } from '../../process/periodic-task.js';
import type { LeaseBook } from '../leases/lease-book.js';
import { leaseTimesLookup } from './expiry-queue.js';
import { Expiry, type ExpiryDeps } from './expiry.js';
import { LeakSearch, type LeakSearchDeps } from './leak-search.js';

/** While the gate is closed, nothing is released or deleted. */
interface CollectorDeps extends Omit<LeakSearchDeps, 'book' | 'agentNamespace' | 'collectAfterMs'> {
  readonly book: LeakSearchDeps['book'] & ExpiryDeps['book'] & UnseenLeaseDeps['book'];
  readonly directory: Pick<PoolDirectory, 'pool' | 'stateOf' | 'poolsOf'>;
  readonly clock: Clock;
  readonly config: Pick<IpamConfig, 'collectAfterMs' | 'agentNamespace' | 'maxStalenessMs' | 'featureGates'>;
}

/**
 * Releases leaked leases, and deletes released ones after their time. Create only one per process, because it never stops following the lease
 * book.
 */
export class Collector {
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

  /** All caches must be filled. May be called again after {@link stop}. */
  start(): void {
    const { clock, config, gate } = this.#deps;
    const leaks = new LeakSearch({ ...this.#deps, ...config });
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

  /** Resolves after the last write. */
  async stop(): Promise<void> {
    await Promise.all([this.#expiry.stop(), this.#rounds?.stop()]);
    this.#deps.report.clear();
  }
}

function isDerived(pool: string, directory: CollectorDeps['directory']): boolean {
  const network = directory.pool(pool)?.network;
  const pools = network === undefined ? [] : directory.poolsOf(network);
  return pools.some(({ name, nadNamespace }) => name === pool && nadNamespace !== undefined);
}

interface UnseenLeaseDeps {
  readonly book: Pick<LeaseBook, 'unseen' | 'forget'>;
  readonly client: Pick<Client, 'get'>;
}

/** Each check costs one request. */
const MAX_CHECKS_PER_ROUND = 50;

/**
 * Finds leases that only the lease book knows: this process created them, and they were deleted before the watch showed them. Otherwise
 * their addresses would stay occupied, or count as addresses of a claim that has none.
 */
export class UnseenLeaseCheck {
  readonly #deps: UnseenLeaseDeps;
  readonly #afterMs: number;
  /** When each unseen lease was first found, by UID, in milliseconds. */
  #unseen = new Map<string, number>();

  /** @param afterMs how long the watch may lag behind */
  constructor(deps: UnseenLeaseDeps, afterMs: number) {
    this.#deps = deps;
    this.#afterMs = afterMs;
  }

  /** Checks the leases that are due. Only a definite answer about this lease removes it; all others are checked again later. */
  async round(now: number, signal?: AbortSignal): Promise<void> {
    const { book } = this.#deps;
    const unseen = book.unseen();
    this.#unseen = new Map(unseen.map(({ metadata: { uid } }) => [uid, this.#unseen.get(uid) ?? now]));
    const due = unseen.filter(({ metadata: { uid } }) => now - (this.#unseen.get(uid) ?? now) >= this.#afterMs);
    for (const { metadata } of due.slice(0, MAX_CHECKS_PER_ROUND)) {
      if (signal?.aborted) return;
      this.#unseen.delete(metadata.uid);
      if (await this.#isGone(metadata, signal)) book.forget(metadata.name, metadata.uid);
    }
  }

  async #isGone({ name, uid }: LeaseRecord['metadata'], signal: AbortSignal | undefined): Promise<boolean> {
    try {
      const lease = await this.#deps.client.get(ADDRESS_LEASES, { name }, { signal });
      return lease.metadata.uid !== undefined && lease.metadata.uid !== uid;
    } catch (error) {
      return isProofOfAbsence(error, ADDRESS_LEASES, name);
    }
  }
}
