import { type LeaseRecord, expireLease } from '../../addressing/lease/lease.js';
import { writeLease } from '../../cluster/lease-writes.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isConflict, isNotFound, messageOf } from '../../kube/errors.js';
import { forEachParallel, runInSlices } from '../../kube/run-in-slices.js';
import type { LeaseBook, LeaseChange } from '../leases/lease-book.js';
import { ExpiryQueue, type ExpiryQueueDeps } from './expiry-queue.js';
import type { CollectorReport } from './report.js';

export interface ExpiryDeps extends ExpiryQueueDeps {
  readonly book: Pick<LeaseBook, 'expiring' | 'get' | 'forget' | 'recordWrite' | 'onChange'>;
  readonly client: Pick<Client, 'create' | 'patch' | 'delete'>;
  readonly clock: Clock;
  readonly report: CollectorReport;
  /** Nothing is deleted while this returns false. */
  readonly isGateOpen: () => boolean;
}

/** How many leases are deleted in one batch. */
const MAX_BATCH = 10_000;
const MAX_PARALLEL = 64;
/** Releases come in bursts. Leases that are due within this time are deleted together. */
const MIN_PAUSE_MS = 250;
/** The longest pause, after which all leases are read again: a pool may be edited to expire leases earlier, and the gate may open. */
const MAX_PAUSE_MS = 30_000;
const PAUSE_AFTER_FAILURE_MS = 5_000;

/** Deletes released and quarantined leases when their time is over. Reservations become unowned again instead. */
export class Expiry {
  readonly #deps: ExpiryDeps;
  #abort: AbortController | undefined;
  #timer: { at: number; cancel: () => void } | undefined;
  #running: Promise<void> | undefined;
  readonly #queue: ExpiryQueue;
  /** When all leases are read again, in the clock's milliseconds. */
  #rebuildAt = -Infinity;

  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
    this.#queue = new ExpiryQueue(deps);
    deps.book.onChange((change) => this.#observe(change));
  }

  start(): void {
    this.#abort = new AbortController();
    this.#rebuildAt = -Infinity;
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

  #observe(change: LeaseChange): void {
    if (this.#abort === undefined) return;
    this.#queue.observe(change);
    if (this.#running === undefined) this.#plan(this.#queue.nextAt - this.#deps.clock.now());
  }

  /** Keeps the earliest timer. */
  #plan(inMs: number): void {
    const { clock } = this.#deps;
    const bounded = Math.min(Math.max(inMs, MIN_PAUSE_MS), MAX_PAUSE_MS);
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

  /** @returns the milliseconds until the next run */
  async #expire(signal: AbortSignal | undefined): Promise<number> {
    const { clock, isGateOpen } = this.#deps;
    if (!isGateOpen()) return Infinity;
    if (clock.now() >= this.#rebuildAt) {
      await runInSlices(this.#queue.rebuild(), clock, signal);
      this.#rebuildAt = clock.now() + MAX_PAUSE_MS;
    }
    let left = 0;
    const expire = async (lease: LeaseRecord) => {
      if (!isGateOpen() || !(await this.#delete(lease, signal))) left++;
    };
    await forEachParallel(this.#queue.take(clock.now(), MAX_BATCH), MAX_PARALLEL, expire, signal);
    if (left === 0) return this.#queue.nextAt - clock.now();
    // the leases that are left are found again
    this.#rebuildAt = clock.now() + PAUSE_AFTER_FAILURE_MS;
    return PAUSE_AFTER_FAILURE_MS;
  }

  /** @returns false if the lease is still to be deleted */
  async #delete(lease: LeaseRecord, signal: AbortSignal | undefined): Promise<boolean> {
    const { book, client, report } = this.#deps;
    const { name, uid } = lease.metadata;
    try {
      const left = await writeLease(client, expireLease(lease), { signal });
      if (left === undefined) book.forget(name, uid);
      else book.recordWrite(left);
      report.expired(lease);
      return true;
    } catch (error) {
      // another writer allocated, changed or deleted it: the watch will show its state
      if (isConflict(error) || isNotFound(error)) return true;
      if (!signal?.aborted) report.notExpired(lease, messageOf(error));
      return false;
    }
  }
}
