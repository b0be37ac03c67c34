import { type HelperCommand, MAX_BATCH, type TableEntry } from '../responder-tables/protocol.js';
import type { GuestTable } from '../responder-tables/guest-table.js';

/** Returns the messages that give the helper its first table: it drops all entries that are not in it. */
export function snapshotOf({ entries, options }: GuestTable): HelperCommand[] {
  return [
    ...[...options.values()].map((set) => ({ options: set })),
    { snapshot: 'begin' },
    ...batches([...entries.values()]).map((put) => ({ put })),
    { snapshot: 'end' },
  ];
}

/**
 * Returns the messages that turn one table into another. An address changes its guest in two steps, so that the helper never has two entries with
 * one address.
 */
export function changesBetween(before: GuestTable, after: GuestTable): HelperCommand[] {
  const options = [...after.options.values()].filter(({ id }) => !before.options.has(id));
  const changed = [...after.entries.values()].filter((entry) => !isEqual(before.entries.get(entry.mac), entry));
  const remove = [...before.entries.values()].filter((entry) => !isSameGuest(entry, after.entries.get(entry.mac)));
  return [
    ...options.map((set) => ({ options: set })),
    ...batches(remove.map(({ mac }) => mac)).map((macs) => ({ remove: macs })),
    ...batches(changed).map((put) => ({ put })),
  ];
}

function isEqual(before: TableEntry | undefined, after: TableEntry): boolean {
  return JSON.stringify(before) === JSON.stringify(after);
}

/** True if both give the same addresses. */
function isSameGuest(one: TableEntry, other: TableEntry | undefined): boolean {
  if (other === undefined) return false;
  return one.ipv4?.address === other.ipv4?.address && one.ipv6?.address === other.ipv6?.address;
}

function batches<T>(items: readonly T[]): T[][] {
  const found: T[][] = [];
  for (let start = 0; start < items.length; start += MAX_BATCH) found.push(items.slice(start, start + MAX_BATCH));
  return found;
}
