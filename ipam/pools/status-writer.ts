import { isDeepStrictEqual } from 'node:util';
import { type AddressPool, type AddressPoolStatus, familyCountsOf } from '../../api/address-pool.js';
import { type Condition, isNewer } from '../../api/meta.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock, Random } from '../../kube/clock.js';
import { ADDRESS_POOLS } from '../../kube/resources.js';
import { createMergePatch } from './apply.js';
import { type PoolCounts, withTransitionTimes } from './status.js';

/** Minimum time between two writes of one pool's status. */
const MIN_WRITE_INTERVAL_MS = 1_000;
/** Up to this number of pools, counts are written once in an interval; for more, proportionally less often. */
const POOLS_PER_INTERVAL = 60;
/** How many condition transitions are written at once, until an interval has passed without a write: users could cause them all the time. */
const MAX_IMMEDIATE_TRANSITIONS = 4;
/** Share of the interval that is added at random, so that pools are not written in step. */
const JITTER = 0.2;

interface StatusWriterOptions {
  /** Time between two writes of one pool if only counts and messages changed. */
  readonly countsIntervalMs: number;
  /** The number of pools. */
  readonly poolCount: () => number;
  readonly random: Random;
}

/** The conditions that changed, or how long the write of the new status is delayed. */
export type StatusWriteResult = { transitions: readonly Condition[] } | { earlyByMs: number };

interface DesiredPoolStatus extends PoolCounts {
  observedGeneration?: number;
  conditions: readonly Omit<Condition, 'lastTransitionTime'>[];
}

interface LastWrite {
  uid: string | undefined;
  /** When the last write was sent or delayed, in ms of the clock. */
  at: number;
  /** When counts alone may be written again; absent before the first write. */
  countsDueAt?: number;
  /** When repeated transitions may be written again. It does not depend on the number of pools, because users wait for it. */
  transitionsDueAt?: number;
  /** How many writes since then were caused by transitions. */
  immediateTransitions: number;
  /** The status that was written last, and the resourceVersion since; absent if the write failed. */
  stored?: { status: AddressPoolStatus; resourceVersion: string };
}

/**
 * Writes the status of pools, but not often, because every agent receives each write. A condition transition is written at once, unless transitions repeat. Counts
 * are written at once after a quiet time, and then at most once in an interval. A pool is written at most once a second, and only if something changed.
 */
export class PoolStatusWriter {
  readonly #client: Pick<Client, 'patch'>;
  readonly #clock: Pick<Clock, 'now' | 'wall'>;
  readonly #options: StatusWriterOptions;
  readonly #last = new Map<string, LastWrite>();

  constructor(client: Pick<Client, 'patch'>, clock: Pick<Clock, 'now' | 'wall'>, options: StatusWriterOptions) {
    this.#client = client;
    this.#clock = clock;
    this.#options = options;
  }

  /** Milliseconds until the pool's status may be written again; counting earlier is useless. */
  msUntilDue({ metadata: { name, uid } }: AddressPool): number {
    const last = this.#last.get(name);
    const inMs = last === undefined || last.uid !== uid ? 0 : last.at + MIN_WRITE_INTERVAL_MS - this.#clock.now();
    return Math.max(0, inMs);
  }

