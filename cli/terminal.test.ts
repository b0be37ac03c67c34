import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { formatTable } from './output.js';
import { createTerminal, escapeLine, jsonLines, writeLine } from './terminal.js';

const ESCAPE = '\u001b[2J';

function written(lines: readonly string[]): string {
  let text = '';
  for (const line of lines) writeLine({ write: (chunk: unknown) => ((text += String(chunk)), true) }, line);
  return text;
}

describe('the output of kubectl holdfast', () => {
  const rows: { name: string; given: string; expect: string }[] = [
    { name: 'an escape sequence', given: `a${ESCAPE}b`, expect: String.raw`a\u001b[2Jb` },
    { name: 'a C1 control', given: 'a\u009b2Jb', expect: String.raw`a\u009b2Jb` },
    { name: 'a line break', given: 'a\r\nforged', expect: String.raw`a\u000d\u000aforged` },
    { name: 'text from right to left', given: 'a\u202eb', expect: String.raw`a\u202eb` },
    { name: 'a character beyond the first plane', given: 'a\u{e0041}b', expect: String.raw`a\udb40\udc41b` },
    { name: 'a lone surrogate', given: 'a\ud800b', expect: String.raw`a\ud800b` },
  ];
  for (const { name, given, expect: expected } of rows) {
    it(`escapes ${name} as in JSON`, () => expect(escapeLine(given)).to.equal(expected));
  }

  it('contains any other text unchanged', () => {
    expect(escapeLine('pool "blue" – 10.0.0.5 für ä 𝄞')).to.equal('pool "blue" – 10.0.0.5 für ä 𝄞');
  });

  it('keeps the values of JSON', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.string({ unit: fc.constantFrom('a', '\n', '\u001b', '\u0085', '\u202e') }),
        (value, text) => {
          const given = { value, text };
          const output = written(jsonLines(given));
          expect(JSON.parse(output)).to.deep.equal(JSON.parse(JSON.stringify(given)));
          expect(output.replaceAll('\n', '')).to.not.match(/\p{Cc}|\u202e/u);
        },
      ),
    );
  });

  it('has tables whose columns fit the escaped text, with long cells cut', () => {
    const [header, first, second] = formatTable(
      ['A', 'B'],
      [
        [`x${ESCAPE}`, '1'],
        ['x'.repeat(5000), '2'],
      ],
    );
    expect(first!.indexOf('1', 12)).to.equal(header!.indexOf('B'));
    expect(second!.length).to.be.below(300);
  });

  it('for people is written by one function', () => {
    const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' });
    const writers = files
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .filter((file) =>
        /\b(?:stdout|stderr)\.write\(|console\./.test(readFileSync(join(import.meta.dirname, file), 'utf8')),
      );
    // main.ts answers the programs of shells that complete words
    expect(writers).to.have.members(['main.ts', 'terminal.ts']);
  });
});

describe('the terminal of kubectl holdfast', () => {
  function stream(isTTY: boolean, hasColors = isTTY) {
    const made = {
      text: '',
      isTTY,
      hasColors: () => hasColors,
      write: (chunk: unknown) => ((made.text += String(chunk)), true),
    };
    return made;
  }
  const LINE = ['pool ', { text: `full${ESCAPE}`, style: 'red' }] as const;

  it('shows colours, and escapes the text in them', () => {
    const screen = stream(true);
    writeLine(screen, LINE);
    expect(screen.text).to.equal('pool \u001b[31mfull\\u001b[2J\u001b[39m\n');
  });

  for (const [where, screen] of [
    ['in a pipe', stream(false, true)],
    ['on a terminal without colours, or with NO_COLOR', stream(true, false)],
  ] as const)
    it(`shows no colours ${where}`, () => {
      writeLine(screen, LINE);
      expect(screen.text).to.equal('pool full\\u001b[2J\n');
    });

  it('replaces the progress by the next line', () => {
    const [out, errors] = [stream(false), stream(true)];
    const terminal = createTerminal(out, errors, undefined);
    terminal.showProgress('1 of 2');
    terminal.print('done');
    terminal.printStatus('and more');
    expect(errors.text).to.equal('1 of 2\r\u001b[Kand more\n');
    expect(out.text).to.equal('done\n');
  });

  it('cuts the progress to the width of the terminal: only one line can be erased', () => {
    const errors = { ...stream(true), columns: 20 };
    const written: string[] = [];
    createTerminal(
      errors,
      { ...errors, write: (text: unknown) => written.push(String(text)) > 0 },
      undefined,
    ).showProgress('1 of 10: worker-1\u0007 → worker-2…');
    expect(written).to.deep.equal(['1 of 10: worker-1\\…']);
    expect(written[0]?.length).to.be.lessThan(20);
  });

  it('shows no progress in a file', () => {
    const errors = stream(false);
    createTerminal(errors, errors, undefined).showProgress('1 of 2');
    expect(errors.text).to.equal('');
  });
});
