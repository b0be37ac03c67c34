import { type AddressInfo, type Socket, createConnection, createServer } from 'node:net';

/** Connects clients with a port of this machine. */
export class TcpRelay {
  readonly #server = createServer((client) => this.#connect(client));
  readonly #sockets = new Set<Socket>();
  readonly #target: () => number;

  private constructor(target: () => number) {
    this.#target = target;
  }

  /** @param target the port for the next connection */
  static async open(target: () => number): Promise<TcpRelay> {
    const relay = new TcpRelay(target);
    await new Promise<void>((resolve) => relay.#server.listen(0, '127.0.0.1', resolve));
    return relay;
  }

  get url(): string {
    return `https://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /** From now on, open connections get no answers, as behind a load balancer whose backend hangs. */
  pause(): void {
    for (const socket of this.#sockets) socket.unpipe().pause();
  }

  /** Ends all open connections. */
  disconnect(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    this.disconnect();
  }

  #connect(client: Socket): void {
    const backend = createConnection(this.#target(), '127.0.0.1');
    for (const [socket, other] of [
      [client, backend],
      [backend, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }
}
