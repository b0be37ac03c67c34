import { FaultServer, type Handler, type Reply, inTurn } from './fault-server.js';
import type { Credentials } from '../../kube/transport/credentials.js';
import { Transport, type TransportOptions } from '../../kube/transport/transport.js';

export const OK: Reply = { body: { ok: true } };

/** A server that fails on command, and a transport that is connected to it. Registers the hooks of the surrounding suite. */
export class TransportHarness {
  #server: FaultServer | undefined;
  #transport: Transport | undefined;

  constructor() {
    before(async () => (this.#server = await FaultServer.start(inTurn(OK))));
    after(() => this.server.stop());
    beforeEach(() => this.server.reset());
    afterEach(() => this.transport.close());
  }

  get server(): FaultServer {
    if (this.#server === undefined) throw new Error('the server is not started');
    return this.#server;
  }

  get transport(): Transport {
    if (this.#transport === undefined) throw new Error('the transport is not connected');
    return this.#transport;
  }

  /** Connects without jitter. */
  connect(handler: Handler, options: TransportOptions = {}, credentials?: Credentials): void {
    this.server.handle(handler);
    this.#transport = new Transport(credentials ?? this.server.credentials(), { random: () => 0, ...options });
  }

  get(deadlineMs?: number): Promise<unknown> {
    return this.transport.request({ method: 'GET', path: '/x', deadlineMs });
  }

  post(): Promise<unknown> {
    return this.transport.request({ method: 'POST', path: '/x', body: { a: 1 } });
  }
}
