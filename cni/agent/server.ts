import { randomBytes } from 'node:crypto';
import { linkSync, rmSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { type Server, type Socket, createConnection, createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { CniCode, CniError } from './cni-error.js';
import { codeOf, ifAbsent } from './file-errors.js';
import { type PluginResponse, failure } from './result.js';

/** Requests that still run after this are cancelled: the process has 25 s to stop. */
const STOP_MS = 10_000;
/** Linux limits it to net.core.somaxconn. */
const BACKLOG = 4096;
/** A NAD's config has at most 64 KiB, which may be twice as long in JSON. The result of an earlier plugin has a few KiB. */
const MAX_REQUEST_BYTES = 256 * 1024;
/** The plugin sends the request as soon as it has read stdin. */
const READ_MS = 10_000;
/** For callers that have their answer and do not close the connection. */
const LINGER_MS = 1_000;
const NEWLINE = 0x0a;
const OTHER_AGENT =
  'another agent listens there, and a node can have only one: stop the other agent, or set a different --run-dir';

interface SocketServerOptions {
  /** Path of the unix socket. */
  readonly path: string;
  /** Never rejects. The signal aborts when the caller no longer waits for the answer, and when the server stops. */
  readonly answer: (text: string, signal: AbortSignal) => Promise<PluginResponse>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Answers requests on a unix socket to which only root can connect. */
export class SocketServer {
  readonly #options: SocketServerOptions;
  readonly #server: Server;
  readonly #connections = new Set<PluginConnection>();
  /** Of the socket. */
  #inode: bigint | undefined;

  constructor(options: SocketServerOptions) {
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#serve(socket));
  }

  /** @returns why no plugin reaches this agent; undefined if it can */
  problem(): string | undefined {
    const { path } = this.#options;
    if (!this.#server.listening) return 'not listening for the CNI plugin';
    if (inodeOf(path) === this.#inode) return undefined;
    return `${path} was removed or replaced, so the CNI plugin cannot reach this agent, which restarts`;
  }

  /**
   * Starts to listen. Replaces the socket of an agent that has exited, never that of one that runs.
   * @throws {Error} if it cannot listen; the message says why
   */
  async listen(): Promise<void> {
    const { path } = this.#options;
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      // Node removes the file of this name when it closes the socket. By then, the path may be that of another agent.
      const ownName = `${path}.${randomBytes(4).toString('hex')}`;
      await this.#bind(ownName);
      if (!tryLink(ownName, path)) {
        await this.#removeStaleSocket();
        if (!tryLink(ownName, path)) throw new Error(OTHER_AGENT);
      }
      rmSync(ownName);
    } catch (error) {
      this.#server.close();
      throw new Error(`cannot listen on ${path}: ${messageOf(error)}`, { cause: error });
    }
    this.#inode = inodeOf(path);
    this.#server.on('error', (error) => this.#options.log.error({ err: error }, `socket: ${error.message}`));
    // they do no harm
    await this.#removeLeftovers().catch(() => undefined);
  }

  /** Stops accepting requests, finishes the running ones, and removes the socket. */
  async stop(): Promise<void> {
    const { clock, path } = this.#options;
    if (!this.#server.listening) return;
    if (inodeOf(path) === this.#inode) rmSync(path, { force: true });
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const cancel = clock.setTimer(STOP_MS, () => {
      for (const connection of this.#connections) connection.abort('the agent is stopping');
    });
    await closed;
    cancel();
  }

  #bind(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      // the file is created within this call, so it never has wider permissions
      const before = process.umask(0o177);
      try {
        this.#server.listen({ path, backlog: BACKLOG }, () => {
          this.#server.off('error', reject);
          resolve();
        });
      } finally {
        process.umask(before);
      }
    });
  }

  async #removeStaleSocket(): Promise<void> {
    const { path, log } = this.#options;
    if (await hasListener(path)) throw new Error(OTHER_AGENT);
    // another agent may do the same now: check the renamed socket again before removing it
    const aside = `${path}.${process.pid}.old`;
    await rename(path, aside).catch(ifAbsent(undefined));
    if (await hasListener(aside)) {
      await rename(aside, path);
      throw new Error(OTHER_AGENT);
    }
    await rm(aside, { force: true });
    log.info({ path }, 'removed the socket of an agent that has exited');
  }

  /** Removes the sockets of agents that were killed in {@link listen}. */
  async #removeLeftovers(): Promise<void> {
    const { path } = this.#options;
    const isLeftover = (name: string) =>
      name.startsWith(`${basename(path)}.`) && /\.([0-9a-f]{8}|\d+\.old)$/.test(name);
    for (const name of (await readdir(dirname(path))).filter(isLeftover)) {
      const left = join(dirname(path), name);
      // an agent that starts now may listen there
      if (!(await hasListener(left))) await rm(left, { force: true });
    }
  }

  #serve(socket: Socket): void {
    const { answer, clock } = this.#options;
    const connection = new PluginConnection(socket, {
      answer,
      clock,
      onClosed: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
  }
}

/** Gives a file another name, too. @returns false if that is in use */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}

function hasListener(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // only these prove that no process listens: an agent that stops removes its socket
    socket.once('error', (error) => resolve(!['ECONNREFUSED', 'ENOENT'].includes(codeOf(error) ?? '')));
  });
}

interface ConnectionOptions extends Pick<SocketServerOptions, 'answer' | 'clock'> {
  readonly onClosed: () => void;
}

/**
 * The connection of one caller. The request is one line of JSON, or everything until the caller half-closes the connection.
 * The answer is one JSON object, which may have leading spaces.
 */
class PluginConnection {
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
