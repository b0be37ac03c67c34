import { truncate } from '../api/json.js';

/** Characters that a terminal obeys or hides: controls (C0, DEL, C1), format characters such as those of bidirectional text, lone surrogates, and line separators. */
const HIDDEN_CHARACTERS = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const MAX_CELL_LENGTH = 256;

/**
 * One line as a terminal may have it. Objects hold text of tenants, and escape sequences in it would move the cursor or forge lines. They
 * are shown as JSON writes them, so that JSON stays JSON with the same values.
 */
export function escapeLine(line: string): string {
  return line.replaceAll(HIDDEN_CHARACTERS, (found) =>
    Array.from({ length: found.length }, (_, index) => unicodeEscape(found.charCodeAt(index))).join(''),
  );
}

/** A cell of a table, whose width all other rows have, too. */
export function escapeCell(text: string): string {
  return escapeLine(truncate(text, MAX_CELL_LENGTH));
}

/** To be printed line by line: a line break within a text is an escape there. */
export function jsonLines(value: unknown): string[] {
  return JSON.stringify(value, undefined, 2).split('\n');
}

/** All that the command says goes through here. */
export function writeLine(stream: Pick<NodeJS.WriteStream, 'write'>, line: string): void {
  stream.write(`${escapeLine(line)}\n`);
}

function unicodeEscape(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`;
}
