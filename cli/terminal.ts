import { createInterface } from 'node:readline';
import { styleText } from 'node:util';
import { truncate } from '../api/json.js';

/** Characters that a terminal interprets or hides: controls (C0, DEL, C1), format characters such as those of bidirectional text, lone surrogates, and line separators. */
const HIDDEN_CHARACTERS = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const MAX_CELL_LENGTH = 256;
const DEFAULT_COLUMNS = 80;
/** ECMA-48: carriage return, and erase the line. */
const ERASE_LINE = '\r\u001b[K';

export type Style = 'red' | 'yellow' | 'green' | 'cyan' | 'dim' | 'bold';

/** Text, with a style that only terminals show. */
export type Span = string | { readonly text: string; readonly style: Style };
export type Line = string | readonly Span[];

type TextStream = Pick<NodeJS.WriteStream, 'write'> &
  Partial<Pick<NodeJS.WriteStream, 'isTTY' | 'hasColors' | 'columns'>>;

/** Returns a line without its styles. */
export function textOf(line: Line): string {
  return typeof line === 'string' ? line : line.map((span) => (typeof span === 'string' ? span : span.text)).join('');
}

/** Whether {@link escapeLine} changes the text. */
export function hasHiddenCharacters(text: string): boolean {
  return text.search(HIDDEN_CHARACTERS) >= 0;
}

/**
 * Escapes characters that are unsafe on a terminal. Objects contain text of tenants, whose escape sequences could move the cursor or forge lines.
 * The escapes are those of JSON, so that JSON keeps its values.
 */
export function escapeLine(line: string, escape = escapeForJson): string {
  return line.replaceAll(HIDDEN_CHARACTERS, escape);
}

/** Escapes and shortens a cell of a table because the widest cell determines the column. */
export function escapeCell(text: string): string {
  return escapeLine(truncate(text, MAX_CELL_LENGTH));
}

/** Formats a value as lines of JSON. */
export function jsonLines(value: unknown): string[] {
  return JSON.stringify(value, undefined, 2).split('\n');
}

/** All output of the command goes through this function. Colours are shown only on a terminal that has some; NO_COLOR turns them off. */
export function writeLine(stream: TextStream, line: Line): void {
  const isColoured = stream.isTTY === true && stream.hasColors?.() === true;
  const spans = typeof line === 'string' ? [line] : line;
  const text = spans.map((span) => {
    if (typeof span === 'string') return escapeLine(span);
    const escaped = escapeLine(span.text);
    return isColoured ? styleText(span.style, escaped, { validateStream: false }) : escaped;
  });
  stream.write(`${text.join('')}\n`);
}

/** Where a command prints. */
export interface Terminal {
  /** Prints a line of the result. */
  readonly print: (line: Line) => void;
  /** Prints progress and problems, which are not part of the result. */
  readonly printStatus: (line: string) => void;
  /** Shows what the command does now, until the next line; nothing unless standard error is a terminal. */
  readonly showProgress: (text: string) => void;
  /** Asks the user; undefined without a terminal. */
  readonly ask: ((question: string) => Promise<string>) | undefined;
  /** The width of the terminal that shows the result; undefined if the result goes elsewhere. */
  readonly columns: number | undefined;
}

export function createTerminal(stdout: TextStream, stderr: TextStream, ask: Terminal['ask']): Terminal {
  let isShown = false;
  const erase = () => {
    if (isShown) stderr.write(ERASE_LINE);
    isShown = false;
  };
  const write = (stream: TextStream, line: Line) => {
    erase();
    writeLine(stream, line);
  };
  return {
    print: (line) => write(stdout, line),
    printStatus: (line) => write(stderr, line),
    showProgress: (text) => {
      if (stderr.isTTY !== true) return;
      erase();
      // only one line can be erased, and a text as wide as the terminal may begin a second one
      if (text !== '') stderr.write(truncate(escapeLine(text), (stderr.columns ?? DEFAULT_COLUMNS) - 2));
      isShown = text !== '';
    },
    ask,
    columns: stdout.isTTY === true ? (stdout.columns ?? DEFAULT_COLUMNS) : undefined,
  };
}

/** Asks the user. @returns the answer; empty if the input ends */
export function askOnTerminal(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    terminal.once('close', () => resolve(''));
    terminal.question(escapeLine(question), (answer) => {
      resolve(answer);
      terminal.close();
    });
  });
}

/** JSON has only escapes of UTF-16: a character above U+FFFF has two. */
function escapeForJson(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}
