import { type Column, type Output, tableLines } from '../output.js';
import { CommandError } from '../command-error.js';
import { type SearchResult, searchAudit } from './audit-search.js';

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
      owner: owner === undefined ? '' : `${owner.kind} ${owner.namespace}/${owner.name}`,
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
