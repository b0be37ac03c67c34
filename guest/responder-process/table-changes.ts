import { MAX_BATCH, type TableEntry } from '../responder-tables/protocol.js';
import { entryOf, entryTextOf, macOf, optionsIdOf } from '../responder-tables/table-text.js';
import type { ReceivedTable } from './received-table.js';

/** Commands for the packet helper, as lines without their end. Tables are read as the helper takes their lines. */
export type CommandLines = AsyncGenerator<string, void>;

/** Of one command with several entries: the helper need not enlarge its buffer, unless a single entry is longer. */
const MAX_BATCH_LENGTH = 32 * 1024;

/** Returns the commands that give the helper its first table: it drops all entries that are not in it. */
export async function* snapshotOf(table: ReceivedTable): CommandLines {
  for await (const set of table.optionLines()) yield `{"options":${set}}`;
  yield JSON.stringify({ snapshot: 'begin' });
  yield* batched('put', table.entryLines(), entryTextOf);
  yield JSON.stringify({ snapshot: 'end' });
}

/**
 * Returns the commands that turn one table into another. An address changes its guest in two steps, so that the helper never has two entries with
 * one address.
 */
export async function* changesBetween(before: ReceivedTable, after: ReceivedTable): CommandLines {
  const added = idsOnlyIn(after, before);
  if (added.size > 0) {
    for await (const set of after.optionLines()) if (added.has(optionsIdOf(set))) yield `{"options":${set}}`;
  }
  const seen = { hasPuts: false };
  yield* batched('remove', removalsOf(before, after, seen), (line) => JSON.stringify(macOf(line)));
  if (seen.hasPuts) yield* batched('put', putsOf(before, after), entryTextOf);
  // so that the helper never has the sets of more than two tables
  yield* batched('forget', idsOnlyIn(before, after), (id) => JSON.stringify(id));
}

/** The ids of the sets of options that only the first table has. */
function idsOnlyIn({ optionIds }: ReceivedTable, other: ReceivedTable): Set<string> {
  return new Set([...optionIds].filter((id) => !other.optionIds.has(id)));
}

/** The lines of guests that are gone, or get other addresses. */
async function* removalsOf(
  before: ReceivedTable,
  after: ReceivedTable,
  seen: { hasPuts: boolean },
): AsyncGenerator<string> {
  for await (const { old, now } of differencesBetween(before, after)) {
    seen.hasPuts ||= now !== undefined;
    if (old !== undefined && (now === undefined || !isSameGuest(entryOf(old), entryOf(now)))) yield old;
  }
}

async function* putsOf(before: ReceivedTable, after: ReceivedTable): AsyncGenerator<string> {
  for await (const { now } of differencesBetween(before, after)) if (now !== undefined) yield now;
}

/** The lines of one MAC address in two tables, at least one of them. */
interface Pair {
  readonly old: string | undefined;
  readonly now: string | undefined;
}

async function* differencesBetween(before: ReceivedTable, after: ReceivedTable): AsyncGenerator<Pair> {
  for await (const { old, now } of pairsOf(before, after))
    if (old === undefined || now === undefined || entryTextOf(old) !== entryTextOf(now)) yield { old, now };
}

/** Reads both tables side by side, which have the same order. */
async function* pairsOf(before: ReceivedTable, after: ReceivedTable): AsyncGenerator<Pair> {
  const [olds, nows] = [before.entryLines(), after.entryLines()];
  try {
    let [old, now] = [await nextOf(olds), await nextOf(nows)];
    while (old !== undefined || now !== undefined) {
      const order = compareMacs(old, now);
      yield { old: order <= 0 ? old : undefined, now: order >= 0 ? now : undefined };
      if (order <= 0) old = await nextOf(olds);
      if (order >= 0) now = await nextOf(nows);
    }
  } finally {
    await Promise.all([olds.return(undefined), nows.return(undefined)]);
  }
}

/** A table that has ended comes last. */
function compareMacs(old: string | undefined, now: string | undefined): number {
  if (old === undefined) return 1;
  if (now === undefined || macOf(old) < macOf(now)) return -1;
  return macOf(old) === macOf(now) ? 0 : 1;
}

async function nextOf(lines: AsyncGenerator<string>): Promise<string | undefined> {
  const { done, value } = (await lines.next()) as IteratorResult<string, undefined>;
  return done === true ? undefined : value;
}

/** True if both give the same addresses. */
function isSameGuest(one: TableEntry, other: TableEntry): boolean {
  return one.ipv4?.address === other.ipv4?.address && one.ipv6?.address === other.ipv6?.address;
}

/** One command for as many items as fit. */
async function* batched(
  command: 'put' | 'remove' | 'forget',
  lines: AsyncIterable<string> | Iterable<string>,
  itemOf: (line: string) => string,
): CommandLines {
  let batch: string[] = [];
  let length = 0;
  const take = () => {
    const text = `{"${command}":[${batch.join()}]}`;
    [batch, length] = [[], 0];
    return text;
  };
  for await (const line of lines) {
    const item = itemOf(line);
    if (batch.length === MAX_BATCH || (batch.length > 0 && length + item.length > MAX_BATCH_LENGTH)) yield take();
    batch.push(item);
    length += item.length;
  }
  if (batch.length > 0) yield take();
}
