import type { KubeObject } from '../../api/meta.js';
import { statusErrorOfEvent } from '../transport/responses.js';
import type { Client } from '../client.js';
import { type Clock, type Random, systemClock } from '../clock.js';
import { StatusError, TransportError, isNotFound, messageOf } from '../errors.js';
import { type HistoryGuard, HistoryWentBackError } from './history-guard.js';
import { type Logger, silentLogger } from '../log.js';
import { type KubeMetrics, silentMetrics } from '../metrics.js';
import { type Resource, resourcePath } from '../resource.js';
import { TimeSlice } from '../run-in-slices.js';
import { WatchBackoff } from '../retry.js';

/** The resourceVersions between which a list may have missed changes. `from` is empty for the first list. */
export interface ListVersions {
  readonly from: string;
  readonly to: string;
}

/** Receives the transformed objects of a reflector. */
interface ReflectorStore<P> {
  /**
   * Called with all objects after a list, and the versions of the last list or event and of this list. No other method is called before it has
   * ended, and it ends early when the signal aborts.
   */
  replace(projections: P[], versions: ListVersions, signal: AbortSignal): Promise<void> | void;
  upsert(projection: P): void;
  /** Called with the last state of a deleted object. */
  remove(projection: P): void;
  /** Called if an optional kind is not served. Default: an empty list. */
  notServed?(signal: AbortSignal): Promise<void> | void;
}

/** What a watch covers, and how it is kept. */
export interface WatchOptions {
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
  /** The kind need not be served (404): it then counts as empty and is listed again later. */
  optional?: boolean | undefined;
  /** A watch without an event or bookmark for this time is restarted. Default: 130 to 150 s. */
  idleMs?: number | undefined;
  /** The API server ends each watch after this time, so that `lastProgress` is at most twice as old. Default: 300 to 600 s. */
  watchSeconds?: number | undefined;
  /** Lists again after about these times, of which the last repeats, and watches nothing: for a process that makes nearly all changes itself. */
  relistMs?: readonly number[] | undefined;
  clock?: Clock | undefined;
  random?: Random | undefined;
  log?: Logger | undefined;
  metrics?: KubeMetrics | undefined;
  /** Checks after each failure whether the API server's data went back in time. */
  history?: HistoryGuard | undefined;
}

interface ReflectorOptions<T extends KubeObject, P> extends WatchOptions {
  client: Client;
  resource: Resource<T>;
  /** Called for each object as it arrives, so that a long list is never completely in memory. Objects of a list have no managedFields. */
  transform: (object: T) => P;
  store: ReflectorStore<P>;
}

/** A watch that ends cleanly within this time without an event counts as failed and is not restarted at once. */
const SHORT_WATCH_MS = 1_000;
/** The API server sends a bookmark about once a minute: after this time two are missing. Jitter spreads the restarts of clients. */
const IDLE_MS = 130_000;
const IDLE_JITTER_MS = 20_000;
/** A watch that shows no progress for longer should have been restarted: what it told is stale. */
export const MAX_SILENCE_MS = IDLE_MS + IDLE_JITTER_MS;
const WARN_DELAY_MS = 3_000;

interface WatchEvent<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: T;
}

/**
 * Lists a kind and watches it until it is stopped; errors do not end it. Follows client-go's reflector, but the list is always consistent
 * (no resourceVersion), so that a restart never goes back in time.
 */
export class Reflector<T extends KubeObject, P = T> {
  readonly #options: ReflectorOptions<T, P>;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #log: Logger;
  readonly #metrics: KubeMetrics;
  readonly #recovery: WatchBackoff;
  readonly #abort = new AbortController();
  #running: Promise<void> | undefined;
  /** Where the next watch continues; undefined: list first. */
  #version: string | undefined;
  /** The version of the last list or event; empty: none. */
  #seen = '';
  /** A watch has failed: the API server may have other data when it is back. */
  #hasFailed = false;
  #relists = 0;
  #lastProgress = 0;
  #events = 0;
  #forgetProgress: (() => void) | undefined;
  /** Ends the current watch. */
  #interrupt: () => void = () => undefined;

