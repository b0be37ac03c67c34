import { describeLeaseOwner } from '../../api/address-lease.js';
import { AUDIT_ALIVE_MS, type AuditRecord, MAX_AUDIT_LINE, readAuditRecord } from '../../api/audit-record.js';
import { CommandError } from '../exit-code.js';
import { type Column, type Output, tableLines } from '../output.js';
import { type PastPeriod, Timeline, earlier } from './timeline.js';

/** Who had an address, as `-o json` shows it. */
interface HolderRow {
  readonly addressSpace: string;
  readonly state: string;
  readonly owner: string;
  readonly node: string;
  readonly mac: string;
  readonly since: string;
  readonly until: string;
}

const COLUMNS: readonly Column<HolderRow>[] = [
  { header: 'ADDRESS SPACE', value: (row) => row.addressSpace },
  { header: 'STATE', value: ({ state }) => state },
  { header: 'OWNER', value: ({ owner }) => owner },
  { header: 'NODE', value: ({ node }) => node },
  { header: 'MAC', value: ({ mac }) => mac },
  { header: 'SINCE', value: ({ since }) => since },
  { header: 'UNTIL', value: ({ until }) => until },
];

/** Lines of the audit log. */
export interface AuditSources {
  /** Of each file or process, oldest first. */
  readonly lines: readonly AsyncIterable<string>[];
  /** Which lines could not be read, and why. Complete when all lines are read. */
  readonly unread: ReadonlySet<string>;
}

/**
 * @param address in canonical text
 * @param at RFC 3339 in UTC, with milliseconds
 * @throws {CommandError} if nothing could be read
 */
export async function findPastHolder(address: string, at: string, { lines, unread }: AuditSources): Promise<Output> {
  const found = await searchAudit(lines, address, at);
  if (found.first === undefined && unread.size > 0) throw new CommandError([...unread].join('; '));
  const holders = found.answers.map(({ addressSpace, period }): HolderRow => {
    const { state, record, since, until, mayBeOlder } = period;
    const owner = record?.owner;
    return {
      addressSpace,
      state,
      owner: owner === undefined ? '' : describeLeaseOwner(owner),
      node: record?.node ?? '',
      mac: record?.mac ?? '',
      since: `${since ?? ''}${mayBeOlder ? ' or earlier' : ''}`,
      until: until ?? '',
    };
  });
  const { first = '', last = '', skipped } = found;
  const notes = [...notesOf(found, address, at), ...[...unread].map((reason) => `uncertain: ${reason}`)];
  return {
    data: { address, at, holders, log: { first, last, skipped }, notes },
    lines: (isWide) => [...(holders.length === 0 ? [] : tableLines(COLUMNS, holders, isWide)), ...notes],
  };
}

function notesOf(
  { answers, first, last, completeUntil = '', skipped }: SearchResult,
  address: string,
  at: string,
): string[] {
  const notes: string[] = [];
  if (first === undefined || last === undefined)
    return ['no line of an audit log was found: ipam writes one with --audit-log, which is off by default'];
  if (answers.length === 0) notes.push(`no line names ${address}: the log covers ${first} to ${last}`);
  if (answers.some(({ period }) => period.state === 'unknown'))
    notes.push('unknown: lines may be missing around that time, or the log begins later');
  if (at > completeUntil) notes.push(`the log is complete until ${completeUntil}: what happened later is unknown`);
  if (skipped > 0) notes.push(`${skipped} lines are not of the audit log, and were skipped`);
  return notes;
}

/** A log may name more address spaces only if it is not from ipam. */
const MAX_SPACES = 1_000;
/** One line may be late. After a longer silence, lines are missing: a file, or lines that were rotated away. */
const MAX_SILENCE_MS = 2 * AUDIT_ALIVE_MS;

/** What the log says about an address in one address space. */
interface SpaceAnswer {
  readonly addressSpace: string;
  readonly period: PastPeriod;
}

interface SearchResult {
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
