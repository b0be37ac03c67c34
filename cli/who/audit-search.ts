import { AUDIT_ALIVE_MS, type AuditRecord, MAX_AUDIT_LINE, readAuditRecord } from '../../api/audit-record.js';
import { type PastPeriod, Timeline, earlier } from './timeline.js';

/** A log may name more address spaces only if it is not from ipam. */
const MAX_SPACES = 1_000;
/** One line may be late. After a longer silence, lines are missing: a file, or lines that were rotated away. */
const MAX_SILENCE_MS = 2 * AUDIT_ALIVE_MS;

/** What the log says about an address in one address space. */
export interface SpaceAnswer {
  readonly addressSpace: string;
  readonly period: PastPeriod;
}

export interface SearchResult {
  /** By address space, sorted. Empty: no line names the address. */
  readonly answers: readonly SpaceAnswer[];
  /** The time of the first and the last line; absent: there is none. */
  readonly first?: string;
  readonly last?: string;
  /** The log has all changes until then, except in gaps. Later lines may be of an older cache. */
  readonly completeUntil?: string;
  /** Lines that are not of the audit log. */
  readonly skipped: number;
}

/**
 * Finds who had an address at a time, in constant memory.
 * @param sources the lines of each file or process, oldest first
 * @param address in canonical text
 * @param at RFC 3339 in UTC, with milliseconds
 */
export async function searchAudit(
  sources: readonly AsyncIterable<string>[],
  address: string,
  at: string,
): Promise<SearchResult> {
  const timelines = new Map<string, Timeline>();
  // what holds for address spaces that no line has named yet
  const others = new Timeline(at);
  let [first, last, completeUntil, skipped] = ['', '', '', 0];
  const addToAll = (record: AuditRecord) => {
    for (const each of [others, ...timelines.values()]) each.add(record, completeUntil);
  };
  for await (const record of inOrder(sources, () => skipped++)) {
    const { time } = record;
    const previous = last || time;
    first ||= time;
    completeUntil ||= time;
    if (time > last) last = time;
    if (isAfterSilence(record, previous)) addToAll({ time, type: 'gap', reason: 'start' });
    if (!('address' in record)) addToAll(record);
    else if (record.address === address) timelineOf(record.addressSpace, timelines, others)?.add(record, completeUntil);
    const shown = shownUntil(record);
    if (shown > completeUntil) completeUntil = shown;
  }
  const answers = [...timelines]
    .map(([addressSpace, timeline]) => ({ addressSpace, period: timeline.result() }))
    .sort((a, b) => a.addressSpace.localeCompare(b.addressSpace));
  return { answers, skipped, ...(first !== '' && { first, last, completeUntil }) };
}

/** Until when the leader that wrote the record had seen all changes. A state comes from its cache, which may be older than the line. */
function shownUntil(record: AuditRecord): string {
  const { time } = record;
  if (record.type === 'state') return '';
  if (record.type === 'gap') return earlier(record.from ?? '', time);
  return 'address' in record ? time : earlier(record.completeUntil ?? time, time);
}

/** A gap covers the time since its own beginning, so only the time before that counts. */
function isAfterSilence(record: AuditRecord, previous: string): boolean {
  const from =
    record.type === 'gap' && record.from !== undefined && record.from < record.time ? record.from : record.time;
  return Date.parse(from) - Date.parse(previous) > MAX_SILENCE_MS;
}

function timelineOf(space: string, timelines: Map<string, Timeline>, others: Timeline): Timeline | undefined {
  if (!timelines.has(space) && timelines.size < MAX_SPACES) timelines.set(space, others.clone());
  return timelines.get(space);
}

/** Merges the records of all sources by their times. */
async function* inOrder(sources: readonly AsyncIterable<string>[], skip: () => void): AsyncGenerator<AuditRecord> {
  const readers = sources.map((source) => recordsOf(source, skip));
  const heads = await Promise.all(readers.map((reader) => reader.next()));
  for (;;) {
    let next = -1;
    for (const [index, head] of heads.entries()) {
      if (head.done === true) continue;
      const best = heads[next];
      if (best === undefined || best.done === true || head.value.time < best.value.time) next = index;
    }
    const head = heads[next];
    const reader = readers[next];
    if (head === undefined || head.done === true || reader === undefined) return;
    yield head.value;
    heads[next] = await reader.next();
  }
}

async function* recordsOf(lines: AsyncIterable<string>, skip: () => void): AsyncGenerator<AuditRecord, undefined> {
  let last = '';
  for await (const line of lines) {
    if (line === '' || line === last) continue;
    const record = line.length > MAX_AUDIT_LINE ? undefined : readAuditRecord(line);
    if (record === undefined) skip();
    else yield record;
    last = line;
  }
  return undefined;
}
