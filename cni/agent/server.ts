import { mkdir, rename, rm } from 'node:fs/promises';
import { type Server, type Socket, createConnection, createServer } from 'node:net';
import { dirname } from 'node:path';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { PluginConnection, type ConnectionOptions } from './connection.js';

/** Requests that still run after this are cancelled: the process has 25 s to stop. */
const STOP_MS = 10_000;
/** Linux limits it to net.core.somaxconn. */
const BACKLOG = 4096;

export interface SocketServerOptions {
  /** Path of the unix socket. */
  readonly path: string;
  /** Never rejects. The signal aborts when the caller no longer waits for the answer, and when the server stops. */
  readonly answer: ConnectionOptions['answer'];
  readonly clock: Clock;
  readonly log: Logger;
}

/** Answers requests on a unix socket to which only root can connect. */
export class SocketServer {
  readonly #options: SocketServerOptions;
  readonly #server: Server;
  readonly #connections = new Set<PluginConnection>();

  constructor(options: SocketServerOptions) {
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#serve(socket));
  }

  get isListening(): boolean {
    return this.#server.listening;
  }

  /**
   * Starts to listen. Replaces the socket of an agent that has exited, never that of one that runs.
   * @throws {Error} if it cannot listen; the message says why
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
      await this.#removeStaleSocket();
      await this.#bind();
    }
    this.#server.on('error', (error) => this.#options.log.error({ err: error }, `socket: ${error.message}`));
  }

  /** Stops accepting requests, finishes the running ones, and removes the socket. */
  async stop(): Promise<void> {
    const { clock } = this.#options;
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const cancel = clock.setTimer(STOP_MS, () => {
      for (const connection of this.#connections) connection.abort('the agent is stopping');
    });
    await closed;
    cancel();
  }

  #bind(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      // the file is created within this call, so it never has wider permissions
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

  async #removeStaleSocket(): Promise<void> {
    const { path, log } = this.#options;
    if (await hasListener(path)) throw otherAgentError(path);
    // another agent may do the same now: check the renamed socket again before removing it
    const aside = `${path}.${process.pid}.old`;
    await rename(path, aside);
    if (await hasListener(aside)) {
      await rename(aside, path);
      throw otherAgentError(path);
    }
    await rm(aside);
    log.info({ path }, 'removed the socket of an agent that has exited');
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

function hasListener(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // only a refused connection proves that no process listens
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

function otherAgentError(path: string): Error {
  return new Error(
    `another agent listens on ${path}, and a node can have only one: stop the other agent, or set a different --run-dir`,
  );
}
