import { BITS, formatAddress, readAddress } from '../../addressing/address/address.js';
import { ADDRESS_STATES } from '../../addressing/address-states.js';
import { type Cidr, containsAddress, firstOf, formatCidr } from '../../addressing/address/cidr.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { AddressMap, AddressRun, SubnetMap } from '../usage/address-map.js';
import { type Cell, cellsOf } from '../usage/pool-map.js';
import type { LeaseRow, MapCell, MapWindow, PoolView } from './protocol.js';

/** The cells of a window: 16 rows of 16. */
const CELL_BITS = 8;
/** A window of this size shows the state of each address. */
const MAX_STATES_BITS = 16;

/** Returns the subnets of a pool for the choice of a window. A subnet that is too large to show each address begins at the addresses in use. */
export function subnetsOf({ subnets }: AddressMap): PoolView['subnets'] {
  return subnets.map((subnet) => {
    const { at, bits } = startOf(subnet);
    return { cidr: formatCidr(subnet.cidr), top: textOf(subnet.cidr, at), bits };
  });
}

/**
 * Returns a part of the map.
 * @param at an address in the part; if it is in no subnet, the first subnet is shown
 * @param bits of the size of the part; cut to that of the subnet
 * @param rowOf describes a lease
 * @returns undefined if the pool has no subnet
 */
export function windowOf(
  { subnets }: AddressMap,
  { at, bits }: { at: string; bits: number | undefined },
  leases: readonly LeaseRecord[],
  rowOf: (lease: LeaseRecord) => LeaseRow,
): MapWindow | undefined {
  const wanted = readAddress(at);
  const subnet = subnets.find(({ cidr }) => wanted !== undefined && containsAddress(cidr, wanted)) ?? subnets[0];
  if (subnet === undefined) return undefined;
  const { cidr, runs } = subnet;
  const start = startOf(subnet);
  const value = wanted !== undefined && containsAddress(cidr, wanted) ? wanted.value : start.at;
  const size = Math.min(Math.max(bits ?? start.bits, 0), sizeBitsOf(cidr));
  const first = alignDown(value, size);
  const range = { first, last: first + (1n << BigInt(size)) - 1n };
  const isShown = ({ address }: LeaseRecord) =>
    address.family === cidr.family && address.value >= first && address.value <= range.last;
  const own = size > CELL_BITS ? [] : leases.filter(isShown);
  const rows = new Map(own.map((lease) => [lease.address.value, lease]));
  const cells = cellsOf(runs, range, size > CELL_BITS ? 1 << CELL_BITS : 1 << size).map((cell): MapCell => {
    const lease = cell.first === cell.last ? rows.get(cell.first) : undefined;
    return { ...cellText(cidr, cell), ...(lease !== undefined && { lease: rowOf(lease) }) };
  });
  return {
    first: textOf(cidr, range.first),
    last: textOf(cidr, range.last),
    bits: size,
    cells,
    ...(size <= MAX_STATES_BITS && { states: statesOf(runs, range) }),
  };
}

function cellText(cidr: Cidr, { first, last, counts }: Cell): MapCell {
  const texts = Object.entries(counts).map(([state, count]) => [state, String(count)]);
  return {
    first: textOf(cidr, first),
    last: textOf(cidr, last),
    counts: Object.fromEntries(texts) as MapCell['counts'],
  };
}

function statesOf(runs: readonly AddressRun[], { first, last }: { first: bigint; last: bigint }): string {
  const parts: string[] = [];
  for (const run of runs) {
    if (run.last < first || run.first > last) continue;
    const from = run.first > first ? run.first : first;
    const to = run.last < last ? run.last : last;
    parts.push(ADDRESS_STATES[run.state].letter.repeat(Number(to - from) + 1));
  }
  return parts.join('');
}

/** The subnet, or of a larger one the smallest aligned part with all addresses in use; at least as large as a window that shows each address. */
function startOf({ cidr, runs }: SubnetMap): { at: bigint; bits: number } {
  if (sizeBitsOf(cidr) <= MAX_STATES_BITS) return { at: firstOf(cidr), bits: sizeBitsOf(cidr) };
  const isUsed = ({ state }: AddressRun) => state !== 'free' && state !== 'excluded';
  const first = runs.find(isUsed)?.first ?? firstOf(cidr);
  const last = runs.findLast(isUsed)?.last ?? first;
  const bits = Math.max(MAX_STATES_BITS, (first ^ last).toString(2).length);
  return { at: alignDown(first, bits), bits: Math.min(bits, sizeBitsOf(cidr)) };
}

function sizeBitsOf({ family, prefixLength }: Cidr): number {
  return BITS[family] - prefixLength;
}

function alignDown(value: bigint, bits: number): bigint {
  return (value >> BigInt(bits)) << BigInt(bits);
}

function textOf({ family }: Cidr, value: bigint): string {
  return formatAddress({ family, value });
}
