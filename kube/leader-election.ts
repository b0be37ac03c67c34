import { setMaxListeners } from 'node:events';
import type { KubeObject } from '../api/meta.js';
import type { CallOptions, Client } from './client.js';
import type { Clock, Random } from './clock.js';
import { isAlreadyExists, isConflict, messageOf } from './errors.js';
import type { Logger } from './log.js';
import { namespacedResource } from './resource.js';

interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  /** MicroTime, as renewTime. */
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}

/** coordination.k8s.io/v1 */
export interface Lease extends KubeObject {
  spec?: LeaseSpec;
}

export const LEASES = namespacedResource<Lease>('coordination.k8s.io/v1', 'leases', 'Lease');

interface LeaderElectionOptions {
  client: Client;
  /** Namespace of the Lease. */
  namespace: string;
  name: string;
  /** Of the Lease. */
  labels?: Readonly<Record<string, string>>;
  /** Unique among the candidates. */
  identity: string;
  /** How long other candidates wait for a leader that does not renew. Default 15 000. */
  leaseDurationMs?: number;
  /** How long a leader continues without a renewal. Less than leaseDurationMs; default 10 000. */
  renewDeadlineMs?: number;
  /** Default 2 000. */
  retryPeriodMs?: number;
  clock: Clock;
  random: Random;
  log: Logger;
}

interface LeaderCallbacks {
  /** The signal aborts when leadership ends, before another candidate may take over. */
  onStarted(signal: AbortSignal): void;
  /** The lease is released only after this has finished. */
  onStopped: (() => void) | (() => Promise<void>);
}

/**
 * Elects one leader among several candidates, by a Lease that the leader renews. As in client-go, clocks are never compared: a lease has
 * expired if it has not changed for its duration, measured with our own timers.
 */
export class LeaderElection {
  readonly #options: Required<LeaderElectionOptions>;
  readonly #log: Logger;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #isLeader = false;
  /** By the clock. */
  #termEndsAt = -Infinity;
  #leaseLost = AbortSignal.abort();
  /** Ends the last term, and aborts its writes. */
  #lose: () => void = () => undefined;
  /** The lease as it was last read or written. */
  #observed: Lease | undefined;
  #expired = false;
  #cancelExpiry: () => void = () => undefined;
  #cancelDeadline: () => void = () => undefined;
  /** A request that hangs leaves time for another one before the deadline. */
  readonly #call: CallOptions;

