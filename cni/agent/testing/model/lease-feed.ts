import type { AddressLease } from '../../../../api/address-lease.js';
import type { KubeObject } from '../../../../api/meta.js';
import type { WatchSpec } from '../../../../kube/informers.js';
import { ADDRESS_LEASES } from '../../../../kube/resources.js';
import { selectorOf } from '../../../../kube/testing/selectors.js';
import type { LeaseServer } from '../../../../test/lease-server.js';
import { TestFeed } from './test-feed.js';

export class LeaseFeed<S extends KubeObject> extends TestFeed<S> {
  readonly #server: LeaseServer;
  readonly #watched: WatchSpec<AddressLease, S>;
  #position = 0;

  constructor(server: LeaseServer, watched: WatchSpec<AddressLease, S>) {
    super();
    this.#server = server;
    this.#watched = watched;
  }

  deliver(count = Number.POSITIVE_INFINITY): void {
    if (!this.isRunning || !this.hasSynced || this.#watched.relistMs !== undefined) return;
    const events = this.#server.log.slice(this.#position, this.#position + count);
    this.#position += events.length;
    for (const event of events) {
      if (event.type === 'DELETED') this.remove(event.object.metadata.name);
      else this.#see(event.object);
    }
  }

  protected read(): void {
    for (const name of [...this.cache.keys()]) if (!this.#server.leases.has(name)) this.remove(name);
    for (const lease of this.#server.leases.values()) this.#see(lease);
    this.#position = this.#server.log.length;
  }

  protected override version(): string {
    return String(this.#server.tracker.version);
  }

  #see(lease: AddressLease): void {
    const { fieldSelector, transform } = this.#watched;
    if (selectorOf(ADDRESS_LEASES, { fieldSelector })(lease)) this.put(transform!(structuredClone(lease)));
    else this.remove(lease.metadata.name);
  }
}
