import type { AddressLease } from '../../api/address-lease.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isConflict, isNotFound, messageOf } from '../../kube/errors.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { type LeaseRecord, type LeaseTimes, expireLease, expiresAt, mayExpire } from '../core/lease.js';
import { forEachParallel } from '../../kube/for-each-parallel.js';
import type { CollectorReport } from './report.js';

/** @returns undefined where it cannot be known: the lease is kept */
export type LeaseTimesLookup = (lease: LeaseRecord) => LeaseTimes | undefined;

/** What of the lease book is read and written; {@link LeaseBook} is one. */
export interface ReleasedLeases {
  released(): Iterable<LeaseRecord>;
  forget(name: string, uid: string): void;
  recordWrite(lease: AddressLease): void;
  onChange(handler: (change: { before?: LeaseRecord; after?: LeaseRecord }) => void): void;
}

export interface ExpiryDeps {
  readonly book: ReleasedLeases;
  readonly client: Pick<Client, 'create' | 'patch' | 'delete'>;
  readonly timesOf: LeaseTimesLookup;
  readonly clock: Clock;
  readonly report: CollectorReport;
  /** Whether anything may be freed. */
  readonly isGateOpen: () => boolean;
}

/** Deletions of one go. */
const MAX_BATCH = 500;
const MAX_PARALLEL = 8;
/** Releases come in bursts, and a look goes through all that are kept: all that are due within this go together. */
const MIN_PAUSE_MS = 1_000;
/** Between one go and the next where more are due than one takes. */
const PAUSE_BETWEEN_MS = 250;
const IMMEDIATELY = -Infinity;
/** Pools may be edited to let go earlier, and the gate may open. */
const MAX_PAUSE_MS = 30_000;
const PAUSE_AFTER_FAILURE_MS = 5_000;

/** Which released leases have had their time, at most `limit` of them, and when the next one has. */
export function dueLeases(
  released: Iterable<LeaseRecord>,
  timesOf: LeaseTimesLookup,
  { now, limit }: { now: number; limit: number },
): { due: LeaseRecord[]; next: number } {
  const due: LeaseRecord[] = [];
  let next = Infinity;
  for (const lease of released) {
    const times = timesOf(lease);
    if (times === undefined) continue;
    if (!mayExpire(lease, times, now)) {
      // what is being deleted already has no next time
      if (expiresAt(lease, times) > now) next = Math.min(next, expiresAt(lease, times));
    } else if (due.length < limit) due.push(lease);
    else next = now;
  }
  return { due, next };
}

/** Deletes released leases when their time is over; those of the static table are reserved again. */
export class Expiry {
  readonly #deps: ExpiryDeps;
  #abort: AbortController | undefined;
  #timer: { at: number; cancel: () => void } | undefined;
  #running: Promise<void> | undefined;
  /** When the first one of those has had its time that were released since the look of this run, in milliseconds since the epoch. */
  #nextSince = Infinity;
  /** By UID of leases that somebody else has written to: until when they are left alone, in the clock's ms. */
  readonly #changed = new Map<string, number>();

  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
    deps.book.onChange(({ after }) => this.#planFor(after));
  }

  start(): void {
    this.#abort = new AbortController();
    this.#plan(0);
  }

  /** Resolves when nothing is deleted any more. */
  async stop(): Promise<void> {
    this.#abort?.abort();
    this.#abort = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#running;
  }

  #planFor(lease: LeaseRecord | undefined): void {
    if (this.#abort === undefined || lease?.releasedAt === undefined) return;
    const times = this.#deps.timesOf(lease);
    if (times === undefined) return;
    const at = expiresAt(lease, times);
    if (this.#running === undefined) this.#plan(at - this.#deps.clock.wall());
    else this.#nextSince = Math.min(this.#nextSince, at);
  }

  /** The earliest plan is kept. A look is never far away, so that one after the clock was set is not late. */
  #plan(inMs: number): void {
    const { clock } = this.#deps;
    const pause = inMs === IMMEDIATELY ? PAUSE_BETWEEN_MS : MIN_PAUSE_MS;
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

  /** @returns in how many ms to look again */
  async #expire(signal: AbortSignal | undefined): Promise<number> {
    const { timesOf, clock, isGateOpen } = this.#deps;
    if (!isGateOpen()) return Infinity;
    this.#nextSince = Infinity;
    const { due, next } = dueLeases(this.#released(), timesOf, { now: clock.wall(), limit: MAX_BATCH });
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
    return Math.min(Math.min(next, this.#nextSince) - clock.wall(), Math.min(...this.#changed.values()) - clock.now());
  }

  /** All but those that are not what the book has: the watch is to tell what they are. */
  #released(): LeaseRecord[] {
    const now = this.#deps.clock.now();
    for (const [uid, until] of this.#changed) if (until <= now) this.#changed.delete(uid);
    return [...this.#deps.book.released()].filter(({ metadata }) => !this.#changed.has(metadata.uid));
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
        // somebody took it, wrote to it, or deleted it
        this.#changed.set(uid, clock.now() + PAUSE_AFTER_FAILURE_MS);
        return 'changed';
      }
      if (!signal?.aborted) report.notExpired(lease, messageOf(error));
      return 'failed';
    }
  }
}
