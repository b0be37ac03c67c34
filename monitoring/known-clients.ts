import type { Clock } from '../kube/clock.js';
import { setMostRecent } from '../kube/lru.js';

/** Ten intervals of a slow scraper. */
const KNOWN_MS = 10 * 60_000;
/** Beyond this number, the least recent one is forgotten. Only users with the right to read metrics can add any. */
const MAX_KNOWN = 256;

/** Clients that read metrics a short time ago: addresses, and hashes of tokens. */
export class KnownClients {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #until = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  add(client: string): void {
    setMostRecent(this.#until, client, this.#clock.now() + KNOWN_MS, MAX_KNOWN);
  }

  has(client: string): boolean {
    return this.#clock.now() < (this.#until.get(client) ?? 0);
  }
}
