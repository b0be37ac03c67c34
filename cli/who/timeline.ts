import type { LeaseState } from '../../api/address-lease.js';
import type { AuditGapRecord, AuditLeaseRecord, AuditRecord } from '../../api/audit-record.js';

/** What the log says about one address for some time. */
interface Period {
  /** `unknown`: the log does not begin early enough, or lines may be missing. */
  readonly state: 'unknown' | 'free' | LeaseState;
  /** The line that says it. Its owner is the last one if the state is `released`. */
  readonly record?: AuditLeaseRecord;
  /** A later line about the same owner, if there is one. */
  readonly latest?: AuditLeaseRecord;
  /** RFC 3339; absent: before the first line. */
  readonly since?: string;
  /** It may have begun earlier. */
  readonly mayBeOlder?: true;
}

/** A period that is over, or that lasts until the end of the log. */
export interface PastPeriod extends Period {
  readonly until?: string;
}

interface Gap {
  readonly from: string;
  readonly before: Period;
  /** Another leader, or lost lines: only a line about the address, or its absence from all of them, ends the gap. */
  needsAll: boolean;
}

/** Follows the lines about one address in one address space, oldest first, and finds what was at one time. Needs memory for one period only. */
export class Timeline {
  readonly #at: string;
  #current: Period;
  #gap: Gap | undefined;
  #found: PastPeriod | undefined;

  /** @param at RFC 3339 in UTC, with milliseconds */
  constructor(at: string) {
    this.#at = at;
    this.#current = { state: 'unknown' };
  }

  /** Returns the timeline of another address about which the log has said the same. */
  clone(): Timeline {
    const copy = new Timeline(this.#at);
    copy.#current = this.#current;
    copy.#gap = this.#gap && { ...this.#gap };
    copy.#found = this.#found;
    return copy;
  }

  /** @param completeUntil time until which the lines before have all changes, of any process */
  add(record: AuditRecord, completeUntil: string): void {
    if (record.type === 'gap') this.#beginGap(record, completeUntil);
    else if (record.type === 'listed') this.#endGap(record.scope, record.time);
    else if (record.type !== 'alive') this.#observe(record);
  }

  /** What was at the time that is asked for. */
  result(): PastPeriod {
    return this.#found ?? this.#current;
  }

  #beginGap({ from, reason, time }: AuditGapRecord, completeUntil: string): void {
    const begin = earlier(from ?? completeUntil, time);
    if (this.#gap === undefined) {
      this.#gap = { from: begin, before: this.#current, needsAll: reason !== 'relist' };
      this.#change({ state: 'unknown', since: begin });
    } else this.#gap.needsAll ||= reason !== 'relist';
  }

  #endGap(scope: 'all' | 'changed', time: string): void {
    const gap = this.#gap;
    if (gap === undefined || (scope === 'changed' && gap.needsAll)) return;
    const { before } = gap;
    // a lease of the same version has not changed; an address without a lease may have had one meanwhile
    if (scope === 'changed' && before.record !== undefined) this.#resume(before);
    else {
      const isKnown = scope === 'all' || before.state === 'free';
      this.#change({ state: isKnown ? 'free' : 'unknown', since: time });
    }
    this.#gap = undefined;
  }

  #observe(record: AuditLeaseRecord): void {
    const gap = this.#gap;
    this.#gap = undefined;
    const { type, time } = record;
    if (type === 'state') {
      this.#observeState(record, gap);
      return;
    }
    this.#checkOwner(record);
    if (type === 'changed') this.#observeMove(record);
    else if (type === 'expired') this.#change({ state: 'free', since: time });
    else this.#change({ state: type === 'allocated' ? 'held' : type, record, since: time });
  }

  #observeState(record: AuditLeaseRecord, gap: Gap | undefined): void {
    const known = gap === undefined ? this.#current : gap.before;
    if (isSameVersion(known, record)) {
      if (gap !== undefined) this.#resume(known);
    } else if (gap === undefined && hasSameOwner(known, record)) this.#current = { ...known, latest: record };
    else this.#change({ state: record.state ?? 'unknown', record, since: record.time, mayBeOlder: true });
  }

  /** The same owner on another node. */
  #observeMove(record: AuditLeaseRecord): void {
    const current = this.#current;
    if (current.state !== 'held') this.#change({ state: 'held', record, since: record.time, mayBeOlder: true });
    // what is asked for is the node at that time
    else this.#current = { ...current, latest: record, ...(record.time <= this.#at && { record }) };
  }

  /** A line that contradicts the one before shows that lines are missing between them. */
  #checkOwner({ type, uid, owner }: AuditLeaseRecord): void {
    const { record, state } = this.#current;
    const isContinued = type === 'released' || type === 'changed' || type === 'expired';
    if (!isContinued || state === 'unknown') return;
    if (record?.uid !== uid || (state === 'held' && record.owner?.uid !== owner?.uid)) {
      this.#current = { state: 'unknown', ...(this.#current.since !== undefined && { since: this.#current.since }) };
    }
  }

  /** The gap turns out to be none for this address. */
  #resume(before: Period): void {
    this.#current = before;
    if (this.#found !== undefined && this.#found.since === before.since && this.#found.state === before.state) {
      this.#found = undefined;
    }
  }

  #change(next: Period): void {
    const { since = '' } = this.#current;
    const until = next.since ?? '';
    if (this.#found === undefined && since <= this.#at && this.#at < until) this.#found = { ...this.#current, until };
    this.#current = next;
  }
}

function isSameVersion({ record, latest = record }: Period, { uid, resourceVersion }: AuditLeaseRecord): boolean {
  return latest?.uid === uid && latest.resourceVersion === resourceVersion;
}

function hasSameOwner({ state, record }: Period, stated: AuditLeaseRecord): boolean {
  return state === stated.state && record?.owner?.uid === stated.owner?.uid;
}

export function earlier(a: string, b: string): string {
  return a < b ? a : b;
}
