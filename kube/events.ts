import { truncate } from '../api/json.js';
import { type KubeObject, type ObjectMeta, timestampOf } from '../api/meta.js';
import { backoffDelay } from './retry.js';
import type { Client } from './client.js';
import { type Clock, type Random } from './clock.js';
import { classifyError, isAlreadyExists, isNotFound, messageOf } from './errors.js';
import type { Logger } from './log.js';
import { type KubeMetrics, silentMetrics } from './metrics.js';
import { EventQueue, type QueuedEvent } from './event-queue.js';
import { setMostRecent } from './informers/cache.js';
import { namespacedResource } from './resource.js';
import { TokenBuckets } from './token-buckets.js';

export type EventType = 'Normal' | 'Warning';

/** The object that an event is about. */
export interface EventSubject {
  apiVersion: string;
  kind: string;
  metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'uid' | 'resourceVersion'>;
  /** The tenant whose share the event takes if the object is cluster-scoped: the namespace of the objects that caused it. */
  tenant?: string;
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

export const EVENTS = namespacedResource<Event>('v1', 'events', 'Event');

/**
 * The same as client-go: 25 events about an object at once, then one in five minutes. A tenant with more objects than buckets gets no more events,
 * because the limit of its namespace remains.
 */
const OBJECT_LIMIT = { burst: 25, refillMs: 5 * 60_000, maxKeys: 4096 };
/**
 * Writes for a namespace, repeats included: what 300 VMs may need, each with three events at its start and then one in five minutes. It costs
 * etcd at most 5 MiB, because the API server deletes events after an hour.
 */
const NAMESPACE_LIMIT = { burst: 1_000, refillMs: 1_000, maxKeys: 4096 };

interface EventRecorderOptions {
  client: Client;
  component: string;
  clock: Clock;
  log: Logger;
  random?: Random;
  metrics?: KubeMetrics;
  /** The number of events that may wait to be written. Default 4096. */
  queueSize?: number;
}

interface PendingEvent extends QueuedEvent {
  subject: EventSubject;
  reason: string;
  message: string;
  /** How often it occurred since it was written. */
  count: number;
  /** When it last occurred, in ms since the epoch. */
  lastSeenWall: number;
  /** The same time, in the clock's ms. */
  lastSeenAt: number;
}

interface WrittenEvent {
  namespace: string;
  name: string;
  count: number;
  /** When it last occurred, in the clock's ms. */
  lastSeenAt: number;
  writtenAt: number;
}

/** When to record an event again whose cause lasts: the API server deletes it after an hour. */
export const LASTING_EVENT_MS = 30 * 60_000;
/** A repeated event is only counted for this time, and then written once with its count: a retry costs no write. */
const REPEAT_MS = 5 * 60_000;
/** The same event within this time increments the count instead of creating a new event, as in client-go. */
const AGGREGATION_MS = 10 * 60_000;
/** The API server rejects longer messages. */
const MAX_EVENT_MESSAGE_LENGTH = 1024;
/** Characters that a terminal obeys instead of showing them: messages contain texts that users wrote. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
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
  /** By object, so that one with problems does not flood etcd. */
  readonly #objectLimits: TokenBuckets;
  /** By namespace, because a tenant has as many objects as it likes. */
  readonly #namespaceLimits: TokenBuckets;
  readonly #queue: EventQueue<PendingEvent>;
  readonly #written = new Map<string, WrittenEvent>();
  /** The event that was taken from the queue and is not yet in `#written`: repeats find it here. */
  #beingWritten: PendingEvent | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#log = options.log.child({ component: options.component });
    this.#metrics = options.metrics ?? silentMetrics;
    this.#random = options.random ?? Math.random;
    this.#objectLimits = new TokenBuckets({ clock: options.clock, ...OBJECT_LIMIT });
    this.#namespaceLimits = new TokenBuckets({ clock: options.clock, ...NAMESPACE_LIMIT });
    this.#queue = new EventQueue(options.queueSize ?? 4096);
  }

  event(subject: EventSubject, type: EventType, reason: string, message: string): void {
    const text = truncate(message, MAX_EVENT_MESSAGE_LENGTH - 1).replace(INVISIBLE, ' ');
    const { apiVersion, kind, metadata } = subject;
    const objectKey = [apiVersion, kind, metadata.namespace, metadata.name, metadata.uid].join('/');
    const key = [objectKey, type, reason, text].join('\n');
    const { clock } = this.#options;
    const seen = { lastSeenWall: clock.wall(), lastSeenAt: clock.now() };
    if (this.#countRepeat(key, seen)) return;
    const { namespace = subject.tenant ?? '' } = metadata;
    const event = { key, namespace, weight: 1 as const, subject, type, reason, message: text, count: 1, ...seen };
    if (!this.#queue.hasRoomFor(event)) {
      this.#drop('full', reason);
    } else if (!this.#mayWrite(event, objectKey)) {
      this.#drop('rate', reason);
    } else {
      const displaced = this.#queue.add(event);
      if (displaced !== undefined) this.#drop('full', displaced.reason);
      this.#writing ??= this.#writeAll();
    }
  }

  /** An object with too many events takes nothing from its namespace. */
  #mayWrite({ key, namespace, lastSeenAt }: PendingEvent, objectKey: string): boolean {
    return (
      (this.#isRecent(key, lastSeenAt) || this.#objectLimits.tryTake(objectKey)) &&
      this.#namespaceLimits.tryTake(namespace)
    );
  }

  /** @returns true if the event waits to be written, is being written, or was written a short time ago */
  #countRepeat(key: string, seen: Pick<PendingEvent, 'lastSeenWall' | 'lastSeenAt'>): boolean {
    const pending = this.#beingWritten?.key === key ? this.#beingWritten : this.#queue.get(key);
    if (pending !== undefined) {
      pending.count++;
      Object.assign(pending, seen);
      return true;
    }
    const known = this.#written.get(key);
    if (known === undefined || seen.lastSeenAt - known.writtenAt >= REPEAT_MS) return false;
    known.count++;
    known.lastSeenAt = seen.lastSeenAt;
    return true;
  }

  /** True if the event increments the count of one that was written. */
  #isRecent(key: string, seenAt: number): boolean {
    const known = this.#written.get(key);
    return known !== undefined && seenAt - known.lastSeenAt < AGGREGATION_MS;
  }

  /** Resolves when all events are written, or after `limitMs`. */
  async flush(limitMs = 5_000): Promise<void> {
    const timeout = new AbortController();
    const drained = this.#drained().then(() => timeout.abort());
    await Promise.race([drained, this.#options.clock.sleep(limitMs, timeout.signal)]);
  }

  async #drained(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // Collects all events of one reconciliation before the first is written.
    await Promise.resolve();
    for (let next = this.#queue.take(); next !== undefined; next = this.#queue.take()) {
      this.#beingWritten = next;
      await this.#writeOne(next);
      this.#beingWritten = undefined;
    }
    this.#writing = undefined;
  }

  async #writeOne(event: PendingEvent): Promise<void> {
    const { clock } = this.#options;
    for (let failures = 0; failures < MAX_ATTEMPTS; failures++) {
      try {
        await this.#write(event);
        return;
      } catch (error) {
        const isFinal =
          failures === MAX_ATTEMPTS - 1 || (classifyError(error) !== 'transient' && !isAlreadyExists(error));
        if (isFinal) {
          this.#log.debug({ reason: event.reason }, `event cannot be written: ${messageOf(error)}`);
          this.#drop('failed', event.reason);
          return;
        }
        await clock.sleep(backoffDelay({ baseMs: 500, maxMs: 5_000, random: this.#random }, failures));
      }
    }
  }

  async #write(event: PendingEvent): Promise<void> {
    const known = this.#written.get(event.key);
    const isRecent = this.#isRecent(event.key, event.lastSeenAt);
    if (known === undefined || !isRecent || !(await this.#incrementCount(known, event))) await this.#create(event);
  }

  /** @returns false if the event has expired on the server */
  async #incrementCount(known: WrittenEvent, event: PendingEvent): Promise<boolean> {
    const count = known.count + event.count;
    const body = { count, lastTimestamp: timestampOf(event.lastSeenWall) };
    try {
      await this.#options.client.patch(EVENTS, known, { type: 'merge', body });
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
    const { key, lastSeenAt } = event;
    const writtenAt = this.#options.clock.now();
    // repeats that came meanwhile stay counted
    const seen = { count: known.count + event.count, lastSeenAt, writtenAt };
    setMostRecent(this.#written, key, { ...known, ...seen }, MAX_WRITTEN_EVENTS);
    return true;
  }

  async #create(event: PendingEvent): Promise<void> {
    const { client, component } = this.#options;
    const { subject, type, reason, message, lastSeenWall } = event;
    const { metadata } = subject;
    // the only one that the API server accepts for cluster-scoped objects
    const namespace = metadata.namespace || 'default';
    const suffix = `.${lastSeenWall.toString(16)}${Math.floor(this.#random() * 2 ** 32).toString(16)}`;
    // a label of a DNS name ends with a letter or digit
    const prefix = metadata.name.slice(0, MAX_NAME_LENGTH - suffix.length).replace(/[-.]+$/, '');
    const name = `${prefix}${suffix}`;
    await client.create(EVENTS, {
      metadata: { namespace, name },
      involvedObject: { apiVersion: subject.apiVersion, kind: subject.kind, ...pickIdentity(metadata) },
      type,
      reason,
      message,
      count: event.count,
      firstTimestamp: timestampOf(lastSeenWall),
      lastTimestamp: timestampOf(lastSeenWall),
      source: { component },
      reportingComponent: component,
      reportingInstance: '',
    });
    const writtenAt = this.#options.clock.now();
    // repeats that came meanwhile stay counted
    const { key, count, lastSeenAt } = event;
    setMostRecent(this.#written, key, { namespace, name, count, lastSeenAt, writtenAt }, MAX_WRITTEN_EVENTS);
  }

  #drop(cause: 'rate' | 'full' | 'failed', reason: string): void {
    this.#metrics.eventDropped(cause);
    this.#log.debug({ cause, reason }, 'event was dropped');
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
