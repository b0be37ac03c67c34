import { setTimeout as pause } from 'node:timers/promises';
import type { ApiServer } from '../../bed/control-plane/api-server.js';
import { httpsGet } from '../../bed/control-plane/ready.js';
import { TcpRelay } from '../../bed/faults/tcp-relay.js';

/** As HAProxy's defaults: a check every 2 s, and two in a row decide. */
const CHECK_EVERY_MS = 2_000;
const CHECKS = 2;

interface Backend {
  readonly server: ApiServer;
  readonly port: number;
  /** Successful checks in a row; failed ones are negative. */
  streak: number;
  isHealthy: boolean;
}

/**
 * A TCP load balancer in front of API servers. New connections go to the first healthy server. Open connections to a server that hangs are
 * left open, as most load balancers do.
 */
export class LoadBalancer {
  readonly #backends: readonly Backend[];
  #relay!: TcpRelay;
  readonly #stopping = new AbortController();
  readonly #ca: string;

  private constructor(servers: readonly ApiServer[], ca: string) {
    this.#ca = ca;
    this.#backends = servers.map((server) => ({
      server,
      port: Number(new URL(server.url).port),
      streak: CHECKS,
      isHealthy: true,
    }));
  }

  /** @param servers the preferred one first */
  static async open(servers: readonly ApiServer[], ca: string): Promise<LoadBalancer> {
    const balancer = new LoadBalancer(servers, ca);
    balancer.#relay = await TcpRelay.open(() => balancer.#target());
    for (const backend of balancer.#backends) void balancer.#check(backend);
    return balancer;
  }

  get url(): string {
    return this.#relay.url;
  }

  isHealthy(server: ApiServer): boolean {
    return this.#backends.some((backend) => backend.server === server && backend.isHealthy);
  }

  /** Ends all open connections. */
  disconnect(): void {
    this.#relay.disconnect();
  }

  close(): void {
    this.#stopping.abort();
    this.#relay.close();
  }

  #target(): number {
    return (this.#backends.find(({ isHealthy }) => isHealthy) ?? this.#backends[0]!).port;
  }

  async #check(backend: Backend): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const passed = await httpsGet(`${backend.server.url}/readyz`, this.#ca).then(
        () => true,
        () => false,
      );
      backend.streak = passed ? Math.max(backend.streak, 0) + 1 : Math.min(backend.streak, 0) - 1;
      if (Math.abs(backend.streak) >= CHECKS) backend.isHealthy = passed;
      await pause(CHECK_EVERY_MS);
    }
  }
}
