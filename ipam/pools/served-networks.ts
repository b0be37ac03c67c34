import { isDeepStrictEqual } from 'node:util';
import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { RESPONDERS_NAMESPACE, SERVED_NETWORKS_COMPLETE, SERVED_NETWORKS_CONFIG_MAP } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isConflict, messageOf } from '../../kube/errors.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import type { Logger } from '../../kube/log.js';
import { CONFIG_MAPS } from '../../kube/resources.js';
import type { IpamConfig } from '../../process/config/config.js';
import { untilEither } from '../../process/leadership.js';
import { PeriodicTask } from '../../process/periodic-task.js';

interface ServedNetworksDeps {
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
export class ServedNetworksWriter extends PeriodicTask {
  readonly #deps: ServedNetworksDeps;
  /** Aborted when a pool has changed since the last write. */
  #changed = new AbortController();
  /** Why the last write failed, as it was logged. */
  #problem: string | undefined;

  constructor(deps: ServedNetworksDeps) {
    super({ clock: deps.clock, pauseMs: PAUSE_MS, run: (signal) => this.#runOnce(signal) });
    this.#deps = deps;
    deps.pools.onChange((change) => this.#onPoolChange(change));
  }

  override start(): void {
    this.#changed.abort();
    super.start();
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
    await untilEither(signal, this.#changed.signal, (either) => this.#deps.clock.sleep(CHECK_MS, either));
    if (!signal.aborted) await this.#tryToWrite(signal);
  }

  async #tryToWrite(signal: AbortSignal): Promise<void> {
    const { log } = this.#deps;
    this.#changed = new AbortController();
    try {
      await this.#write(signal);
      this.#problem = undefined;
    } catch (error) {
      this.#changed.abort();
      if (signal.aborted || isConflict(error) || messageOf(error) === this.#problem) return;
      this.#problem = messageOf(error);
      log.error({}, `cannot write the networks of pools to ConfigMap ${SERVED_NETWORKS_CONFIG_MAP}: ${this.#problem}`);
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

/**
 * The networks of all pools, as data of the ConfigMap that the policy pool-claim-status reads. Its cost for a write does not grow with the
 * number of pools, because it looks up two keys:
 * - `network.<network>` lists the administrators' pools of a network, as `<network>/<pool>/ <namespace> <namespace>…`, or `… *` for all
 *   namespaces.
 * - `namespace.<namespace>` lists the pools that are derived from NADs of a namespace, as `<network>/<pool>`, or `*` for all networks.
 */
type ServedNetworks = Readonly<Record<string, string>>;

const ALL = '*';
/** A key has at most 253 characters. Networks that share the beginning share a key. */
const MAX_NETWORK_IN_KEY = 200;
/** The API server allows 1 MiB. */
const MAX_LENGTH = 960 * 1024;

/** One pool in the list. */
interface ServedNetwork {
  readonly key: string;
  readonly line: string;
  /** The line if the list would be too long: it protects more claims. */
  readonly short: string;
}

/** Returns what the list says about a pool. */
function servedNetworkOf(pool: AddressPool): ServedNetwork {
  const { network, namespaces, guest } = pool.spec;
  const origin = nadNamespaceOf(pool);
  const line = `${network}/${pool.metadata.name}`;
  if (origin !== undefined) return { key: `namespace.${origin}`, line, short: ALL };
  // a responder uses addresses of its pool in a namespace of its own
  const served = namespaces && [...namespaces, ...(guest?.dhcp === undefined ? [] : [RESPONDERS_NAMESPACE])];
  const short = `${line}/ ${ALL}`;
  return {
    key: `network.${network.slice(0, MAX_NETWORK_IN_KEY)}`,
    line: served === undefined ? short : `${line}/ ${served.join(' ')}`,
    short,
  };
}

/** Lists the networks of the pools. If the list is too long, the longest values protect more claims and are shorter. */
export function listServedNetworks(pools: readonly AddressPool[], maxLength = MAX_LENGTH): ServedNetworks {
  const byKey = new Map<string, { lines: Set<string>; short: Set<string> }>();
  for (const { key, line, short } of pools.map(servedNetworkOf)) {
    const entry = byKey.get(key) ?? { lines: new Set(), short: new Set() };
    entry.lines.add(line);
    entry.short.add(short);
    byKey.set(key, entry);
  }
  const values = [...byKey]
    .map(([key, { lines, short }]) => ({ key, value: joinLines(lines), short: joinLines(short) }))
    .sort((a, b) => saving(b) - saving(a));
  let length = values.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
  const listed: Record<string, string> = { [SERVED_NETWORKS_COMPLETE]: 'true' };
  for (const entry of values) {
    const isTooLong = length > maxLength;
    listed[entry.key] = isTooLong ? entry.short : entry.value;
    if (isTooLong) length -= saving(entry);
  }
  return listed;
}

function saving({ value, short }: { value: string; short: string }): number {
  return value.length - short.length;
}

function joinLines(lines: ReadonlySet<string>): string {
  return [...lines].sort().join('\n');
}
