import { TransportError } from './errors.js';
import { nextTurn } from './run-in-slices.js';

const NEWLINE = 0x0a;
/** An API object has at most about 3 MB; a much longer line is not a watch event. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** A page of a list. Several that are parsed in one turn of the event loop would add up to a long block. */
const LONG_TEXT = 65_536;

/**
 * Splits a byte stream into newline-delimited JSON values. Each byte is read once, for chunks of any size.
 * @throws {TransportError} `malformed` for broken JSON, a line that is too long, and an end within a line
 */
export async function* readJsonLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<unknown, void, undefined> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = takeLine(pending, chunk.subarray(start, end));
      pending = [];
      pendingBytes = 0;
      start = end + 1;
      if (line !== '') yield parseJson(line);
    }
    if (start === chunk.length) continue;
    pending.push(chunk.subarray(start));
    pendingBytes += chunk.length - start;
    if (pendingBytes > MAX_LINE_BYTES) throw new TransportError('malformed', `a line exceeds ${MAX_LINE_BYTES} bytes`);
  }
  if (takeLine(pending, Buffer.alloc(0)) !== '')
    throw new TransportError('malformed', 'the stream ended within a line');
}

function takeLine(pending: Buffer[], tail: Buffer): string {
  const bytes = pending.length === 0 ? tail : Buffer.concat([...pending, tail]);
  return bytes.toString('utf8').trim();
}

/** @throws {TransportError} `malformed` */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TransportError('malformed', `the response is not JSON: ${text.slice(0, 80)}`, error);
  }
}

/**
 * @returns undefined for an empty answer
 * @throws {TransportError} `malformed`
 */
export async function parseAnswer(text: string): Promise<unknown> {
  if (text.length >= LONG_TEXT) await nextTurn();
  return text === '' ? undefined : parseJson(text);
}
