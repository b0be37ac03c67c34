import { type Range, lastIndexWhere } from '../../addressing/address/ranges.js';
import type { AddressRun } from './address-map.js';
import type { AddressState } from '../../addressing/address-states.js';

/** Some neighbouring addresses, as one character of a terminal or one rectangle of a page. */
export interface Cell extends Range {
  /** How many addresses are in which state. States without addresses are absent. */
  readonly counts: Readonly<Partial<Record<AddressState, bigint>>>;
  /** Present if all addresses are in blocks of this node. */
  readonly node?: string;
}

/** More than any screen shows. */
const MAX_CELLS = 65_536;

/**
 * Divides a range into at most `width` cells of the same number of addresses; the last one may have fewer. Time grows with the runs in the
 * range and with `width`.
 * @param runs those of one subnet, see {@link SubnetMap}
 * @throws {RangeError} if the width is not an integer from 1 to 65,536
 */
export function cellsOf(runs: readonly AddressRun[], { first, last }: Range, width: number): Cell[] {
  if (!Number.isInteger(width) || width < 1 || width > MAX_CELLS) {
    throw new RangeError(`a width of ${width} cells is not possible: use 1 to ${MAX_CELLS}`);
  }
  const size = (last - first) / BigInt(width) + 1n;
  const cells: Cell[] = [];
  let index = Math.max(
    0,
    lastIndexWhere(runs, (run) => run.first <= first),
  );
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
