import { isDeepStrictEqual } from 'node:util';
import type { AddressPool } from '../../api/address-pool.js';
import { SERVED_NETWORKS_CONFIG_MAP } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isConflict, messageOf } from '../../kube/errors.js';
import type { ObjectChange } from '../../kube/informer.js';
import type { Logger } from '../../kube/log.js';
import { CONFIG_MAPS } from '../../kube/resources.js';
import type { IpamConfig } from '../../process/config.js';
import { PeriodicTask } from '../../process/periodic-task.js';
import { listServedNetworks, servedNetworkOf } from './served-networks.js';

export interface ServedNetworksDeps {
  readonly client: Pick<Client, 'get' | 'patch'>;
  readonly config: Pick<IpamConfig, 'namespace'>;
  readonly pools: {
    readonly cache: { list(): readonly AddressPool[] };
    onChange(handler: (change: ObjectChange<AddressPool>) => void): void;
  };
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Logger;
}

/** Pools that come and go cost at most one write in this time. */
const PAUSE_MS = 1_000;
/** With the pause: a list that somebody else has changed is repaired within 30 s. */
const CHECK_MS = 29_000;

/** Keeps the ConfigMap up to date from which a policy knows the networks of pools. Works also while the feature gate is closed. */
export class ServedNetworksWriter {
  readonly #deps: ServedNetworksDeps;
  readonly #task: PeriodicTask;
  /** Aborted when a pool has changed since the last write. */
  #changed = new AbortController();

  constructor(deps: ServedNetworksDeps) {
    this.#deps = deps;
    this.#task = new PeriodicTask({ clock: deps.clock, pauseMs: PAUSE_MS, run: (signal) => this.#runOnce(signal) });
    deps.pools.onChange((change) => this.#onPoolChange(change));
  }

  start(): void {
    this.#changed.abort();
    this.#task.start();
  }

  stop(): Promise<void> {
    return this.#task.stop();
  }

  /** Most changes of pools are counts in their status. */
  #onPoolChange({ type, object, before }: ObjectChange<AddressPool>): void {
    if (this.#changed.signal.aborted) return;
    const isSame =
      type !== 'removed' && before !== undefined && isDeepStrictEqual(servedNetworkOf(before), servedNetworkOf(object));
    if (!isSame) this.#changed.abort();
  }

  /** Waits until the list must be written or checked, and does so. */
  async #runOnce(signal: AbortSignal): Promise<void> {
    await this.#deps.clock.sleep(CHECK_MS, AbortSignal.any([signal, this.#changed.signal]));
    if (!signal.aborted) await this.#tryToWrite(signal);
  }

  async #tryToWrite(signal: AbortSignal): Promise<void> {
    const { log } = this.#deps;
    this.#changed = new AbortController();
    try {
      await this.#write(signal);
    } catch (error) {
      this.#changed.abort();
      if (signal.aborted || isConflict(error)) return;
      log.error(
        {},
        `cannot write the networks of pools to ConfigMap ${SERVED_NETWORKS_CONFIG_MAP}: ${messageOf(error)}`,
      );
    }
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { client, config, pools } = this.#deps;
    const ref = { namespace: config.namespace, name: SERVED_NETWORKS_CONFIG_MAP };
    const { metadata, data: before = {} } = await client.get(CONFIG_MAPS, ref, { signal });
    const after = listServedNetworks(pools.cache.list());
    const removed = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
    const written = Object.entries(after).filter(([key, value]) => before[key] !== value);
    if (removed.length === 0 && written.length === 0) return;
    const data = Object.fromEntries([...removed.map((key): [string, null] => [key, null]), ...written]);
    const body = { metadata: { resourceVersion: metadata.resourceVersion }, data };
    await client.patch(CONFIG_MAPS, ref, { type: 'merge', body }, { signal });
  }
}
