import { expect } from 'chai';
import { parse } from 'yaml';
import { type Column, type OutputFormat, printOutput, tableLines } from './output.js';
import { type Line, escapeLine, textOf } from './terminal.js';

interface Row {
  readonly name: string;
  readonly free: number;
  readonly note?: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { header: 'NAME', value: ({ name }) => name },
  { header: 'FREE', value: ({ free }) => ({ text: String(free), style: free === 0 ? 'red' : 'green' }) },
  { header: 'NOTE', value: ({ note = '' }) => note, isWide: true },
];
const ROWS: readonly Row[] = [
  { name: 'blue', free: 0, note: 'full' },
  { name: '\u202eneerg', free: 254, note: 'tag \u{E0041}' },
];

/** Spec of YAML 1.2, section 5.7: the escapes that go-yaml accepts are those of Unicode scalar values. */
const HALF_A_CHARACTER = /\\u[dD][89a-fA-F]/;

function printed(format: OutputFormat): string[] {
  const lines: Line[] = [];
  const output = { data: ROWS, lines: (isWide: boolean) => tableLines(COLUMNS, ROWS, isWide) };
  printOutput(format, output, (line) => lines.push(line));
  return lines.map((line) => escapeLine(textOf(line)));
}

describe('the output of a command', () => {
  it('is a table, in which -o wide shows more columns', () => {
    expect(printed('table')).to.deep.equal(['NAME          FREE', 'blue          0', '\\u202eneerg   254']);
    expect(printed('wide')[1]).to.equal('blue          0      full');
  });

  it('is a table of any number of rows', () => {
    const many = Array.from({ length: 200_000 }, () => ROWS[0]!);
    expect(tableLines(COLUMNS, many, false)).to.have.length(200_001);
  });

  for (const [format, read] of [
    ['json', (text: string): unknown => JSON.parse(text)],
    ['yaml', (text: string): unknown => parse(text)],
  ] as const)
    it(`keeps its values in ${format}, also those with hidden characters`, () => {
      const lines = printed(format);
      expect(lines.join('\n')).not.to.match(/\p{Cf}/u);
      expect(read(lines.join('\n'))).to.deep.equal(ROWS);
    });

  it('is YAML that programs written in Go read: it has no escapes of halves of characters', () => {
    const data = { '\u{E0041}': 'a\u{E0041}', half: 'a\ud800b' };
    const lines: Line[] = [];
    printOutput('yaml', { data, lines: () => [] }, (line) => lines.push(line));
    const text = lines.map((line) => escapeLine(textOf(line))).join('\n');
    expect(text).not.to.match(HALF_A_CHARACTER);
    expect(parse(text)).to.deep.equal({ ...data, half: 'a\ufffdb' });
  });
});
