import type { Socket } from 'node:net';
import type { Clock } from '../../kube/clock.js';
import { CniCode, CniError } from './cni-error.js';
import { type PluginResponse, failure } from './result.js';

/** A network config and the result of an earlier plugin have a few KiB each. */
const MAX_REQUEST_BYTES = 1024 * 1024;
/** The plugin sends the request as soon as it has read stdin. */
const READ_MS = 10_000;
/** For callers that have their answer and do not close the connection. */
const LINGER_MS = 1_000;
const NEWLINE = 0x0a;

export interface ConnectionOptions {
  /** Never rejects. The signal aborts when the caller no longer waits for the answer. */
  readonly answer: (text: string, signal: AbortSignal) => Promise<PluginResponse>;
  readonly clock: Clock;
  readonly onClosed: () => void;
}

/**
 * The connection of one caller. The request is one line of JSON, or everything until the caller half-closes the connection.
 * The answer is one JSON object, which may have leading spaces.
 */
export class PluginConnection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #controller = new AbortController();
  #cancelTimer: () => void;
  #chunks: Buffer[] = [];
  #size = 0;
  #state: 'reading' | 'working' | 'done' = 'reading';

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#cancelTimer = options.clock.setTimer(READ_MS, () => {
      this.#refuse(CniCode.Io, `the request was not complete within ${READ_MS / 1000} s: send it as one line of JSON`);
    });
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('end', () => this.#ended());
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => this.#closed());
  }

  /** Cancels the work on the answer. */
  abort(reason: string): void {
    this.#controller.abort(new Error(reason));
  }

  #read(chunk: Buffer): void {
    if (this.#state !== 'reading') return; // discarded, so that the writer finishes and reads the answer
    const end = chunk.indexOf(NEWLINE);
    this.#chunks.push(end === -1 ? chunk : chunk.subarray(0, end));
    this.#size += chunk.length;
    if (this.#size > MAX_REQUEST_BYTES) {
      const problem = `the request has more than ${MAX_REQUEST_BYTES} bytes: shorten the network's config`;
      this.#refuse(CniCode.Decode, problem);
    } else if (end !== -1) {
      this.#work();
    }
  }

  #ended(): void {
    if (this.#state === 'reading') this.#work();
    // a half-closed caller ignores the space; if the caller has exited, the write reveals it
    else if (this.#state === 'working') this.#socket.write(' ');
  }

  #work(): void {
    this.#state = 'working';
    this.#cancelTimer();
    const text = Buffer.concat(this.#chunks).toString('utf8');
    this.#chunks = [];
    void this.#options.answer(text, this.#controller.signal).then((answer) => this.#reply(answer));
  }

  #refuse(code: CniCode, message: string): void {
    this.#cancelTimer();
    this.#chunks = [];
    this.#reply(failure(new CniError(code, message)));
  }

  #reply(answer: PluginResponse): void {
    this.#state = 'done';
    if (this.#socket.destroyed) return;
    this.#socket.end(JSON.stringify(answer));
    // an immediate close would discard the answer if the caller is still writing
    this.#cancelTimer = this.#options.clock.setTimer(LINGER_MS, () => this.#socket.destroy());
  }

  #closed(): void {
    this.#cancelTimer();
    if (this.#state === 'working') this.abort('the caller closed the connection');
    this.#state = 'done';
    this.#options.onClosed();
  }
}
