import type { Server, Socket } from 'node:net';

interface Connection {
  readonly socket: Socket;
  /** Requests that are being answered. */
  holds: number;
}

/**
 * Bounds the open connections of a server. At the limit, a new connection closes the one that has been unused for longest. So a client that
 * opens many connections, or leaves requests half sent, does not keep others out.
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
  hold(socket: Socket): () => void {
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
    if (this.#open.size >= this.#max && !this.#closeOldest()) {
      socket.destroy();
      return;
    }
    const peer = peerOf(socket);
    const connection = { socket, holds: 0 };
    this.#open.set(peer, connection);
    socket.once('close', () => {
      if (this.#open.get(peer) === connection) this.#open.delete(peer);
    });
  }

  /** @returns false if a request is being answered on every connection */
  #closeOldest(): boolean {
    for (const [peer, { socket, holds }] of this.#open) {
      if (holds > 0) continue;
      this.#open.delete(peer);
      socket.destroy();
      return true;
    }
    return false;
  }
}

function peerOf({ remoteAddress = '', remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
