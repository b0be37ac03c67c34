import type { PoolDirectory } from '../../addressing/directory/directory.js';
import { coolingStart } from '../../addressing/lease/cooling-start.js';
import { type LeaseRules, leaseTimesOf, minCooldownMs } from '../../addressing/lease/lease-times.js';
import {
  type LeaseRecord,
  type LeaseTimes,
  expireLease,
  expiresAt,
  isReservation,
  mayExpire,
  stateOf,
} from '../../addressing/lease/lease.js';
import { writeLease } from '../../cluster/lease-writes.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isConflict, isNotFound, messageOf } from '../../kube/errors.js';
import { forEachParallel, runInSlices } from '../../kube/run-in-slices.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { CollectorReport } from './report.js';

export interface ExpiryDeps extends ExcessRules {
  readonly book: Pick<LeaseBook, 'expiring' | 'forget' | 'recordWrite' | 'onChange'>;
  readonly client: Pick<Client, 'create' | 'patch' | 'delete'>;
  readonly timesOf: LeaseTimesLookup;
  readonly clock: Clock;
  readonly report: CollectorReport;
  /** Nothing is deleted while this returns false. */
  readonly isGateOpen: () => boolean;
}

/** How many leases are deleted in one batch. */
const MAX_BATCH = 10_000;
const MAX_PARALLEL = 64;
/** Releases come in bursts, and every search reads all released leases. Leases that are due within this time are deleted together. */
const MIN_PAUSE_MS = 1_000;
/** The pause between two batches if more leases are due than one batch takes. */
const PAUSE_BETWEEN_MS = 250;
const IMMEDIATELY = -Infinity;
/** The longest pause: a pool may be edited to expire leases earlier, and the gate may open. */
const MAX_PAUSE_MS = 30_000;
const PAUSE_AFTER_FAILURE_MS = 5_000;

/** Returns the leases that may expire, at most `limit`, and when the next one may; in short steps, because there can be very many. */
export function* dueLeases(
  leases: Iterable<LeaseRecord>,
  timesOf: LeaseTimesLookup,
  { now, limit }: { now: number; limit: number },
): Generator<undefined, { due: LeaseRecord[]; next: number }> {
  const due: LeaseRecord[] = [];
  let next = Infinity;
  for (const lease of leases) {
    yield;
    const times = timesOf(lease);
    if (times === undefined) continue;
    if (!mayExpire(lease, times, now)) {
      // a lease that is being deleted already has no next time
      if (expiresAt(lease, times) > now) next = Math.min(next, expiresAt(lease, times));
    } else if (due.length < limit) due.push(lease);
    else next = now;
  }
  return { due, next };
}

/** Deletes released and quarantined leases when their time is over. Reservations become unowned again instead. */
export class Expiry {
  readonly #deps: ExpiryDeps;
  #abort: AbortController | undefined;
  #timer: { at: number; cancel: () => void } | undefined;
  #running: Promise<void> | undefined;
  /** How long the last search took. */
  #searchMs = 0;
  /** When the first of the leases released during this run may expire, in the clock's milliseconds. */
  #nextSince = Infinity;
  /** Leases that another writer changed, by UID: until when they are left alone, in the clock's milliseconds. */
  readonly #changed = new Map<string, number>();

  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
    deps.book.onChange(({ after }) => this.#planFor(after));
  }

  start(): void {
    this.#abort = new AbortController();
    this.#plan(0);
  }

  /** Stops, and resolves after the last deletion. */
  async stop(): Promise<void> {
    this.#abort?.abort();
    this.#abort = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#running;
  }

