import { ADDRESS_STATES, type AddressState, STATE_NAMES } from '../../addressing/address-states.js';
import { BITS, type Family, formatAddress } from '../../addressing/address/address.js';
import { type Cidr, formatCidr, networkOf, rangeOf } from '../../addressing/address/cidr.js';
import { type Range, lastIndexWhere } from '../../addressing/address/ranges.js';
import type { Line, Span } from '../terminal.js';
import type { AddressRun, SubnetMap } from './address-map.js';

/** The width of output that goes to no terminal. */
export const DEFAULT_WIDTH = 80;
const MAX_ROWS = 16;
const [MIN_CELLS, MAX_CELLS] = [16, 128];
/** In a larger subnet, only the part with leases is shown. */
const LARGEST_SHOWN = 1n << 16n;
const SMALLEST_SHOWN = 1n << 8n;

/** Tenths that are in use, and eighths on a terminal. */
const SHARES = ['123456789', '▁▂▃▄▅▆▇'] as const;

const TAKEN = STATE_NAMES.filter((state) => ADDRESS_STATES[state].use === 'taken');

/**
 * Draws a subnet: lines of cells, each with the same number of addresses, and a legend.
 * @param width the number of columns
 */
export function subnetLines(subnet: SubnetMap, width: number, isUnicode: boolean): Line[] {
  const { cidr, runs } = subnet;
  const shown = focusOf(subnet);
  const range = rangeOf(shown);
  const label = Math.max(formatAddress({ family: cidr.family, value: range.last }).length, 15);
  // a power of two
  const perRow = 2 ** Math.floor(Math.log2(Math.min(Math.max(width - label - 1, MIN_CELLS), MAX_CELLS)));
  const cells = cellsOf(runs, range, perRow * MAX_ROWS);
  const size = cells[0] === undefined ? 1n : cells[0].last - cells[0].first + 1n;
  const rows: Line[] = [];
  for (let from = 0; from < cells.length; from += perRow)
    rows.push(rowLine(cells.slice(from, from + perRow), cidr.family, { label, isUnicode }));
  const isPart = shown.prefixLength !== cidr.prefixLength;
  return [
    [
      { text: formatCidr(cidr), style: 'bold' },
      ...(isPart ? [`: ${formatCidr(shown)}, which contains all of its leases`] : []),
      `; one character is ${size === 1n ? 'one address' : `${size} addresses`}`,
    ],
    ...rows,
    legendLine(cells, isUnicode),
  ];
}

/** Returns the subnet, or the smallest block of a large subnet that contains all of its leases. */
function focusOf({ cidr, runs }: SubnetMap): Cidr {
  const { first, last } = rangeOf(cidr);
  const leased = runs.filter(({ state }) => ADDRESS_STATES[state].use !== undefined);
  const [lowest, highest] = [leased[0]?.first, leased.at(-1)?.last];
  if (last - first < LARGEST_SHOWN || lowest === undefined || highest === undefined) return cidr;
  const needed: Range = { first: lowest, last: highest };
  let { prefixLength } = cidr;
  while (prefixLength < BITS[cidr.family]) {
    const smaller = networkOf({ family: cidr.family, value: needed.first }, prefixLength + 1);
    const range = rangeOf(smaller);
    if (range.last < needed.last || range.last - range.first + 1n < SMALLEST_SHOWN) break;
    prefixLength += 1;
  }
  return networkOf({ family: cidr.family, value: needed.first }, prefixLength);
}

function rowLine(
  cells: readonly Cell[],
  family: Family,
  { label, isUnicode }: { label: number; isUnicode: boolean },
): Line {
  const [first] = cells;
  const address = first === undefined ? '' : formatAddress({ family, value: first.first });
  return [
    `${address.padEnd(label)} `,
    ...cells.map((cell): Span => {
      const text = symbolOf(cell, isUnicode);
      return cell.node === undefined ? text : { text, style: 'cyan' };
    }),
  ];
}

function symbolOf({ counts, first, last }: Cell, isUnicode: boolean): string {
  const sum = (states: readonly AddressState[]) => states.reduce((total, state) => total + (counts[state] ?? 0n), 0n);
  const taken = sum(TAKEN);
  const only = TAKEN.find((state) => counts[state] === last - first + 1n);
  const state = taken === 0n ? STATE_NAMES.find((each) => counts[each] !== undefined) : only;
  if (state !== undefined) return stateSymbol(state, isUnicode);
  const usable = last - first + 1n - sum(['excluded']);
  if (taken === usable) return stateSymbol('allocated', isUnicode);
  const shares = SHARES[isUnicode ? 1 : 0];
  return shares[Number((taken * BigInt(shares.length)) / usable)] ?? '';
}

function stateSymbol(state: AddressState, isUnicode: boolean): string {
  const { letter, symbol = letter } = ADDRESS_STATES[state];
  return isUnicode ? symbol : letter;
}

/** Explains the symbols that occur. */
function legendLine(cells: readonly Cell[], isUnicode: boolean): Line {
  const drawn = new Set(cells.map((cell) => symbolOf(cell, isUnicode)));
  const states = STATE_NAMES.filter((state) => drawn.has(stateSymbol(state, isUnicode)));
  const shares = SHARES[isUnicode ? 1 : 0];
  const isShared = [...drawn].some((symbol) => shares.includes(symbol));
  const parts = [
    ...states.map((state) => `${stateSymbol(state, isUnicode)} ${ADDRESS_STATES[state].text}`),
    ...(isShared ? [`${shares[0] ?? ''}-${shares.at(-1) ?? ''} partly in use`] : []),
  ];
  const lent: Span[] = cells.some(({ node }) => node !== undefined)
    ? [', ', { text: 'in a block of a node', style: 'cyan' }]
    : [];
  return [`  ${parts.join(', ')}`, ...lent];
}

/** Some neighbouring addresses, as one character of a terminal or one rectangle of a page. */
export interface Cell extends Range {
  /** How many addresses are in which state. States without addresses are absent. */
  readonly counts: Readonly<Partial<Record<AddressState, bigint>>>;
  /** Present if all addresses are in blocks of this node. */
  readonly node?: string;
}

/**
 * Divides a range into at most `width` cells of the same number of addresses; the last one may have fewer. Time grows with the runs in the
 * range and with `width`.
 * @param runs those of one subnet, see {@link SubnetMap}
 */
export function cellsOf(runs: readonly AddressRun[], { first, last }: Range, width: number): Cell[] {
  const size = (last - first) / BigInt(width) + 1n;
  const cells: Cell[] = [];
  const start = lastIndexWhere(runs, (run) => run.first <= first);
  let index = Math.max(0, start);
  for (let from = first; from <= last; from += size) {
    const to = from + size - 1n < last ? from + size - 1n : last;
    const inside: AddressRun[] = [];
    for (let run = runs[index]; run !== undefined && run.first <= to; run = runs[index]) {
      if (run.last >= from) inside.push(run);
      // the next cell begins in this run
      if (run.last > to) break;
      index += 1;
    }
    cells.push(cellOf({ first: from, last: to }, inside));
  }
  return cells;
}

function cellOf({ first, last }: Range, runs: readonly AddressRun[]): Cell {
  const counts: Partial<Record<AddressState, bigint>> = {};
  for (const run of runs) {
    const from = run.first > first ? run.first : first;
    const to = run.last < last ? run.last : last;
    counts[run.state] = (counts[run.state] ?? 0n) + to - from + 1n;
  }
  const node = runs[0]?.node;
  const isOfOneNode = node !== undefined && runs.every((run) => run.node === node);
  return { first, last, counts, ...(isOfOneNode && { node }) };
}
