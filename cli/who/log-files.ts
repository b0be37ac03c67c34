import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { pipeline } from 'node:stream/promises';
import { PassThrough } from 'node:stream';
import { MAX_AUDIT_LINE } from '../../api/audit-record.js';
import { messageOf } from '../../kube/errors.js';
import { CommandError } from '../command-error.js';

/** Takes the place of a line that is too long. */
const TOO_LONG = '(too long)';

/** Reads the lines of a file, which may be compressed with gzip: its name then ends with `.gz`. @throws {CommandError} if it cannot be read */
export async function* linesOfFile(path: string): AsyncGenerator<string> {
  const output = new PassThrough();
  const source = createReadStream(path);
  const copied = path.endsWith('.gz') ? pipeline(source, createGunzip(), output) : pipeline(source, output);
  copied.catch(() => undefined);
  try {
    yield* splitLines(output);
  } catch (error) {
    throw new CommandError(`cannot read ${path}: ${messageOf(error)}`, { cause: error });
  } finally {
    source.destroy();
  }
}

/** Splits text into lines. Never keeps more than one line and one chunk in memory. */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  let isTooLong = false;
  const decoder = new TextDecoder();
  for await (const chunk of chunks) {
    const parts = decoder.decode(chunk, { stream: true }).split('\n');
    for (const [index, part] of parts.entries()) {
      rest = isTooLong ? '' : rest + part;
      isTooLong ||= rest.length > MAX_AUDIT_LINE;
      if (index === parts.length - 1) break;
      yield isTooLong ? TOO_LONG : rest;
      [rest, isTooLong] = ['', false];
    }
  }
  if (rest !== '' || isTooLong) yield isTooLong ? TOO_LONG : rest;
}
