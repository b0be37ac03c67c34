import type { Server as HttpServer } from 'node:http';
import { type Server, type Socket, isIPv6 } from 'node:net';
import { messageOf } from '../kube/errors.js';

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** The number of requests that are being answered. */
  activeRequests: number;
}

/**
 * Limits the open connections of a server. At the limit, a new connection closes the least recently used connection of the address that has the
 * most. So a client that opens many connections, or sends requests only in part, closes its own connections and does not block other clients.
 */
export class ConnectionLimit {
  readonly #max: number;
  /** Least recently used first. By peer, because a TLS socket and its TCP socket are two objects. */
  readonly #open = new Map<string, Connection>();

  constructor(server: Server, max: number) {
    this.#max = max;
    server.on('connection', (socket: Socket) => this.#add(socket));
  }

  /** Keeps a connection open while one of its requests is answered. @returns a function that ends that */
  keepOpen(socket: Socket): () => void {
    const peer = peerOf(socket);
    const connection = this.#open.get(peer);
    if (connection === undefined) return () => undefined;
    connection.activeRequests += 1;
    this.#open.delete(peer);
    this.#open.set(peer, connection);
    return () => (connection.activeRequests -= 1);
  }

  /** Closes all connections without a request that is being answered. */
  closeUnused(): void {
    for (const { socket, activeRequests } of this.#open.values()) if (activeRequests === 0) socket.destroy();
  }

  #add(socket: Socket): void {
    const { remoteAddress: address = '' } = socket;
    if (this.#open.size >= this.#max && !this.#makeRoom(address)) {
      socket.destroy();
      return;
    }
    const peer = peerOf(socket);
    const connection = { socket, address, activeRequests: 0 };
    this.#open.set(peer, connection);
    socket.once('close', () => {
      if (this.#open.get(peer) === connection) this.#open.delete(peer);
    });
  }

  /** @returns false if every connection that may be closed for this address is answering a request */
  #makeRoom(address: string): boolean {
    const counts = new Map([[address, 1]]);
    for (const { address: each } of this.#open.values()) counts.set(each, (counts.get(each) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const crowded = [...this.#open].filter(([, connection]) => counts.get(connection.address) === most);
    const [oldest] = crowded;
    const isOneOfMany = counts.get(address) === most;
    const closed = crowded.find(([, { activeRequests }]) => activeRequests === 0) ?? (isOneOfMany ? undefined : oldest);
    if (closed === undefined) return false;
    const [peer, { socket }] = closed;
    this.#open.delete(peer);
    socket.destroy();
    return true;
  }
}

function peerOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** An address to listen on. No host: all addresses. Port 0: any free port. */
export interface BindAddress {
  readonly host: string | undefined;
  readonly port: number;
}

const FORM = /^(?:\[(?<ipv6>[^\]]+)\]|(?<host>[^:[\]]*)):(?<port>\d{1,5})$/;
const HINT = 'must be host:port, :port, [IPv6]:port, or 0 to disable';

/**
 * Reads `127.0.0.1:8081`, `:8081` or `[::1]:8081`.
 * @returns undefined for `0`: do not listen
 * @throws {TypeError} with the allowed forms
 */
export function parseBindAddress(text: string): BindAddress | undefined {
  if (text === '0') return undefined;
  const groups = FORM.exec(text)?.groups;
  if (groups === undefined) throw new TypeError(HINT);
  const port = Number(groups.port);
  if (port > 65_535) throw new TypeError(`${HINT}; a port is at most 65535`);
  if (groups.ipv6 !== undefined && !isIPv6(groups.ipv6)) throw new TypeError(HINT);
  return { host: groups.ipv6 ?? (groups.host === '' ? undefined : groups.host), port };
}

/** True if two addresses are one port. */
export function isOnePort(one: string, other: string): boolean {
  return one === other && (parseBindAddress(one)?.port ?? 0) !== 0;
}

/** @throws {Error} if the server cannot listen on the address; names it */
export function listenOn(server: Server, { host, port }: BindAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const place = host !== undefined && isIPv6(host) ? `[${host}]` : (host ?? '');
      reject(new Error(`cannot listen on ${place}:${port}: ${messageOf(error)}`, { cause: error }));
    });
    server.listen({ port, ...(host !== undefined && { host }) }, resolve);
  });
}

/** Accepts no more connections, and closes those that are open. */
export function closeServer(server: Pick<HttpServer, 'close' | 'closeAllConnections'>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
