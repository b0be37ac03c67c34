import type { IncomingMessage } from 'node:http';
import type { BodyBudget } from './body-budget.js';

/** A request that is refused before anybody understands it. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** A caller that sends more than this many times what is allowed is not listened to until its end. */
const READ_LIMIT_FACTOR = 16;
/** Kinds, names and the namespace of a review come first. */
const HEAD_BYTES = 4 * 1024;

/** A whole body. It counts in the budget until it is released. */
export interface Body {
  readonly bytes: Buffer;
  /** What it counts in the budget. */
  readonly weight: number;
  release(): void;
}

/**
 * Reads a whole JSON body. One that is refused for its type or size is read to its end all the same: a caller that still sends would not hear
 * the answer.
 * @throws {HttpError} 415, 413; 408 if others needed its room before it was complete, 503 if there was no room
 */
export function readBody(request: IncomingMessage, limitBytes: number, budget: BodyBudget): Promise<Body> {
  return new Promise((resolve, reject) => {
    let refusal = checkContentType(request);
    let chunks: Buffer[] = [];
    let size = 0;
    const refuse = (error: HttpError) => {
      refusal = error;
      chunks = [];
      share.release();
    };
    const share = budget.open(() => {
      const error = new HttpError(408, 'the body is incomplete, and younger requests need its memory');
      refuse(error);
      reject(error);
    });
    if (refusal !== undefined) share.release();
    // one without a body counts, too
    else if (!share.add(0)) refuse(tooManyReviews());
    // by events: an async iterator costs a tenth of a whole review
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limitBytes * READ_LIMIT_FACTOR) request.destroy();
      if (refusal !== undefined) return;
      if (size > limitBytes) refuse(new HttpError(413, `the body is larger than ${limitBytes} bytes`));
      else if (share.add(chunk.length)) chunks.push(chunk);
      else refuse(tooManyReviews());
    });
    request.once('end', () => {
      share.complete();
      const [first] = chunks;
      const bytes = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
      if (refusal === undefined) resolve({ bytes, weight: share.bytes, release: () => share.release() });
      else reject(refusal);
    });
    const fail = (error: Error) => {
      share.release();
      reject(error);
    };
    request.once('error', fail);
    request.once('close', () => {
      if (!request.complete) fail(new Error('the caller hung up'));
    });
  });
}

/** API servers try again after a 503 that says when. */
export function tooManyReviews(): HttpError {
  return new HttpError(503, 'too many reviews at once: try again');
}

/**
 * The namespace of a review as an API server writes it, or ''. It decides whose turn it is, before the body is parsed, and nothing else: quotes in the
 * strings before it are escaped.
 */
export function peekNamespace(body: Buffer): string {
  return /"namespace":"([a-z0-9-]{1,63})"/.exec(body.toString('latin1', 0, HEAD_BYTES))?.[1] ?? '';
}

function checkContentType({ headers }: IncomingMessage): HttpError | undefined {
  const type = headers['content-type'] ?? '';
  if (type.split(';', 1)[0]?.trim().toLowerCase() !== 'application/json') {
    return new HttpError(415, `the content type is ${JSON.stringify(type)}, not application/json`);
  }
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity')
    return new HttpError(415, `the content encoding ${JSON.stringify(encoding)} is not understood`);
  return undefined;
}

/** @throws {HttpError} 400 */
export function parseBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (error) {
    throw new HttpError(400, `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
