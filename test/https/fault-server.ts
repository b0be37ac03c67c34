import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Credentials } from '../../kube/transport/credentials.js';
import { makeServingCertificate, type ServingCertificate } from './certificate.js';

/** A received request. */
export interface SeenRequest {
  method: string;
  /** Without the query. */
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  body: string;
}

/** How to answer one request. All fields can be combined with `delayMs`. */
export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  /** A string is sent unchanged, other values as JSON. */
  body?: unknown;
  /** Lines of a watch: a string is sent unchanged, other values as a line of JSON. */
  lines?: unknown[];
  /** What follows: `end` (default), `open` (default after lines) or `reset`. */
  then?: 'end' | 'open' | 'reset';
  delayMs?: number;
  /** No answer at all, the connection stays open. */
  silent?: boolean;
  /** The connection is reset before any byte of an answer. */
  reset?: boolean;
}

export type Handler = (request: SeenRequest, index: number) => Reply | Promise<Reply>;

/** Sends the replies in order, then the last one forever. */
export function inTurn(...replies: Reply[]): Handler {
  return (_request, index) => replies[Math.min(index, replies.length - 1)] ?? {};
}

/** Made while modules load: an RSA key takes seconds on a busy machine. */
const CERTIFICATE = makeServingCertificate();

/** A real HTTPS server on loopback with programmable answers and faults. */
export class FaultServer {
  readonly certificate: ServingCertificate = CERTIFICATE;
  readonly seen: SeenRequest[] = [];
  /** TLS connections made since the start. */
  connections = 0;
  /** Those of them that resumed a TLS session. */
  resumed = 0;
  #server: Server;
  /** By the client's port: a TLS socket cannot be reset, the one below it can. */
  #sockets = new Map<number, Socket>();
  #open = new Set<ServerResponse>();
  #handler: Handler;
  #port = 0;
  #waiters: (() => void)[] = [];

  private constructor(handler: Handler) {
    this.#handler = handler;
    this.#server = this.#makeServer();
  }

  static async start(handler: Handler): Promise<FaultServer> {
    const server = new FaultServer(handler);
    await server.#listen();
    return server;
  }

  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  /** Watches and other answers that are still open. */
  get openAnswers(): number {
    return this.#open.size;
  }

  get liveConnections(): number {
    return this.#sockets.size;
  }

  /** Clears the recorded requests and counts, and closes all connections. */
  reset(): void {
    this.resetConnections();
    this.seen.length = 0;
    this.connections = 0;
    this.resumed = 0;
  }

  handle(handler: Handler): void {
    this.#handler = handler;
  }

  /** Credentials for this server. Each `refresh` moves to the next token. */
  credentials(tokens: string[] = ['token']): Credentials & { refreshed: number } {
    const ca = this.certificate.ca;
    return {
      server: this.url,
      refreshed: 0,
      tls: () => Promise.resolve({ ca, rejectUnauthorized: true }),
      headers() {
        return Promise.resolve({
          authorization: `Bearer ${tokens[Math.min(this.refreshed, tokens.length - 1)] ?? ''}`,
        });
      },
      refresh() {
        this.refreshed++;
        return Promise.resolve();
      },
    };
  }

  /** Writes more lines into every open answer. */
  push(...lines: unknown[]): void {
    for (const answer of this.#open) for (const line of lines) answer.write(lineOf(line));
  }

  /** Ends every open answer cleanly. */
  endAnswers(): void {
    for (const answer of this.#open) answer.end();
  }

  /** Resets every connection. */
  resetConnections(): void {
    for (const socket of this.#sockets.values()) socket.resetAndDestroy();
  }

  /** Resolves when `condition` is true. It is checked after every request, and at the end of every answer and connection. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  /** Simulates a crash: closes all connections, and the port refuses new ones. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.resetConnections();
    await closed;
  }

  /** Starts again on the same port. */
  async restart(): Promise<void> {
    if (this.#server.listening) return;
    this.#server = this.#makeServer();
    await this.#listen();
  }

  async #listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  #makeServer(): Server {
    const { key, cert } = this.certificate;
    const server = createServer({ key, cert, keepAlive: true }, (request, response) => {
      void this.#answer(request, response);
    });
    server.keepAliveTimeout = 0;
    server.on('secureConnection', (socket) => {
      this.connections++;
      if (socket.isSessionReused()) this.resumed++;
    });
    server.on('connection', (socket: Socket) => {
      const port = socket.remotePort ?? 0;
      this.#sockets.set(port, socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(port);
        this.#wake();
      });
    });
    server.on('tlsClientError', () => undefined);
    return server;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined);
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const url = new URL(request.url ?? '/', this.url);
    const { method = '', headers } = request;
    const seen = { method, path: url.pathname, query: url.searchParams, headers, body };
    this.seen.push(seen);
    const reply = await this.#handler(seen, this.seen.length - 1);
    this.#wake();
    if (reply.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, reply.delayMs));
    this.#send(reply, request, response);
  }

  #send(reply: Reply, request: IncomingMessage, response: ServerResponse): void {
    if (reply.reset) this.#reset(request);
    if (reply.reset || reply.silent) return;
    this.#open.add(response);
    response.on('close', () => {
      this.#open.delete(response);
      this.#wake();
    });
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json', ...reply.headers });
    response.flushHeaders();
    if (reply.body !== undefined)
      response.write(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body));
    for (const line of reply.lines ?? []) response.write(lineOf(line));
    this.#finish(reply.then ?? (reply.lines ? 'open' : 'end'), request, response);
  }

  #finish(then: 'end' | 'open' | 'reset', request: IncomingMessage, response: ServerResponse): void {
    if (then === 'end') response.end();
    // What was written must be on its way before the reset discards it.
    if (then === 'reset') setTimeout(() => this.#reset(request), 20);
  }

  #reset(request: IncomingMessage): void {
    this.#sockets.get(request.socket.remotePort ?? 0)?.resetAndDestroy();
  }

  #wake(): void {
    for (const wake of this.#waiters.splice(0)) wake();
  }
}

function lineOf(line: unknown): string {
  return typeof line === 'string' ? line : `${JSON.stringify(line)}\n`;
}

/** A metav1.Status body. */
export function status(code: number, reason: string, message = reason): object {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
}
