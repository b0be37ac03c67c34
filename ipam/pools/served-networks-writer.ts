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
  readonly clock: Pick<Clock, 'now' | 'sleep'>;
  readonly log: Logger;
}

/** Pools that come and go cost at most one write in this time. */
const PAUSE_MS = 1_000;
/** How soon the list is repaired if somebody else has changed it. */
const CHECK_MS = 30_000;

/** Keeps the ConfigMap up to date from which a policy knows the networks of pools. Works also while the feature gate is closed. */
export class ServedNetworksWriter {
  readonly #deps: ServedNetworksDeps;
  readonly #task: PeriodicTask;
  #isChanged = true;
  #writtenAt = -Infinity;

  constructor(deps: ServedNetworksDeps) {
    this.#deps = deps;
    this.#task = new PeriodicTask({ clock: deps.clock, pauseMs: PAUSE_MS, run: (signal) => this.#runIfDue(signal) });
    deps.pools.onChange((change) => this.#onPoolChange(change));
  }

  start(): void {
    this.#isChanged = true;
    this.#task.start();
  }

  stop(): Promise<void> {
    return this.#task.stop();
  }

  /** Most changes of pools are counts in their status. */
  #onPoolChange({ type, object, before }: ObjectChange<AddressPool>): void {
    if (type === 'removed' || before === undefined) this.#isChanged = true;
    else this.#isChanged ||= !isDeepStrictEqual(servedNetworkOf(before), servedNetworkOf(object));
  }

  async #runIfDue(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    if (!this.#isChanged && clock.now() - this.#writtenAt < CHECK_MS) return;
    this.#isChanged = false;
    try {
      await this.#write(signal);
      this.#writtenAt = clock.now();
    } catch (error) {
      this.#isChanged = true;
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
