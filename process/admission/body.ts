import type { IncomingMessage } from 'node:http';

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
const PATIENCE = 16;

/**
 * Reads a whole JSON body. One that is refused is read to its end all the same: a caller that still sends would not hear the answer.
 * @throws {HttpError} 415, 413 or 400
 */
export async function readJsonBody(request: IncomingMessage, limitBytes: number): Promise<unknown> {
  const refusal = refuseType(request);
  const chunks: Buffer[] = [];
  let size = 0;
  await eachChunk(request, (chunk) => {
    size += chunk.length;
    if (refusal === undefined && size <= limitBytes) chunks.push(chunk);
    else if (size > limitBytes * PATIENCE) request.destroy();
  });
  if (refusal !== undefined) throw refusal;
  if (size > limitBytes) throw new HttpError(413, `the body is larger than ${limitBytes} bytes`);
  return parse(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
}

/** By events: an async iterator costs a tenth of a whole review. */
function eachChunk(request: IncomingMessage, take: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    request.on('data', take);
    request.once('end', resolve);
    request.once('error', reject);
    request.once('close', () => reject(new Error('the caller hung up')));
  });
}

function refuseType({ headers }: IncomingMessage): HttpError | undefined {
  const type = headers['content-type'] ?? '';
  if (type.split(';', 1)[0]?.trim().toLowerCase() !== 'application/json') {
    return new HttpError(415, `the content type is ${JSON.stringify(type)}, not application/json`);
  }
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity')
    return new HttpError(415, `the content encoding ${JSON.stringify(encoding)} is not understood`);
  return undefined;
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (error) {
    throw new HttpError(400, `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
