import type { Socket } from 'node:net';
import type { Clock } from '../../kube/clock.js';
import { CniCode, CniError } from './cni-error.js';
import { type PluginResponse, failure } from './plugin-protocol.js';

/** A network's config has some KiB, and a result of an earlier plugin hardly more. */
const MAX_REQUEST_BYTES = 1024 * 1024;
/** The plugin writes at once what it has read. */
const READ_MS = 10_000;
/** For whoever has his answer, and does not hang up. */
const LINGER_MS = 1_000;
const NEWLINE = 0x0a;

export interface ConnectionOptions {
  /** Never rejects. The signal aborts where nobody waits for the answer any more. */
  readonly answer: (text: string, signal: AbortSignal) => Promise<PluginResponse>;
  readonly clock: Clock;
  readonly onClosed: () => void;
}

/**
 * One caller: a request, which is one line of JSON, or all until the caller ends its side; then one object of JSON back, perhaps
 * with blanks before it.
 */
export class Connection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #gone = new AbortController();
  #cancelTimer: () => void;
  #chunks: Buffer[] = [];
  #size = 0;
  #state: 'reading' | 'working' | 'done' = 'reading';

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#cancelTimer = options.clock.setTimer(READ_MS, () => {
      this.#refuse(CniCode.Io, `no whole request within ${READ_MS / 1000} s: it is one line of JSON`);
    });
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('end', () => this.#ended());
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => this.#closed());
  }

  /** Gives up the work on the answer. */
  abort(reason: string): void {
    this.#gone.abort(new Error(reason));
  }

  #read(chunk: Buffer): void {
    if (this.#state !== 'reading') return; // forgotten, so that the writer comes to its end and reads the answer
    const end = chunk.indexOf(NEWLINE);
    this.#chunks.push(end === -1 ? chunk : chunk.subarray(0, end));
    this.#size += chunk.length;
    if (this.#size > MAX_REQUEST_BYTES) {
      this.#refuse(
        CniCode.Decode,
        `the request has more than ${MAX_REQUEST_BYTES} bytes: no network's config needs that`,
      );
    } else if (end !== -1) {
      this.#work();
    }
  }

  #ended(): void {
    if (this.#state === 'reading') this.#work();
    // either it only writes no more, and a blank does no harm; or it is gone, and the blank brings it to light
    else if (this.#state === 'working') this.#socket.write(' ');
  }

  #work(): void {
    this.#state = 'working';
    this.#cancelTimer();
    const text = Buffer.concat(this.#chunks).toString('utf8');
    this.#chunks = [];
    void this.#options.answer(text, this.#gone.signal).then((answer) => this.#reply(answer));
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
    // who still writes would lose the answer with the connection
    this.#cancelTimer = this.#options.clock.setTimer(LINGER_MS, () => this.#socket.destroy());
  }

  #closed(): void {
    this.#cancelTimer();
    if (this.#state === 'working') this.abort('the caller is gone');
    this.#state = 'done';
    this.#options.onClosed();
  }
}
