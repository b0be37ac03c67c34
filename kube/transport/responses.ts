import { type IncomingHttpHeaders, STATUS_CODES } from 'node:http';
import { asRecord, asString, isRecord } from '../../api/json.js';
import { type StatusDetails, StatusError, TransportError } from '../errors.js';
import { nextTurn } from '../run-in-slices.js';

interface StatusBody {
  kind?: string;
  reason?: string;
  message?: string;
  code?: number;
  details?: StatusDetails;
}

/** Converts an error response into a StatusError. A body that is not a metav1.Status, such as a proxy's page, is quoted in part. */
export function statusErrorOf(
  request: string,
  status: number,
  headers: IncomingHttpHeaders,
  text: string,
): StatusError {
  const body = parseStatus(text);
  const words = STATUS_CODES[status] ?? 'Unknown';
  return new StatusError({
    request,
    status,
    reason: body.reason || words.replaceAll(' ', ''),
    message: body.message || text.slice(0, 200).trim() || words,
    details: body.details,
    retryAfterMs: retryAfterOf(headers['retry-after'], body.details),
  });
}

/** Converts the object of a watch's ERROR event, a metav1.Status, into a StatusError. */
export function statusErrorOfEvent(request: string, object: unknown): StatusError {
  const body: StatusBody = asRecord(object);
  return statusErrorOf(request, body.code ?? 500, {}, JSON.stringify(object ?? {}));
}

function parseStatus(text: string): StatusBody {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && value.kind === 'Status' ? value : {};
  } catch {
    return {};
  }
}

/** An API server requests seconds. A proxy that requests hours must not stop a watch for so long. */
const MAX_RETRY_AFTER_MS = 60_000;

function retryAfterOf(header: string | string[] | undefined, details: StatusDetails | undefined): number | undefined {
  // an empty header requests nothing
  const seconds = Number(header || (details?.retryAfterSeconds ?? NaN));
  return seconds >= 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : undefined;
}

/** Codes of node:net, node:dns and undici which mean that no connection was made. TLS errors are recognized by their prefix. */
const UNSENT_CODES = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EMFILE',
  'UND_ERR_CONNECT_TIMEOUT',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]);

/** Converts an error of undici into a TransportError. */
export function transportErrorOf(request: string, error: unknown): TransportError {
  if (error instanceof TransportError)
    return new TransportError(error.fault, `${request}: ${error.message}`, error.cause);
  const { code = '', message } = describeThrown(error);
  const unsent =
    UNSENT_CODES.has(code) || code.startsWith('CERT_') || code.startsWith('ERR_TLS') || code.startsWith('ERR_SSL');
  const detail = [code, message].filter((part) => part !== '').join(': ');
  return new TransportError(unsent ? 'unsent' : 'broken', `${request}: ${detail}`, error);
}

function describeThrown(error: unknown): { code?: string; message: string } {
  if (!isRecord(error)) return { message: String(error) };
  return { code: asString(error.code), message: asString(error.message) };
}

const NEWLINE = 0x0a;
/** An API object has at most about 3 MB; a much longer line is not a watch event. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;
/** A page of a list. Several that are parsed in one turn of the event loop would add up to a long block. */
const LONG_ANSWER = 65_536;

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
 * Parses an answer. A long one waits for its turn as bytes: as a text, it would outlive garbage collections.
 * @param dropsManagedFields then its bytes are overwritten
 * @returns undefined for an empty answer
 * @throws {TransportError} `malformed`
 */
export async function parseAnswer(
  { buffer, byteOffset, byteLength }: Uint8Array,
  dropsManagedFields = false,
): Promise<unknown> {
  const json = Buffer.from(buffer, byteOffset, byteLength);
  if (json.length === 0) return undefined;
  if (json.length >= LONG_ANSWER) await nextTurn();
  return parseJson((dropsManagedFields ? withoutManagedFields(json) : json).toString());
}

/** Reads a body to its end. @returns its last `maxBytes` bytes */
export async function readLast(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<{ text: string; isCut: boolean }> {
  let chunks: Buffer[] = [];
  let bytes = 0;
  let isCut = false;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes <= 2 * maxBytes) continue;
    // memory stays bounded, and each byte is copied once at most
    chunks = [Buffer.concat(chunks).subarray(-maxBytes)];
    bytes = maxBytes;
    isCut = true;
  }
  const text = Buffer.concat(chunks)
    .subarray(Math.max(0, bytes - maxBytes))
    .toString('utf8');
  return { text, isCut: isCut || bytes > maxBytes };
}

/** How an API server begins the field in each object. No text in JSON contains it, because quotes in texts are escaped. */
const BEGINNING = Buffer.from(',"managedFields":[');
const [QUOTE, BACKSLASH, OPEN, CLOSE] = [0x22, 0x5c, 0x5b, 0x5d];

/**
 * Removes the managedFields from JSON, whose bytes it overwrites. They are half of a real object, and of the time to parse it. A list of
 * this name elsewhere in an object is removed, too: no schema has one, and nobody reads one that a schema leaves open.
 */
export function withoutManagedFields(json: Buffer): Buffer {
  let [length, from] = [0, 0];
  const keepUntil = (end: number) => {
    json.copyWithin(length, from, end);
    length += end - from;
  };
  for (let at = json.indexOf(BEGINNING); at >= 0; at = json.indexOf(BEGINNING, from)) {
    keepUntil(at);
    from = endOfList(json, at + BEGINNING.length);
  }
  keepUntil(json.length);
  return json.subarray(0, length);
}

/** @param at behind the bracket that opens the list */
function endOfList(json: Buffer, at: number): number {
  let depth = 1;
  while (depth > 0 && at < json.length) {
    const byte = json[at++];
    if (byte === QUOTE) at = endOfText(json, at);
    else if (byte === OPEN) depth++;
    else if (byte === CLOSE) depth--;
  }
  return at;
}

/** @param at behind the first quote */
function endOfText(json: Buffer, at: number): number {
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}
