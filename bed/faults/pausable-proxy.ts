import { type AddressInfo, type Server, type Socket, createConnection, createServer } from 'node:net';

/** Forwards connections. While it is paused, open connections get no answers, as behind a load balancer whose backend hangs. */
export class PausableProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(port: number): Promise<PausableProxy> {
    const server = createServer();
    const proxy = new PausableProxy(server);
    server.on('connection', (client: Socket) => {
      const backend = createConnection(port, '127.0.0.1');
      for (const [socket, other] of [
        [client, backend],
        [backend, client],
      ] as const) {
        proxy.#sockets.add(socket);
        socket.on('error', () => undefined).on('close', () => other.destroy());
        socket.pipe(other);
      }
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  pause(): void {
    for (const socket of this.#sockets) socket.unpipe().pause();
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
