import type { Server, Socket } from 'node:net';

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** Requests that are being answered. */
  holds: number;
}

/**
 * Bounds the open connections of a server. At the limit, a new connection closes another one of the address with the most connections: the one that
 * has been unused for longest. So a client that opens many connections, or leaves requests half sent, closes its own and keeps no other client out.
 */
export class ConnectionLimit {
  readonly #max: number;
  /** Least recently used first. By peer, because a TLS socket and the TCP socket below it are two objects. */
  readonly #open = new Map<string, Connection>();

  constructor(server: Server, max: number) {
    this.#max = max;
    server.on('connection', (socket: Socket) => this.#add(socket));
  }

  /** Keeps a connection open while a request of it is answered. @returns what ends that */
  keepOpen(socket: Socket): () => void {
    const peer = peerOf(socket);
    const connection = this.#open.get(peer);
    if (connection === undefined) return () => undefined;
    connection.holds += 1;
    this.#open.delete(peer);
    this.#open.set(peer, connection);
    return () => (connection.holds -= 1);
  }

  /** Closes all connections on which no request is being answered. */
  closeUnused(): void {
    for (const { socket, holds } of this.#open.values()) if (holds === 0) socket.destroy();
  }

  #add(socket: Socket): void {
    const { remoteAddress: address = '' } = socket;
    if (this.#open.size >= this.#max && !this.#makeRoom(address)) {
      socket.destroy();
      return;
    }
    const peer = peerOf(socket);
    const connection = { socket, address, holds: 0 };
    this.#open.set(peer, connection);
    socket.once('close', () => {
      if (this.#open.get(peer) === connection) this.#open.delete(peer);
    });
  }

  /** @returns false if a request is being answered on every connection that could be closed for one of this address */
  #makeRoom(address: string): boolean {
    const counts = new Map([[address, 1]]);
    for (const { address: each } of this.#open.values()) counts.set(each, (counts.get(each) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const crowded = [...this.#open].filter(([, connection]) => counts.get(connection.address) === most);
    const [oldest] = crowded;
    const isOneOfMany = counts.get(address) === most;
    const closed = crowded.find(([, { holds }]) => holds === 0) ?? (isOneOfMany ? undefined : oldest);
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