  constructor(options: ReflectorOptions<T, P>) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? Math.random;
    this.#log = (options.log ?? silentLogger).child({ resource: options.resource.plural });
    this.#metrics = options.metrics ?? silentMetrics;
    this.#recovery = new WatchBackoff(this.#random);
  }

  /** All changes until this time have been seen, by this reflector's clock; 0: never. */
  get lastProgress(): number {
    return this.#lastProgress;
  }

  /** A second start has no effect; a stopped reflector stays stopped. */
  start(): void {
    if (this.#abort.signal.aborted) return;
    this.#running ??= this.#run();
    const { resource, relistMs } = this.#options;
    if (relistMs === undefined)
      this.#forgetProgress ??= this.#metrics.watching(resource.plural, () => this.#progressedAt());
  }

  /** Ends the current watch and continues with a new one, for callers that know that it is stale. */
  restartWatch(): void {
    this.#interrupt();
  }

  /** Resolves when it no longer runs. The store is not called after that. */
  async stop(): Promise<void> {
    this.#abort.abort();
    this.#forgetProgress?.();
    await this.#running;
  }

  /** The last progress in ms since the epoch; undefined: never. Its age is measured by the monotonic clock. */
  #progressedAt(): number | undefined {
    return this.#lastProgress === 0 ? undefined : this.#clock.wall() - (this.#clock.now() - this.#lastProgress);
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      try {
        const { relistMs } = this.#options;
        if (this.#version === undefined) await this.#list(signal);
        else if (relistMs !== undefined) await this.#pauseBeforeList(relistMs, signal);
        else await this.#resume(this.#version, signal);
      } catch (error) {
        // the process ends: this cache must not change any more
        if (error instanceof HistoryWentBackError) return;
        await this.#recover(error, signal);
      }
    }
  }

  async #recover(error: unknown, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    if (isNotFound(error) && this.#options.optional) {
      const { store } = this.#options;
      if (store.notServed === undefined) await store.replace([], { from: this.#seen, to: '' }, signal);
      else await store.notServed(signal);
      this.#version = undefined;
      this.#lastProgress = this.#clock.now();
      await this.#clock.sleep(this.#recovery.afterNotServed(), signal);
      return;
    }
    const { delayMs, relist, isFirstFailure } = this.#recovery.afterError(error);
    if (relist) this.#version = undefined;
    this.#hasFailed = true;
    const fields = { delayMs: Math.round(delayMs), relist };
    const message = `watch was interrupted: ${messageOf(error)}`;
    // A server that restarts is asked many times: only the first failure and long ones are warnings.
    if (isFirstFailure || delayMs > WARN_DELAY_MS) this.#log.warn(fields, message);
    else this.#log.debug(fields, message);
    await this.#clock.sleep(delayMs, signal);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, resource, transform, store, namespace, labelSelector, fieldSelector } = this.#options;
    const started = this.#clock.now();
    const selectors = { namespace, labelSelector, fieldSelector };
    const list = await client.listAs(resource, transform, { ...selectors, dropsManagedFields: true, signal });
    if (signal.aborted) return;
    this.#options.history?.compare(this.#options, this.#seen, list.resourceVersion);
    await store.replace(list.items, { from: this.#seen, to: list.resourceVersion }, signal);
    if (this.#abort.signal.aborted) return;
    this.#version = list.resourceVersion;
    this.#seen = list.resourceVersion;
    this.#hasFailed = false;
    // its pages show the state at its start
    this.#lastProgress = started;
    this.#metrics.listed(resource.plural, (this.#clock.now() - started) / 1000);
    // otherwise a watch that works does so
    if (this.#options.relistMs !== undefined) this.#recovery.reset();
  }

  /** Random, so that the lists of many clients do not come together. */
  async #pauseBeforeList(relistMs: readonly number[], signal: AbortSignal): Promise<void> {
    const pauseMs = relistMs[this.#relists++] ?? relistMs.at(-1) ?? 0;
    await this.#clock.sleep(pauseMs * (0.5 + this.#random()), signal);
    this.#version = undefined;
  }

  async #resume(from: string, signal: AbortSignal): Promise<void> {
    if (this.#hasFailed) await this.#options.history?.check(this.#options, this.#seen, signal);
    this.#hasFailed = false;
    await this.#watch(from, signal);
  }

  async #watch(from: string, signal: AbortSignal): Promise<void> {
    const { plural } = this.#options.resource;
    const started = this.#clock.now();
    this.#events = 0;
    let reason = '';
    try {
      reason = await this.#follow(from, signal);
      const short = this.#clock.now() - started < SHORT_WATCH_MS && this.#events === 0;
      if (short) throw new TransportError('broken', `WATCH ${plural}: ended at once`);
      // at its start, the server sent all earlier changes; a kind that never changes gets no bookmarks
      if (reason === 'end') this.#lastProgress = Math.max(this.#lastProgress, started);
    } catch (error) {
      reason = reasonOf(error);
      throw error;
    } finally {
      this.#metrics.watchEnded(plural, reason);
      // a watch that ended without data may have been open for long
      if (this.#events > 0 || reason === 'end') this.#recovery.reset();
    }
  }

  async #follow(from: string, signal: AbortSignal): Promise<'end' | 'restart'> {
    const { client, resource, namespace, labelSelector, fieldSelector } = this.#options;
    // Random, so that the watches of many clients do not end together.
    const timeoutSeconds = this.#options.watchSeconds ?? 300 + Math.floor(this.#random() * 300);
    const selectors = { labelSelector, fieldSelector };
    const query = { watch: true, allowWatchBookmarks: true, resourceVersion: from, timeoutSeconds, ...selectors };
    const idleMs = this.#options.idleMs ?? IDLE_MS + Math.floor(this.#random() * IDLE_JITTER_MS);
    const path = resourcePath(resource, { namespace });
    const watch = new AbortController();
    const started = this.#clock.now();
    const interrupt = () => watch.abort();
    this.#interrupt = () => {
      // a new watch is not stale
      if (this.#clock.now() - started >= SHORT_WATCH_MS) interrupt();
    };
    signal.addEventListener('abort', interrupt, { once: true });
    const slice = new TimeSlice(this.#clock);
    try {
      for await (const value of client.transport.stream({ path, query, signal: watch.signal, idleMs })) {
        if (watch.signal.aborted) break;
        this.#handle(readEvent<T>(value, path));
        // a chunk may have many events, and the next one may already be there
        if (slice.isOver) await slice.renew();
      }
      return watch.signal.aborted ? 'restart' : 'end';
    } finally {
      signal.removeEventListener('abort', interrupt);
    }
  }

  #handle(event: WatchEvent<T>): void {
    const { store, transform } = this.#options;
    switch (event.type) {
      case 'ADDED':
      case 'MODIFIED':
        store.upsert(transform(event.object));
        break;
      case 'DELETED':
        store.remove(transform(event.object));
        break;
      case 'BOOKMARK':
        break;
      case 'ERROR':
        throw statusErrorOfEvent(`WATCH ${this.#options.resource.plural}`, event.object);
    }
    this.#version = event.object.metadata.resourceVersion;
    this.#seen = this.#version ?? this.#seen;
    this.#events++;
    this.#lastProgress = this.#clock.now();
  }
}

const EVENT_TYPES = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']);

function readEvent<T extends KubeObject>(value: unknown, path: string): WatchEvent<T> {
  const event = value as { type?: unknown; object?: { metadata?: { resourceVersion?: unknown } } } | null;
  const type = event?.type;
  const known = typeof type === 'string' && EVENT_TYPES.has(type) && event?.object?.metadata?.resourceVersion;
  if (type === 'ERROR' || known) return value as WatchEvent<T>;
  throw new TransportError('malformed', `WATCH ${path}: not a watch event: ${JSON.stringify(value).slice(0, 80)}`);
}

function reasonOf(error: unknown): string {
  if (error instanceof StatusError) return String(error.status);
  return error instanceof TransportError ? error.fault : 'error';
}
