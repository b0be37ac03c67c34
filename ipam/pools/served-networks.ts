import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { RESPONDERS_NAMESPACE, SERVED_NETWORKS_COMPLETE } from '../../api/names.js';

/**
 * The networks of all pools, as data of the ConfigMap that the policy pool-claim-status reads. Its cost for a write does not grow with the
 * number of pools, because it looks up two keys:
 * - `network.<network>` lists the administrators' pools of a network, as `<network>/<pool>/ <namespace> <namespace>…`, or `… *` for all
 *   namespaces.
 * - `namespace.<namespace>` lists the pools that are derived from NADs of a namespace, as `<network>/<pool>`, or `*` for all networks.
 */
export type ServedNetworks = Readonly<Record<string, string>>;

const ALL = '*';
/** A key has at most 253 characters. Networks that share the beginning share a key. */
const MAX_NETWORK_IN_KEY = 200;
/** The API server allows 1 MiB. */
const MAX_LENGTH = 960 * 1024;

/** One pool in the list. */
export interface ServedNetwork {
  readonly key: string;
  readonly line: string;
  /** The line if the list would be too long: it protects more claims. */
  readonly short: string;
}

/** Returns what the list says about a pool. */
export function servedNetworkOf(pool: AddressPool): ServedNetwork {
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
