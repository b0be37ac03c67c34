import { mkdir, rename, rm } from 'node:fs/promises';
import { type Server, type Socket, createConnection, createServer } from 'node:net';
import { dirname } from 'node:path';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { Connection, type ConnectionOptions } from './connection.js';

/** What still runs then is given up: the process has 25 s to stop. */
const STOP_MS = 10_000;
/** Linux cuts it down to what the host allows (net.core.somaxconn). */
const BACKLOG = 4096;

export interface SocketServerOptions {
  /** Of the unix socket. */
  readonly path: string;
  /** Never rejects. The signal aborts where nobody waits for the answer any more, and where the server stops. */
  readonly answer: ConnectionOptions['answer'];
  readonly clock: Clock;
  readonly log: Logger;
}

/** Answers requests on a unix socket, to which only root may connect. */
export class SocketServer {
  readonly #options: SocketServerOptions;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();

  constructor(options: SocketServerOptions) {
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#serve(socket));
  }

  get isListening(): boolean {
    return this.#server.listening;
  }

  /**
   * Takes the place of an agent that is dead, never of one that lives.
   * @throws {Error} which says what is in the way
   */
  async listen(): Promise<void> {
    const { path } = this.#options;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    try {
      await this.#bind();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') {
        throw new Error(`cannot listen on ${path}: ${messageOf(error)}`, { cause: error });
      }
      await this.#clearAway();
      await this.#bind();
    }
    this.#server.on('error', (error) => this.#options.log.error({ err: error }, `socket: ${error.message}`));
  }

  /** Takes nothing new, finishes what runs, and removes the socket. */
  async stop(): Promise<void> {
    const { clock } = this.#options;
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const cancel = clock.setTimer(STOP_MS, () => {
      for (const connection of this.#connections) connection.abort('the agent stops');
    });
    await closed;
    cancel();
  }

  #bind(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      // the file is made within this call, and is nobody else's from its first moment on
      const before = process.umask(0o177);
      try {
        this.#server.listen({ path: this.#options.path, backlog: BACKLOG }, () => {
          this.#server.off('error', reject);
          resolve();
        });
      } finally {
        process.umask(before);
      }
    });
  }

  async #clearAway(): Promise<void> {
    const { path, log } = this.#options;
    if (await hasListener(path)) throw otherAgentError(path);
    // another agent may be doing the same: what is moved away is looked at again before it is removed
    const aside = `${path}.${process.pid}.old`;
    await rename(path, aside);
    if (await hasListener(aside)) {
      await rename(aside, path);
      throw otherAgentError(path);
    }
    await rm(aside);
    log.info({ path }, 'removed the socket of an agent that is gone');
  }

  #serve(socket: Socket): void {
    const { answer, clock } = this.#options;
    const connection = new Connection(socket, { answer, clock, onClosed: () => this.#connections.delete(connection) });
    this.#connections.add(connection);
  }
}

function hasListener(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // whatever else it is: only a refusal proves that nobody is there
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

function otherAgentError(path: string): Error {
  return new Error(
    `another agent answers on ${path}: a node has one. Stop the other one, or give this one a --run-dir of its own`,
  );
}