  #planFor(lease: LeaseRecord | undefined): void {
    if (this.#abort === undefined || lease === undefined) return;
    const times = this.#deps.timesOf(lease);
    if (times === undefined) return;
    const at = expiresAt(lease, times);
    if (at === Infinity) return;
    if (this.#running === undefined) this.#plan(at - this.#deps.clock.now());
    else this.#nextSince = Math.min(this.#nextSince, at);
  }

  /** Keeps the earliest timer. */
  #plan(inMs: number): void {
    const { clock } = this.#deps;
    // at most a fifth of the time is spent on searches
    const pause = Math.max(inMs === IMMEDIATELY ? PAUSE_BETWEEN_MS : MIN_PAUSE_MS, 4 * this.#searchMs);
    const bounded = Math.min(Math.max(inMs, pause), MAX_PAUSE_MS);
    const at = clock.now() + bounded;
    if (this.#timer !== undefined && this.#timer.at <= at) return;
    this.#timer?.cancel();
    const cancel = clock.setTimer(bounded, () => {
      this.#timer = undefined;
      this.#running = this.#run();
    });
    this.#timer = { at, cancel };
  }

  async #run(): Promise<void> {
    const signal = this.#abort?.signal;
    const next = await this.#expire(signal);
    this.#running = undefined;
    if (signal?.aborted === false) this.#plan(next);
  }

  /** @returns the milliseconds until the next search */
  async #expire(signal: AbortSignal | undefined): Promise<number> {
    const { clock, isGateOpen } = this.#deps;
    if (!isGateOpen()) return Infinity;
    this.#nextSince = Infinity;
    const began = clock.now();
    const found = await runInSlices(this.#search(), clock, signal);
    this.#searchMs = clock.now() - began;
    if (found === undefined) return Infinity;
    const { due, next } = found;
    let failures = 0;
    await forEachParallel(
      due,
      MAX_PARALLEL,
      async (lease) => {
        if (isGateOpen() && (await this.#delete(lease, signal)) === 'failed') failures++;
      },
      signal,
    );
    if (!isGateOpen()) return Infinity;
    if (failures > 0) return PAUSE_AFTER_FAILURE_MS;
    if (due.length === MAX_BATCH) return IMMEDIATELY;
    return Math.min(next, this.#nextSince, ...this.#changed.values()) - clock.now();
  }

  *#search(): ReturnType<typeof dueLeases> {
    const leases = this.#expiring();
    const timesOf = yield* timesWithoutExcess(leases, this.#deps.timesOf, this.#deps);
    return yield* dueLeases(leases, timesOf, { now: this.#deps.clock.now(), limit: MAX_BATCH });
  }

  /** The released and quarantined leases, without those that another writer changed: the watch will show their state. */
  #expiring(): LeaseRecord[] {
    const now = this.#deps.clock.now();
    for (const [uid, until] of this.#changed) if (until <= now) this.#changed.delete(uid);
    return [...this.#deps.book.expiring()].filter(({ metadata }) => !this.#changed.has(metadata.uid));
  }

  async #delete(lease: LeaseRecord, signal: AbortSignal | undefined): Promise<'deleted' | 'changed' | 'failed'> {
    const { book, client, clock, report } = this.#deps;
    const { name, uid } = lease.metadata;
    try {
      const left = await writeLease(client, expireLease(lease), signal === undefined ? {} : { signal });
      if (left === undefined) book.forget(name, uid);
      else book.recordWrite(left);
      report.expired(lease);
      return 'deleted';
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) {
        // another writer allocated, changed or deleted it
        this.#changed.set(uid, clock.now() + PAUSE_AFTER_FAILURE_MS);
        return 'changed';
      }
      if (!signal?.aborted) report.notExpired(lease, messageOf(error));
      return 'failed';
    }
  }
}

/** Released leases that a derived pool keeps. A quota bounds the claims of a tenant, but not how often they are deleted and created again. */
export const MAX_RELEASED_LEASES = 1_024;

interface ExcessRules {
  /** NADs made the pool, so a tenant decides how long its leases stay. */
  readonly isDerived: (pool: string) => boolean;
  /** No address may be used again earlier, because an agent may still answer with it. */
  readonly minCooldownMs: number;
}

/**
 * Returns the times of leases, in short steps. The oldest released leases beyond the limit of a derived pool only cool down for the minimum time.
 */
export function* timesWithoutExcess(
  leases: readonly LeaseRecord[],
  timesOf: LeaseTimesLookup,
  { isDerived, minCooldownMs }: ExcessRules,
): Generator<undefined, LeaseTimesLookup> {
  const released = new Map<string, LeaseRecord[]>();
  for (const lease of leases) {
    yield;
    if (stateOf(lease) !== 'released' || isReservation(lease)) continue;
    const ofPool = released.get(lease.pool);
    if (ofPool === undefined) released.set(lease.pool, [lease]);
    else ofPool.push(lease);
  }
  const excess = new Set<string>();
  for (const [pool, ofPool] of released) {
    if (ofPool.length <= MAX_RELEASED_LEASES || !isDerived(pool)) continue;
    yield;
    ofPool.sort((a, b) => coolingStart(a) - coolingStart(b));
    for (const { metadata } of ofPool.slice(0, -MAX_RELEASED_LEASES)) excess.add(metadata.uid);
  }
  return (lease) => {
    const times = timesOf(lease);
    return times !== undefined && excess.has(lease.metadata.uid) ? { cooldownMs: minCooldownMs, stickyMs: 0 } : times;
  };
}

/** Returns the times of a lease; undefined if they are unknown, in which case the lease is kept. */
export type LeaseTimesLookup = (lease: LeaseRecord) => LeaseTimes | undefined;

/** Returns a lookup of the times of leases: the minimum if the pool is gone, and none if the pool is invalid, which keeps its leases. */
export function leaseTimesLookup(
  directory: Pick<PoolDirectory, 'pool' | 'stateOf'>,
  rules: LeaseRules,
): LeaseTimesLookup {
  return ({ pool: name }): LeaseTimes | undefined => {
    const pool = directory.pool(name);
    if (pool !== undefined) return leaseTimesOf(pool, rules);
    return directory.stateOf(name) === undefined
      ? { cooldownMs: minCooldownMs(rules.maxStalenessMs), stickyMs: 0 }
      : undefined;
  };
}
