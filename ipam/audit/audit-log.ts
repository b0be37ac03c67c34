import { formatAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import type { AddressLease } from '../../api/address-lease.js';
import {
  AUDIT_ALIVE_MS,
  type AuditGapRecord,
  type AuditLeaseRecord,
  type AuditListedRecord,
  type AuditRecord,
  type AuditType,
  formatAuditRecord,
} from '../../api/audit-record.js';
import type { Cache } from '../../kube/informers/cache.js';
import type { Clock } from '../../kube/clock.js';
import { abortable } from '../../kube/transport/deadline.js';
import { messageOf } from '../../kube/errors.js';
import type { Informer } from '../../kube/informers/informer.js';
import type { Logger } from '../../kube/log.js';
import type { Metrics } from '../../process/metrics.js';
import type { AuditSink } from './audit-sink.js';

export interface AuditLogOptions {
  readonly leases: Pick<Informer<AddressLease, LeaseRecord>, 'onChange' | 'onList' | 'lastProgress'> & {
    readonly cache: Pick<Cache<LeaseRecord>, 'keys' | 'get'>;
  };
  readonly sink: AuditSink;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: AuditMetrics;
  /** The number of lines that may wait to be written. Default 8192, a few MiB. */
  readonly queueSize?: number;
}

/** After a gap, states are added in portions, so that changes always have room. */
const STATES_AT_ONCE = 512;
const MIN_RETRY_MS = 250;
const MAX_RETRY_MS = 15_000;
/** A stop waits so long for the lines that are left. */
const FLUSH_MS = 2_000;

/**
 * Writes who has which address, while the process leads. Never delays anybody: lines that find no room are counted, and the log says that they are
 * missing. After each gap it states all leases again, so that readers need no earlier lines.
 */
export class AuditLog {
  readonly #options: AuditLogOptions;
  #isLeading = false;
  #isListing = false;
  #lines: string[] = [];
  #writing: Promise<void> | undefined;
  #stopping = new AbortController();
  /** Since when lines are lost, and how many. */
  #lost: { readonly from: string; readonly lines: number } | undefined;
  /** The leases whose state is still to be written. Absent: none. */
  #unstated: string[] | undefined;
  #cancelAlive: () => void = () => undefined;

  constructor(options: AuditLogOptions) {
    this.#options = options;
    const { leases } = options;
    leases.onChange(({ type, object, before }) => {
      if (!this.#isLeading) return;
      const after = type === 'removed' ? {} : { after: object };
      const time = this.#time();
      const record = recordOfTransition({ ...(before !== undefined && { before }), ...after }, time);
      if (record !== undefined) this.#add(record);
      // between two lists, the owner may have released the address and got it again
      else if (this.#isListing) this.#add(recordOfState(object, time));
    });
    leases.onList(({ from, to }) => {
      if (!this.#isLeading) return () => undefined;
      this.#addGap({ reason: 'relist', from: this.#lastProgress(), fromResourceVersion: from, toResourceVersion: to });
      this.#isListing = true;
      return () => {
        this.#isListing = false;
        if (!this.#isLeading) return;
        // states of before the list say nothing about the gap
        if (this.#unstated === undefined) this.#addListed('changed');
        else this.#restate();
      };
    });
  }

  /** Begins with the state of all leases. The caches are filled. */
  start(): void {
    this.#stopping = new AbortController();
    this.#isLeading = true;
    this.#addGap({ reason: 'start' });
    this.#restate();
    this.#sayAlive();
  }

  /** Resolves when the lines are written, or after two seconds. */
  async stop(): Promise<void> {
    if (!this.#isLeading) return;
    this.#isLeading = false;
    this.#cancelAlive();
    const { clock, sink, metrics } = this.#options;
    const { signal } = this.#stopping;
    const limit = clock.setTimer(FLUSH_MS, () => this.#stopping.abort());
    const isWritten = await abortable(Promise.resolve(this.#writing), signal).then(
      () => true,
      () => false,
    );
    limit();
    this.#stopping.abort();
    metrics.lost(this.#lines.length);
    this.#lines = [];
    this.#lost = undefined;
    this.#unstated = undefined;
    // a file cannot be closed while a write hangs
    if (isWritten) await sink.close();
  }

  #add(record: AuditRecord): void {
    const { queueSize = 8_192, metrics } = this.#options;
    if (this.#lost === undefined && this.#lines.length < queueSize) {
      this.#lines.push(`${formatAuditRecord(record)}\n`);
    } else {
      // everything is lost until the queue is empty, so that one gap covers it
      const { from, lines } = this.#lost ?? { from: this.#lastProgress(), lines: 0 };
      this.#lost = { from, lines: lines + 1 };
      metrics.lost(1);
    }
    this.#writing ??= this.#writeAll();
  }

  #addGap(gap: Omit<AuditGapRecord, 'time' | 'type'>): void {
    this.#add({ time: this.#time(), type: 'gap', ...gap });
  }

  #addListed(scope: AuditListedRecord['scope']): void {
    this.#add({ time: this.#time(), type: 'listed', scope, completeUntil: this.#lastProgress() });
  }

  #restate(): void {
    this.#unstated = [...this.#options.leases.cache.keys()];
    this.#writing ??= this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    // collects the lines of one turn
    await Promise.resolve();
    // a write may end in a later term, whose lines are written then
    while (!this.#stopping.signal.aborted) {
      if (this.#lines.length === 0 && !this.#refill()) break;
      await this.#writeBatch(this.#lines, this.#stopping.signal);
    }
    // in the turn of the last check, so that later lines are written
    this.#writing = undefined;
  }

  /** Adds what has to be written besides changes. @returns false if there is nothing */
  #refill(): boolean {
    if (!this.#isLeading) return false;
    const lost = this.#lost;
    if (lost !== undefined) {
      this.#lost = undefined;
      this.#addGap({ reason: 'overflow', from: lost.from, lost: lost.lines });
      this.#unstated = [...this.#options.leases.cache.keys()];
      return true;
    }
    if (this.#unstated === undefined) return false;
    const time = this.#time();
    for (const key of this.#unstated.splice(-STATES_AT_ONCE)) {
      const lease = this.#options.leases.cache.get(key);
      if (lease !== undefined) this.#add(recordOfState(lease, time));
    }
    if (this.#unstated.length > 0) return true;
    this.#unstated = undefined;
    this.#addListed('all');
    return true;
  }

  /** Repeats a failed write: the next lines wait meanwhile, and are lost when there are too many. @param lines of the term */
  async #writeBatch(lines: string[], signal: AbortSignal): Promise<void> {
    const { sink, clock, log, metrics } = this.#options;
    let count = 0;
    for (let bytes = 0; count < lines.length; count++) {
      bytes += Buffer.byteLength(lines[count] ?? '');
      if (count > 0 && bytes > sink.batchBytes) break;
    }
    const batch = lines.slice(0, count).join('');
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        await sink.write(batch);
        lines.splice(0, count);
        metrics.written(count);
        if (failures > 0) log.info({ failures }, 'the audit log can be written again');
        return;
      } catch (error) {
        metrics.writeFailed();
        const message = `cannot write the audit log: ${messageOf(error)}. Addresses are allocated without it`;
        if (failures === 0) log.error({ err: error }, message);
        await clock.sleep(Math.min(MIN_RETRY_MS * 2 ** failures, MAX_RETRY_MS), signal);
      }
    }
  }

  #sayAlive(): void {
    this.#cancelAlive = this.#options.clock.setTimer(AUDIT_ALIVE_MS, () => {
      this.#add({ time: this.#time(), type: 'alive', completeUntil: this.#lastProgress() });
      this.#sayAlive();
    });
  }

  /** When the watch was complete for the last time. */
  #lastProgress(): string {
    const { clock, leases } = this.#options;
    return new Date(clock.wall() - Math.max(0, clock.now() - leases.lastProgress)).toISOString();
  }

  #time(): string {
    return new Date(this.#options.clock.wall()).toISOString();
  }
}

type AuditMetrics = ReturnType<typeof createAuditMetrics>;

export function createAuditMetrics(metrics: Pick<Metrics, 'counter'>) {
  const written = metrics.counter('audit_lines_total', 'Lines written to the audit log.');
  const lost = metrics.counter('audit_lines_lost_total', 'Lines of the audit log that are lost. The log says when.');
  const failures = metrics.counter('audit_write_failures_total', 'Failed writes of the audit log. They are repeated.');
  return {
    written: (lines: number) => written.inc(lines),
    lost: (lines: number) => lost.inc(lines),
    writeFailed: () => failures.inc(),
  };
}

/** A change of one lease as the watch shows it. A lease that is replaced by another of its name is removed and added. */
interface LeaseTransition {
  readonly before?: LeaseRecord;
  readonly after?: LeaseRecord;
}

/**
 * Returns the record of a change; undefined if it is of no interest, as a change of labels. Pure.
 * @param time when it was seen, RFC 3339
 */
export function recordOfTransition({ before, after }: LeaseTransition, time: string): AuditLeaseRecord | undefined {
  if (after === undefined) return before && leaseRecord('expired', before, time);
  const type = changeOf(before, after);
  return type && leaseRecord(type, after, time);
}

function changeOf(before: LeaseRecord | undefined, after: LeaseRecord): AuditType | undefined {
  const state = stateOf(after);
  const isSame = before !== undefined && stateOf(before) === state && before.owner?.uid === after.owner?.uid;
  if (state !== 'held') return isSame ? undefined : state;
  if (!isSame) return 'allocated';
  return USAGE_FIELDS.some((field) => before[field] !== after[field]) ? 'changed' : undefined;
}

const USAGE_FIELDS = ['node', 'mac', 'interface', 'containerID'] as const;

/** Returns the record of a lease after a gap. */
export function recordOfState(lease: LeaseRecord, time: string): AuditLeaseRecord {
  return leaseRecord('state', lease, time);
}

function leaseRecord(type: AuditType, lease: LeaseRecord, time: string): AuditLeaseRecord {
  const { address, addressSpace, pool, owner, node, metadata } = lease;
  const mac = lease.mac ?? lease.quarantine?.mac;
  return {
    time,
    type,
    address: formatAddress(address),
    addressSpace,
    pool,
    ...(type === 'state' && { state: stateOf(lease) }),
    ...(owner !== undefined && {
      owner: { kind: owner.kind, namespace: owner.namespace, name: owner.name, uid: owner.uid },
    }),
    ...(mac !== undefined && { mac }),
    ...(node !== undefined && { node }),
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
  };
}