  constructor(options: LeaderElectionOptions) {
    const { labels = {}, leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2_000 } = options;
    if (!(retryPeriodMs < renewDeadlineMs && renewDeadlineMs < leaseDurationMs)) {
      throw new RangeError(
        `leader election needs retryPeriodMs (${retryPeriodMs}) < renewDeadlineMs (${renewDeadlineMs}) < leaseDurationMs (${leaseDurationMs})`,
      );
    }
    this.#options = { ...options, labels, leaseDurationMs, renewDeadlineMs, retryPeriodMs };
    this.#call = { deadlineMs: renewDeadlineMs / 2 };
    this.#log = options.log.child({ lease: `${options.namespace}/${options.name}`, identity: options.identity });
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  /**
   * Ends a term that is over by the clock. When a paused process continues, it handles what its connections received before its timers.
   * @returns whether the term continues
   */
  confirm(): boolean {
    if (this.#options.clock.now() >= this.#termEndsAt) this.#lose();
    return this.#isLeader;
  }

  /** Aborts before another candidate may lead. After a stop, running work may write until then. */
  get leaseLost(): AbortSignal {
    this.confirm();
    return this.#leaseLost;
  }

  /** Waits for the lease, leads, and resolves when leadership has ended or `stop` was called. May be called again unless stopped. */
  run(callbacks: LeaderCallbacks): Promise<void> {
    this.#running ??= this.#lead(callbacks).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Ends leadership and releases the lease, so that a successor starts at once. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #lead(callbacks: LeaderCallbacks): Promise<void> {
    const term = new AbortController();
    const end = () => {
      this.#isLeader = false;
      term.abort();
    };
    this.#stop.signal.addEventListener('abort', end, { once: true });
    if (this.#stop.signal.aborted) end();
    try {
      await this.#acquire(term);
      if (!term.signal.aborted) await this.#keep(term, end, callbacks);
      await this.#release();
    } finally {
      end();
      this.#lose();
      this.#stop.signal.removeEventListener('abort', end);
      this.#cancelDeadline();
      this.#forget();
    }
  }

  /** Returns when we hold the lease or are stopped. */
  async #acquire(term: AbortController): Promise<void> {
    const { clock, random, retryPeriodMs } = this.#options;
    while (!term.signal.aborted && !(await this.#renew())) {
      // half of what client-go waits: nothing works between two terms
      await clock.sleep((retryPeriodMs / 2) * (0.5 + random() / 2), term.signal);
    }
  }

  async #keep(term: AbortController, end: () => void, callbacks: LeaderCallbacks): Promise<void> {
    const { clock, retryPeriodMs } = this.#options;
    const lost = new AbortController();
    // every running request listens to it, and Node would report a leak
    setMaxListeners(0, lost.signal);
    this.#leaseLost = lost.signal;
    this.#lose = () => {
      lost.abort();
      end();
    };
    this.#isLeader = true;
    this.#log.info({}, 'became the leader');
    callbacks.onStarted(term.signal);
    for (;;) {
      await clock.sleep(retryPeriodMs, term.signal);
      if (term.signal.aborted) break;
      const renewed = await this.#renew();
      if (!renewed && this.#heldByOther()) this.#lose();
    }
    this.#log.info({}, 'stopped leading');
    await callbacks.onStopped();
    this.#lose(); // before the Lease is released
  }

  /**
   * Acquires or renews the lease and extends the term. The term counts from before the write was sent, because no other candidate can have
   * seen the lease earlier.
   * @returns whether we hold the lease
   */
  async #renew(): Promise<boolean> {
    const { clock, renewDeadlineMs } = this.#options;
    const attempt = { late: false, won: false };
    const endsAt = clock.now() + renewDeadlineMs;
    const cancel = clock.setTimer(renewDeadlineMs, () => {
      attempt.late = true;
      if (attempt.won) this.#lose();
    });
    const written = await this.#try();
    if (!written || attempt.late || clock.now() >= endsAt) {
      cancel();
      return false;
    }
    attempt.won = true;
    this.#termEndsAt = endsAt;
    this.#cancelDeadline();
    this.#cancelDeadline = cancel;
    return true;
  }

  /** Never throws. @param isLast whether a conflict is final */
  async #try(isLast = false): Promise<boolean> {
    try {
      return await this.#takeOrRenew();
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error)) {
        // Another candidate wrote the lease, or we did without an answer: read it. A term may end before the next renewal.
        this.#forget();
        this.#log.debug({}, `lease was written meanwhile: ${messageOf(error)}`);
        if (this.#isLeader && !isLast) return this.#try(true);
      } else {
        this.#log.warn({}, `lease cannot be ${this.#isLeader ? 'renewed' : 'acquired'}: ${messageOf(error)}`);
      }
      return false;
    }
  }

  async #takeOrRenew(): Promise<boolean> {
    const { client, namespace, name } = this.#options;
    // A leader knows its last write, and the server checks the resourceVersion, so no read is needed.
    if (!this.#isLeader || this.#observed === undefined) {
      const found = await client.find(LEASES, { namespace, name }, this.#call);
      if (found === undefined) {
        this.#observe(await client.create(LEASES, this.#leaseOf(undefined), this.#call));
        return true;
      }
      this.#observe(found);
    }
    if (this.#heldByOther()) return false;
    this.#observe(await client.replace(LEASES, this.#leaseOf(this.#observed), this.#call));
    return true;
  }

  #heldByOther(): boolean {
    const holder = this.#observed?.spec?.holderIdentity;
    return holder !== undefined && holder !== '' && holder !== this.#options.identity && !this.#expired;
  }

  #observe(lease: Lease): void {
    const known = this.#observed?.metadata.resourceVersion;
    this.#observed = lease;
    if (known !== undefined && known === lease.metadata.resourceVersion) return;
    this.#cancelExpiry();
    this.#expired = false;
    const seconds = lease.spec?.leaseDurationSeconds;
    const durationMs = seconds === undefined ? this.#options.leaseDurationMs : seconds * 1000;
    this.#cancelExpiry = this.#options.clock.setTimer(durationMs, () => {
      this.#expired = true;
    });
  }

  #forget(): void {
    this.#cancelExpiry();
    this.#observed = undefined;
  }

  #leaseOf(before: Lease | undefined): Lease {
    const { clock, namespace, name, labels, identity, leaseDurationMs } = this.#options;
    const now = microTime(clock.wall());
    const spec: LeaseSpec = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
      acquireTime: now,
      renewTime: now,
      leaseTransitions: 0,
    };
    if (before === undefined) return { metadata: { namespace, name, labels }, spec };
    const kept = before.spec?.holderIdentity === identity;
    spec.leaseTransitions = (before.spec?.leaseTransitions ?? 0) + (kept ? 0 : 1);
    if (kept && before.spec?.acquireTime !== undefined) spec.acquireTime = before.spec.acquireTime;
    const metadata = { ...before.metadata, labels: { ...before.metadata.labels, ...labels } };
    return { ...before, metadata, spec: { ...before.spec, ...spec } };
  }

  async #release(): Promise<void> {
    const { client, clock, identity } = this.#options;
    const held = this.#observed;
    if (held?.spec?.holderIdentity !== identity) return;
    const spec = { ...held.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: microTime(clock.wall()) };
    try {
      await client.replace(LEASES, { ...held, spec }, this.#call);
    } catch (error) {
      // It expires by itself.
      this.#log.info({}, `lease cannot be released: ${messageOf(error)}`);
    }
  }
}

/** metav1.MicroTime: RFC 3339 with exactly six digits. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
