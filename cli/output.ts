import { Document, isScalar, visit } from 'yaml';
import { type Line, type Span, escapeCell, escapeLine, hasHiddenCharacters, jsonLines, textOf } from './terminal.js';

export const OUTPUT_FORMATS = ['table', 'wide', 'json', 'yaml'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** A column of a table. */
export interface Column<Row> {
  readonly header: string;
  readonly value: (row: Row) => Span;
  /** Shown only by `-o wide`. */
  readonly isWide?: boolean;
}

/** What a command found. */
export interface Output {
  /** For `-o json` and `-o yaml`. Programs read it: fields are added, but not renamed or removed. */
  readonly data: unknown;
  /** For people. */
  readonly lines: (isWide: boolean) => readonly Line[];
}

/** Prints what a command found. All commands that print data use it. */
export function printOutput(format: OutputFormat, { data, lines }: Output, print: (line: Line) => void): void {
  for (const line of dataLines(format, data) ?? lines(format === 'wide')) print(line);
}

/** Formats data for programs; undefined if the format is for people. */
export function dataLines(format: OutputFormat, data: unknown): string[] | undefined {
  if (format === 'json') return jsonLines(data);
  return format === 'yaml' ? yamlLines(data) : undefined;
}

/** Formats rows as a table of the columns that the format shows. */
export function tableLines<Row>(columns: readonly Column<Row>[], rows: readonly Row[], isWide: boolean): Line[] {
  const shown = columns.filter((column) => isWide || column.isWide !== true);
  const headers = shown.map(({ header }) => header);
  return formatStyledTable(
    headers,
    rows.map((row) => shown.map(({ value }) => value(row))),
  );
}

function yamlLines(data: unknown): string[] {
  // the same values as in JSON
  const document = new Document(JSON.parse(JSON.stringify(data)));
  visit(document, {
    Scalar: (_key, node) => {
      if (!isScalar(node) || typeof node.value !== 'string' || !hasHiddenCharacters(node.value)) return;
      // YAML reads escapes only between double quotes, and has none of half a character
      node.type = 'QUOTE_DOUBLE';
      node.value = node.value.replaceAll(/\p{Cs}/gu, '\ufffd');
    },
  });
  const lines = document.toString({ lineWidth: 0 }).trimEnd().split('\n');
  return lines.map((line) => escapeLine(line, escapeForYaml));
}

/** Programs written in Go reject the escapes of JSON for a character above U+FFFF. */
function escapeForYaml(character: string): string {
  return `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, '0')}`;
}

const GAP = '   ';

/** Formats a table like kubectl: each column is as wide as its widest cell. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return formatStyledTable(header, rows).map(textOf);
}

/** As {@link formatTable}, with cells that have a style. */
function formatStyledTable(header: readonly string[], rows: readonly (readonly Span[])[]): Line[] {
  const all = [header, ...rows].map((row) => row.map((cell) => ({ cell, text: escapeCell(textOf([cell])) })));
  // not Math.max(...): a call has at most about 120,000 arguments
  const widths = header.map((_, column) => all.reduce((max, row) => Math.max(max, row[column]?.text.length ?? 0), 0));
  return all.map((row) => {
    const last = row.findLastIndex(({ text }) => text !== '');
    return row.slice(0, last + 1).flatMap(({ cell, text }, column): Span[] => {
      const styled = typeof cell === 'string' ? text : { ...cell, text };
      return column === last ? [styled] : [styled, ' '.repeat((widths[column] ?? 0) - text.length) + GAP];
    });
  });
}

export function count(number: number, noun: string, nouns = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : nouns}`;
}

/** Formats lines under a title; nothing if there are none. */
export function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`${title}:`, ...lines.map((line) => `  ${line}`), ''];
}
