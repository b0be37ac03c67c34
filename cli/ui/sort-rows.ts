import { readAddress } from '../../addressing/address/address.js';
import { joinKey } from '../../api/meta.js';
import { MAX_ROWS, boundedList } from './bounds.js';
import type { BoundedList, PoolRow, VmRow } from './protocol.js';

type SortKey<Row> = (row: Row) => string | number;

/** By the names of the columns that the page sorts. */
export const POOL_SORTS: Readonly<Record<string, SortKey<PoolRow>>> = {
  pool: ({ name }) => name,
  network: ({ network }) => network,
  use: ({ counts }) => Math.max(...counts.map(({ free, capacity }) => 1 - free / Math.max(capacity, 1))),
  free: ({ counts }) => Math.min(...counts.map(({ free }) => free)),
  cooling: ({ counts }) => Math.max(...counts.map(({ cooling }) => cooling)),
  problems: ({ isReady, problems }) => problems.length + (isReady ? 0 : 1),
};
export const VM_SORTS: Readonly<Record<string, SortKey<VmRow>>> = {
  vm: ({ namespace, name }) => joinKey(namespace, name),
  status: ({ status }) => status,
  node: ({ node }) => node,
  addresses: ({ addresses: [first = ''] }) => addressKey(first),
  problem: ({ problem }) => problem,
};

/** vm2 stands before vm10. */
const TEXTS = new Intl.Collator('en', { numeric: true });
const PASSES = 64;

/**
 * Returns the first rows of an order, without sorting all.
 * @param sort a name of `keys`, after `-` in descending order; others change nothing
 */
export function sortedList<Row>(
  rows: readonly Row[],
  sort: string,
  keys: Readonly<Record<string, SortKey<Row>>>,
): BoundedList<Row> {
  const name = sort.replace(/^-/, '');
  const key = Object.hasOwn(keys, name) ? keys[name] : undefined;
  if (key === undefined) return boundedList(rows);
  const sign = sort.startsWith('-') ? -1 : 1;
  const keyed = rows.map((row, index) => ({ row, index, key: key(row) }));
  type Keyed = (typeof keyed)[number];
  const compare = (a: Keyed, b: Keyed) => sign * compareKeys(a.key, b.key) || a.index - b.index;
  let first: Keyed[] = [];
  // each pass looks at rows of all places: after the first one, few stand before the last of the rows to return
  for (let pass = 0; pass < PASSES; pass += 1) {
    const last = first[MAX_ROWS - 1];
    for (let at = pass; at < keyed.length; at += PASSES) {
      const each = keyed[at];
      if (each !== undefined && (last === undefined || compare(each, last) < 0)) first.push(each);
    }
    first = first.sort(compare).slice(0, MAX_ROWS);
  }
  return { rows: first.map(({ row }) => row), total: rows.length };
}

/** fd00::a stands before fd00::10. */
function addressKey(text: string): string {
  const address = readAddress(text);
  return address === undefined ? text : `${address.family} ${address.value}`;
}

function compareKeys(a: string | number, b: string | number): number {
  if (a === b) return 0;
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : 1;
  return TEXTS.compare(String(a), String(b));
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
