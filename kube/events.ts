import { truncate } from '../api/json.js';
import type { KubeObject, ObjectMeta } from '../api/meta.js';
import { backoffDelay } from './backoff.js';
import type { Client } from './client.js';
import { type Clock, type Random } from './clock.js';
import { EventRateLimiter } from './event-rate-limiter.js';
import { classifyError, isAlreadyExists, isNotFound, messageOf } from './errors.js';
import type { Logger } from './log.js';
import { type KubeMetrics, silentMetrics } from './metrics.js';
import { setMostRecent } from './lru.js';
import type { Resource } from './resource.js';

export type EventType = 'Normal' | 'Warning';

/** The object that an event is about. */
export interface EventSubject {
  apiVersion: string;
  kind: string;
  metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'uid' | 'resourceVersion'>;
}

/** core/v1 Event: the kind that `kubectl describe` shows. */
export interface Event extends KubeObject {
  involvedObject: {
    apiVersion: string;
    kind: string;
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
  };
  type: EventType;
  reason: string;
  message: string;
  count: number;
  /** RFC 3339, as lastTimestamp. */
  firstTimestamp: string;
  lastTimestamp: string;
  source: { component: string };
  reportingComponent: string;
  reportingInstance: string;
}

export const EVENTS: Resource<Event> = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

export interface EventRecorderOptions {
  client: Client;
  component: string;
  clock: Clock;
  log: Logger;
  random?: Random;
  metrics?: KubeMetrics;
  /** Default `default`, the only one that the API server accepts for cluster-scoped objects. */
  namespaceForClusterScoped?: string;
  /** The number of events that may wait to be written. Default 1000. */
  queueSize?: number;
}

interface PendingEvent {
  key: string;
  subject: EventSubject;
  type: EventType;
  reason: string;
  message: string;
  /** How often it occurred since it was written. */
  count: number;
  /** Milliseconds since the epoch. */
  lastSeen: number;
  /** The same moment, in the clock's ms. */
  at: number;
}

interface WrittenEvent {
  namespace: string;
  name: string;
  count: number;
  /** When it last occurred, in the clock's ms. */
  at: number;
}

/** The same event within this time increments the count instead of creating a new event, as in client-go. */
const AGGREGATION_MS = 10 * 60_000;
/** The API server rejects longer messages. */
const MAX_EVENT_MESSAGE_LENGTH = 1024;
const MAX_NAME_LENGTH = 253;
/** About 20 s, so that no event is lost while the API server restarts. */
const MAX_ATTEMPTS = 8;
/** Events whose count may be incremented. */
const MAX_WRITTEN_EVENTS = 4096;

