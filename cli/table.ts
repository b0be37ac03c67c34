import { type Line, type Span, escapeCell, textOf } from './terminal.js';

const GAP = '   ';

/** Formats a table like kubectl: each column is as wide as its widest cell. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return formatStyledTable(header, rows).map(textOf);
}

/** As {@link formatTable}, with cells that have a style. */
export function formatStyledTable(header: readonly string[], rows: readonly (readonly Span[])[]): Line[] {
  const all = [header, ...rows].map((row) => row.map((cell) => ({ cell, text: escapeCell(textOf([cell])) })));
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.text.length ?? 0)));
  return all.map((row) => {
    const last = row.findLastIndex(({ text }) => text !== '');
    return row.slice(0, last + 1).flatMap(({ cell, text }, column): Span[] => {
      const styled = typeof cell === 'string' ? text : { ...cell, text };
      return column === last ? [styled] : [styled, ' '.repeat((widths[column] ?? 0) - text.length) + GAP];
    });
  });
}
