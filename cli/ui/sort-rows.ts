import { joinKey } from '../../api/meta.js';
import type { PoolRow, VmRow } from './protocol.js';

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
  addresses: ({ addresses }) => addresses[0] ?? '',
  problem: ({ problem }) => problem,
};

/** vm2 and 10.0.0.2 stand before vm10 and 10.0.0.10. */
const TEXTS = new Intl.Collator('en', { numeric: true });

/** Sorts all rows, before the list is cut. @param sort a name of `keys`, after `-` in descending order; others change nothing */
export function sortRows<Row>(
  rows: readonly Row[],
  sort: string,
  keys: Readonly<Record<string, SortKey<Row>>>,
): readonly Row[] {
  const name = sort.replace(/^-/, '');
  const key = Object.hasOwn(keys, name) ? keys[name] : undefined;
  if (key === undefined) return rows;
  const sign = sort.startsWith('-') ? -1 : 1;
  return [...rows].sort((a, b) => sign * compareKeys(key(a), key(b)));
}

function compareKeys(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a === b ? 0 : a < b ? -1 : 1;
  return TEXTS.compare(String(a), String(b));
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