/** Writes events in the background. Never throws and never blocks; events that cannot be written are counted. */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #log: Logger;
  readonly #metrics: KubeMetrics;
  readonly #random: Random;
  readonly #budget: EventRateLimiter;
  readonly #waiting = new Map<string, PendingEvent>();
  readonly #written = new Map<string, WrittenEvent>();
  #pump: Promise<void> | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#log = options.log.child({ component: options.component });
    this.#metrics = options.metrics ?? silentMetrics;
    this.#random = options.random ?? Math.random;
    this.#budget = new EventRateLimiter(options.clock);
  }

  event(subject: EventSubject, type: EventType, reason: string, message: string): void {
    const text = truncate(message, MAX_EVENT_MESSAGE_LENGTH - 1);
    const about = [
      subject.apiVersion,
      subject.kind,
      subject.metadata.namespace,
      subject.metadata.name,
      subject.metadata.uid,
    ].join('/');
    const key = [about, type, reason, text].join('\n');
    const waiting = this.#waiting.get(key);
    const { clock } = this.#options;
    const seen = { lastSeen: clock.wall(), at: clock.now() };
    if (!this.#budget.tryAccept(about)) {
      this.#drop('rate', reason);
    } else if (waiting !== undefined) {
      waiting.count++;
      Object.assign(waiting, seen);
    } else if (this.#waiting.size >= (this.#options.queueSize ?? 1000)) {
      this.#drop('full', reason);
    } else {
      this.#waiting.set(key, { key, subject, type, reason, message: text, count: 1, ...seen });
      this.#pump ??= this.#writeAll();
    }
  }

  /** Resolves when all events are written, or after `limitMs`. */
  async flush(limitMs = 5_000): Promise<void> {
    const enough = new AbortController();
    const emptied = this.#emptied().then(() => enough.abort());
    await Promise.race([emptied, this.#options.clock.sleep(limitMs, enough.signal)]);
  }

  async #emptied(): Promise<void> {
    while (this.#pump !== undefined) await this.#pump;
  }

  async #writeAll(): Promise<void> {
    // Collects all events of one reconciliation before the first is written.
    await Promise.resolve();
    for (let next = this.#take(); next !== undefined; next = this.#take()) await this.#writeOne(next);
    this.#pump = undefined;
  }

  #take(): PendingEvent | undefined {
    const [sighting] = this.#waiting.values();
    if (sighting !== undefined) this.#waiting.delete(sighting.key);
    return sighting;
  }

  async #writeOne(sighting: PendingEvent): Promise<void> {
    const { clock } = this.#options;
    for (let failures = 0; failures < MAX_ATTEMPTS; failures++) {
      try {
        await this.#write(sighting);
        return;
      } catch (error) {
        const lost = failures === MAX_ATTEMPTS - 1 || (classifyError(error) !== 'transient' && !isAlreadyExists(error));
        if (lost) {
          this.#log.debug({ reason: sighting.reason }, `event cannot be written: ${messageOf(error)}`);
          this.#drop('failed', sighting.reason);
          return;
        }
        await clock.sleep(backoffDelay({ baseMs: 500, maxMs: 5_000, random: this.#random }, failures));
      }
    }
  }

  async #write(sighting: PendingEvent): Promise<void> {
    const known = this.#written.get(sighting.key);
    const fresh = known !== undefined && sighting.at - known.at < AGGREGATION_MS;
    if (!fresh || !(await this.#countUp(known, sighting))) await this.#create(sighting);
  }

  /** @returns false if the event has expired on the server */
  async #countUp(known: WrittenEvent, sighting: PendingEvent): Promise<boolean> {
    const count = known.count + sighting.count;
    const body = { count, lastTimestamp: timestamp(sighting.lastSeen) };
    try {
      await this.#options.client.patch(EVENTS, known, { type: 'merge', body });
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
    setMostRecent(this.#written, sighting.key, { ...known, count, at: sighting.at }, MAX_WRITTEN_EVENTS);
    return true;
  }

  async #create(sighting: PendingEvent): Promise<void> {
    const { client, component, namespaceForClusterScoped = 'default' } = this.#options;
    const { subject, type, reason, message, count, lastSeen, at, key } = sighting;
    const { metadata } = subject;
    const namespace = metadata.namespace || namespaceForClusterScoped;
    const suffix = `.${lastSeen.toString(16)}${Math.floor(this.#random() * 2 ** 32).toString(16)}`;
    const name = `${metadata.name.slice(0, MAX_NAME_LENGTH - suffix.length)}${suffix}`;
    await client.create(EVENTS, {
      metadata: { namespace, name },
      involvedObject: { apiVersion: subject.apiVersion, kind: subject.kind, ...pickIdentity(metadata) },
      type,
      reason,
      message,
      count,
      firstTimestamp: timestamp(lastSeen),
      lastTimestamp: timestamp(lastSeen),
      source: { component },
      reportingComponent: component,
      reportingInstance: '',
    });
    setMostRecent(this.#written, key, { namespace, name, count, at }, MAX_WRITTEN_EVENTS);
  }

  #drop(why: string, reason: string): void {
    this.#metrics.eventDropped(why);
    this.#log.debug({ why, reason }, 'event is dropped');
  }
}

function pickIdentity(metadata: EventSubject['metadata']): EventSubject['metadata'] {
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    name,
    ...(namespace ? { namespace } : {}),
    ...(uid ? { uid } : {}),
    ...(resourceVersion ? { resourceVersion } : {}),
  };
}

/** metav1.Time has whole seconds. */
function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
