import type { AddressPool, AddressPoolStatus } from '../../api/address-pool.js';
import type { Condition } from '../../api/meta.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock, Random } from '../../kube/clock.js';
import { ADDRESS_POOLS } from '../../kube/resources.js';
import { isNewer } from '../../kube/resource-version.js';
import { createMergePatch } from './merge-patch.js';
import { type PoolCounts, type DesiredCondition, withTransitionTimes } from './status.js';

/** Between two writes of one pool's status, whatever changed. */
const MIN_WRITE_INTERVAL_MS = 1_000;
/** For so many pools the counts are written once in an interval; for more, proportionally less often. */
const POOLS_PER_INTERVAL = 60;
/** So often conditions that turn are written at once, until an interval has passed without a write: users may make them turn all the time. */
const MAX_IMMEDIATE_TRANSITIONS = 4;
/** Part of the interval that is added at random, so that pools do not stay in step. */
const JITTER = 0.2;

export interface StatusWriterOptions {
  /** Between two writes of one pool in which nothing but counts and messages changed. */
  readonly countsIntervalMs: number;
  /** How many pools there are. */
  readonly poolCount: () => number;
  readonly random: Random;
}

/** The conditions that turned; or for how long a status that is new is not written yet. */
export type StatusWriteResult = { transitions: readonly Condition[] } | { earlyByMs: number };

export interface DesiredPoolStatus extends PoolCounts {
  observedGeneration?: number;
  findings: readonly DesiredCondition[];
}

interface LastWrite {
  uid: string | undefined;
  /** When the last write was sent, or put off, in the clock's ms. */
  at: number;
  /** When counts alone may be written again; absent before the first write. */
  countsDueAt?: number;
  /** When conditions that turned again and again may be written again: however many pools there are, somebody waits for them. */
  transitionsDueAt?: number;
  /** How many writes since then were for conditions that turned. */
  immediateTransitions: number;
  /** What was written last, and the object's version since; absent where the write failed. */
  stored?: { status: AddressPoolStatus; resourceVersion: string };
}

/**
 * Writes the status of pools, which every agent is sent. A condition that turns is written at once, unless it turns again and again. Counts are written at once after a
 * quiet time, and then at most once in an interval. No pool is written more than once a second, and nothing that is there already.
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

  /** Milliseconds until the pool's status may be written again: before, there is no sense in counting. */
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
    const known = this.#known(pool);
    const { findings, ...rest } = wanted;
    const status: AddressPoolStatus = {
      ...rest,
      conditions: withTransitionTimes(findings, known?.conditions, this.#clock.wall()),
    };
    if (known !== undefined && comparisonText(known) === comparisonText(status)) return { transitions: [] };
    const last = this.#last.get(name);
    const sent: LastWrite =
      last?.uid === uid && last !== undefined ? { ...last, at } : { uid, at, immediateTransitions: 0 };
    this.#last.set(name, sent);
    const earlyByMs = this.#putOff(sent, known, status);
    if (earlyByMs > 0) return { earlyByMs };
    const patch = { type: 'merge' as const, body: { metadata: { uid }, status: statusPatch(known, status) } };
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

  /** @returns for how long the write is put off; 0: it is made now */
  #putOff(sent: LastWrite, known: AddressPoolStatus | undefined, status: AddressPoolStatus): number {
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
    // more than that only if pools have become fewer since
    return inMs > 0 && inMs <= this.#countsIntervalMs * (1 + JITTER) ? inMs : 0;
  }

  forget(name: string): void {
    this.#last.delete(name);
  }

  /** The cache lags behind our own write. */
  #known({ metadata, status }: AddressPool): AddressPoolStatus | undefined {
    const last = this.#last.get(metadata.name);
    if (last?.stored === undefined || last.uid !== metadata.uid) return status;
    return isNewer(metadata.resourceVersion ?? '', last.stored.resourceVersion) ? status : last.stored.status;
  }
}

/** Whether there are blocks, and from where claims are served, may be said no more. */
function statusPatch(before: AddressPoolStatus | undefined, after: AddressPoolStatus): object {
  if (before?.blocks === undefined) return after;
  return { ...after, blocks: after.blocks === undefined ? null : createMergePatch(before.blocks, after.blocks) };
}

/** Somebody waits for it: a condition turned, a change of the spec was seen, or the pool became full or ceased to be, which CNI STATUS says. */
function isUrgent(before: AddressPoolStatus | undefined, after: AddressPoolStatus): boolean {
  if (before?.observedGeneration !== after.observedGeneration) return true;
  if ((before?.free === 0) !== (after.free === 0)) return true;
  if (before?.conditions?.length !== after.conditions?.length) return true;
  return transitionsOf(after.conditions, before?.conditions).length > 0;
}

function transitionsOf(after: readonly Condition[] = [], before: readonly Condition[] = []): Condition[] {
  return after.filter(({ type, status, reason }) => {
    const known = before.find((condition) => condition.type === type);
    return known?.status !== status || known.reason !== reason;
  });
}

/** Equal where a reader of the status would see no difference. */
function comparisonText(status: AddressPoolStatus): string {
  const { observedGeneration, capacity, leased, heldByStopped, cooling, free, reserved } = status;
  const { blocks, conditions = [] } = status;
  const told = conditions.map(({ type, status: value, reason, message, lastTransitionTime }) => [
    type,
    value,
    reason,
    message,
    lastTransitionTime,
  ]);
  const lent = blocks && [blocks.total, blocks.full, blocks.lent, blocks.current];
  return JSON.stringify([observedGeneration, capacity, leased, heldByStopped, cooling, free, reserved, lent, told]);
}