  /**
   * Call it when {@link msUntilDue} says so.
   * @throws what the write throws
   */
  async write(pool: AddressPool, wanted: DesiredPoolStatus, call: CallOptions = {}): Promise<StatusWriteResult> {
    const { name, uid } = pool.metadata;
    const at = this.#clock.now();
    const { status: known, resourceVersion } = this.#known(pool);
    const { conditions, ...rest } = wanted;
    const status: AddressPoolStatus = {
      ...rest,
      conditions: withTransitionTimes(conditions, known?.conditions, this.#clock.wall()),
    };
    if (isDeepStrictEqual(known, status)) return { transitions: [] };
    const last = this.#last.get(name);
    const sent: LastWrite =
      last?.uid === uid && last !== undefined ? { ...last, at } : { uid, at, immediateTransitions: 0 };
    this.#last.set(name, sent);
    const earlyByMs = this.#delayOf(sent, known, status);
    if (earlyByMs > 0) return { earlyByMs };
    // without the version, the API server would ignore the UID and accept the status for another pool of the same name
    const body = { metadata: { uid, resourceVersion }, status: createMergePatch(known ?? {}, status) };
    const patch = { type: 'merge' as const, body };
    const { metadata } = await this.#client.patch(ADDRESS_POOLS, { name }, patch, { ...call, subresource: 'status' });
    sent.stored = { status, resourceVersion: metadata.resourceVersion ?? '' };
    const jittered = 1 + JITTER * this.#options.random();
    sent.countsDueAt = at + this.#countsIntervalMs * jittered;
    sent.transitionsDueAt = at + this.#options.countsIntervalMs * jittered;
    return { transitions: transitionsOf(status.conditions, known?.conditions) };
  }

  get #countsIntervalMs(): number {
    const { countsIntervalMs, poolCount } = this.#options;
    return countsIntervalMs * Math.max(1, poolCount() / POOLS_PER_INTERVAL);
  }

  /** @returns how long to delay the write; 0: write now */
  #delayOf(sent: LastWrite, known: AddressPoolStatus | undefined, status: AddressPoolStatus): number {
    const countsInMs = this.#countsDueIn(sent, sent.at);
    const isUrgentNow = countsInMs > 0 && isUrgent(known, status);
    const inMs = isUrgentNow ? Math.min(countsInMs, Math.max(0, (sent.transitionsDueAt ?? 0) - sent.at)) : countsInMs;
    if (inMs === 0) {
      sent.immediateTransitions = 0;
      return 0;
    }
    if (!isUrgentNow || sent.immediateTransitions >= MAX_IMMEDIATE_TRANSITIONS) return inMs;
    sent.immediateTransitions++;
    return 0;
  }

  #countsDueIn({ countsDueAt = 0 }: LastWrite, now: number): number {
    const inMs = countsDueAt - now;
    // it is longer only if the number of pools has fallen since
    return inMs > 0 && inMs <= this.#countsIntervalMs * (1 + JITTER) ? inMs : 0;
  }

  forget(name: string): void {
    this.#last.delete(name);
  }

  /** The newer of the cached status and our own last write. */
  #known({ metadata, status }: AddressPool): { status: AddressPoolStatus | undefined; resourceVersion: string } {
    const { name, uid, resourceVersion = '' } = metadata;
    const last = this.#last.get(name);
    const cached = { status, resourceVersion };
    if (last?.stored === undefined || last.uid !== uid) return cached;
    return isNewer(resourceVersion, last.stored.resourceVersion) ? cached : last.stored;
  }
}

/** Whether users wait for the write: a condition changed, a new spec was observed, or a family of the pool became full or is no longer full, which CNI STATUS reports. */
function isUrgent(before: AddressPoolStatus | undefined, after: AddressPoolStatus): boolean {
  if (before?.observedGeneration !== after.observedGeneration) return true;
  if (fullFamiliesOf(before) !== fullFamiliesOf(after)) return true;
  if (before?.conditions?.length !== after.conditions?.length) return true;
  return transitionsOf(after.conditions, before?.conditions).length > 0;
}

function fullFamiliesOf(status: AddressPoolStatus | undefined): string {
  const full = status === undefined ? [] : familyCountsOf(status).filter(({ free }) => free === 0);
  return full.map(({ family }) => family || 'all').join();
}

function transitionsOf(after: readonly Condition[] = [], before: readonly Condition[] = []): Condition[] {
  return after.filter(({ type, status, reason }) => {
    const known = before.find((condition) => condition.type === type);
    return known?.status !== status || known.reason !== reason;
  });
}
