import { createInterface } from 'node:readline';
import { truncate } from '../api/json.js';

/** Characters that a terminal interprets or hides: controls (C0, DEL, C1), format characters such as those of bidirectional text, lone surrogates, and line separators. */
const HIDDEN_CHARACTERS = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const MAX_CELL_LENGTH = 256;

/**
 * Escapes characters that are unsafe on a terminal. Objects contain text of tenants, whose escape sequences could move the cursor or forge lines.
 * The escapes are those of JSON, so that JSON keeps its values.
 */
export function escapeLine(line: string): string {
  return line.replaceAll(HIDDEN_CHARACTERS, (found) =>
    Array.from({ length: found.length }, (_, index) => unicodeEscape(found.charCodeAt(index))).join(''),
  );
}

/** Escapes and shortens a cell of a table because the widest cell determines the column. */
export function escapeCell(text: string): string {
  return escapeLine(truncate(text, MAX_CELL_LENGTH));
}

/** Formats a value as lines of JSON. */
export function jsonLines(value: unknown): string[] {
  return JSON.stringify(value, undefined, 2).split('\n');
}

/** All output of the command goes through this function. */
export function writeLine(stream: Pick<NodeJS.WriteStream, 'write'>, line: string): void {
  stream.write(`${escapeLine(line)}\n`);
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

function unicodeEscape(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}
