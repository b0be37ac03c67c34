import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type KubeObject, byAge } from '../../api/meta.js';
import type { Cache } from '../../kube/cache.js';
import type { ObjectChange } from '../../kube/informer.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import type { Address } from '../core/address.js';
import { type Pool, subnetOf } from '../core/pool.js';
import {
  type NetworkUser,
  type Resolution,
  type ResolutionTable,
  networkKey,
  resolve,
  userOfClaim,
} from './resolution.js';
import {
  type EvaluatedPool,
  type PoolState,
  type ParsedPool,
  compiledPool,
  evaluatePools,
  parsePool,
} from './pool-state.js';
import { evaluationFingerprint, isStatusChange, nadFingerprint, poolFingerprint } from './fingerprints.js';
import { poolsBySegment } from './segments.js';

export type { Resolution } from './resolution.js';
export type { PoolState } from './pool-state.js';

export interface PoolListers {
  pools: Pick<Cache<AddressPool>, 'list'>;
  networks: Pick<Cache<ParsedNad>, 'list' | 'get'>;
  /** True if the API server serves NADs. Default: true. */
  areNetworksServed?: () => boolean;
}

/** Sources of change events for the caches. Informers are such sources. */
export interface PoolChanges {
  pools: { onChange(handler: (change: ObjectChange<AddressPool>) => void): void };
  networks: {
    onChange(handler: (change: ObjectChange<ParsedNad>) => void): void;
    onServed?(handler: () => void): void;
  };
}

/** The pools and NADs of one network. Equal fingerprints mean that nothing changed for claims. */
interface NetworkEntry {
  admin: EvaluatedPool[];
  /** By the namespace of the NADs. */
  derived: Map<string, EvaluatedPool[]>;
  nads: ParsedNad[];
  fingerprint: string;
}

/** A parsed pool, and the fingerprint of the object that it was parsed from. */
interface ParsedPoolEntry {
  fingerprint: string;
  read: ParsedPool;
}

/** Knows which pool serves which workload. Reads the caches of pools and NADs; call {@link follow} or {@link changed}. */
export class PoolDirectory {
  readonly #listers: PoolListers;
  readonly #handlers: ((networks: ReadonlySet<string>) => void)[] = [];
  readonly #read = new Map<string, ParsedPoolEntry>();
  #networks = new Map<string, NetworkEntry>();
  #pools = new Map<string, EvaluatedPool>();
  #nads = new Map<string, ParsedNad[]>();
  #spaces = new Map<string, Pool[]>();
  #byWire: ReadonlyMap<string, ReadonlySet<EvaluatedPool>> | undefined;
  #adminSpaces = new Map<string, Pool[]>();
  #stale = true;
  #due = false;

  constructor(listers: PoolListers) {
    this.#listers = listers;
  }

  resolve(claim: IPAMClaim): Resolution {
    return this.resolveUser(userOfClaim(claim));
  }

  /** The same for a workload that may have no claim. */
  resolveUser(user: NetworkUser): Resolution {
    this.#refresh();
    return resolve(user, this.#table);
  }

  /** The valid spec of a pool, served or not. Undefined if the pool is invalid or unknown. */
  pool(name: string): Pool | undefined {
    this.#refresh();
    const pool = this.#pools.get(name);
    return pool && compiledPool(pool);
  }

  stateOf(name: string): PoolState | undefined {
    this.#refresh();
    return this.#pools.get(name)?.state;
  }

  /** The pools of a network: first administrators' pools, then derived ones, each oldest first. */
  poolsOf(network: string): readonly EvaluatedPool[] {
    this.#refresh();
    const entry = this.#networks.get(network);
    return entry === undefined ? [] : [...entry.admin, ...[...entry.derived.values()].flat()];
  }

  /** The namespaces that have NADs of the network. */
  namespacesOf(network: string): readonly string[] {
    this.#refresh();
    const nads = this.#networks.get(network)?.nads ?? [];
    return [...new Set(nads.flatMap(({ metadata }) => metadata.namespace ?? []))];
  }

  /** The pools of an address space whose subnets contain an address. */
  poolsContaining(addressSpace: string, address: Address): readonly string[] {
    this.#refresh();
    const pools = this.#spaces.get(addressSpace) ?? [];
    return pools.filter((pool) => subnetOf(pool, address) !== undefined).map(({ name }) => name);
  }

  /** The administrators' pools in an address space. */
  adminPoolsIn(addressSpace: string): readonly Pool[] {
    this.#refresh();
    return this.#adminSpaces.get(addressSpace) ?? [];
  }

  /** The namespace and network of each NAD that requests a pool in an address space, whether it has one or not. */
  networksIn(addressSpace: string): readonly { namespace: string; network: string }[] {
    const wanted = this.#listers.networks.list().flatMap(requestedSpace);
    return wanted.filter((each) => each.addressSpace === addressSpace);
  }

  /** The NADs of a namespace whose config names the network, oldest first. */
  nadsOf(namespace: string, network: string): readonly ParsedNad[] {
    this.#refresh();
    return this.#nads.get(networkKey(namespace, network)) ?? [];
  }

  /** The pools whose addresses are used on each layer-2 segment, as far as the configs of NADs show it. */
  get poolsBySegment(): ReadonlyMap<string, ReadonlySet<EvaluatedPool>> {
    this.#refresh();
    return (this.#byWire ??= poolsBySegment(this.#networks.values()));
  }

  /** Calls the handler with the networks whose claims may be affected. Changes are batched until the end of the turn. */
  onChange(handler: (networks: ReadonlySet<string>) => void): void {
    this.#handlers.push(handler);
  }

  /** Subscribes to changes. Call it before other subscribers, so that they see the new state when they ask. */
  follow({ pools, networks }: PoolChanges): void {
    pools.onChange((change) => this.changed(change));
    networks.onChange((change) => this.changed(change));
    networks.onServed?.(() => this.changed());
  }

  /** Call it when the caches of pools or NADs have changed. A change that only concerns a pool's status is ignored. */
  changed(change?: { type: string; object: KubeObject; before?: KubeObject }): void {
    if (change?.type === 'changed' && change.before !== undefined && isStatusChange(change.before, change.object))
      return;
    this.#stale = true;
    if (this.#due) return;
    this.#due = true;
    // a list causes many changes at once
    queueMicrotask(() => this.#refresh());
  }

  /** False while the API server does not serve NADs, so that nothing is known about them. */
  get knowsNetworks(): boolean {
    return this.#listers.areNetworksServed?.() ?? true;
  }

  readonly #table: ResolutionTable = {
    areNadsServed: () => this.knowsNetworks,
    nad: (key) => this.#listers.networks.get(key),
    nadsOf: (namespace, network) => this.#nads.get(networkKey(namespace, network)) ?? [],
    adminPools: (network) => this.#networks.get(network)?.admin ?? [],
    derivedPools: (network, namespace) => this.#networks.get(network)?.derived.get(namespace) ?? [],
  };

  #refresh(): void {
    this.#due = false;
    if (!this.#stale) return;
    this.#stale = false;
    const before = this.#networks;
    this.#rebuild();
    const changed = new Set<string>();
    for (const [network, { fingerprint }] of this.#networks)
      if (before.get(network)?.fingerprint !== fingerprint) changed.add(network);
    for (const network of before.keys()) if (!this.#networks.has(network)) changed.add(network);
    if (changed.size > 0) for (const handler of this.#handlers) handler(changed);
  }

  #rebuild(): void {
    const read = this.#readPools();
    const pools = groupBy(read, ({ network }) => network);
    this.#spaces = groupBy(
      read.flatMap((pool) => compiledPool(pool) ?? []),
      ({ addressSpace }) => addressSpace,
    );
    this.#adminSpaces = groupBy(
      read.flatMap((pool) => (pool.nadNamespace === undefined ? (compiledPool(pool) ?? []) : [])),
      ({ addressSpace }) => addressSpace,
    );
    const nads = groupBy([...this.#listers.networks.list()].sort(byAge), (nad) =>
      nad.config.ok ? nad.config.network.name : undefined,
    );
    this.#byWire = undefined;
    this.#pools = new Map();
    this.#nads = new Map();
    this.#networks = new Map();
    for (const network of new Set([...pools.keys(), ...nads.keys()])) {
      const evaluated = evaluatePools(pools.get(network) ?? []);
      const attachments = nads.get(network) ?? [];
      for (const pool of evaluated) this.#pools.set(pool.name, pool);
      for (const [namespace, own] of groupBy(attachments, ({ metadata }) => metadata.namespace)) {
        this.#nads.set(networkKey(namespace, network), own);
      }
      this.#networks.set(network, {
        admin: evaluated.filter(({ nadNamespace }) => nadNamespace === undefined),
        derived: groupBy(evaluated, ({ nadNamespace }) => nadNamespace),
        nads: attachments,
        fingerprint: JSON.stringify([
          this.knowsNetworks,
          evaluated.map(evaluationFingerprint),
          attachments.map((nad) => nadFingerprint(nad)),
        ]),
      });
    }
  }

  #readPools(): ParsedPool[] {
    const pools = this.#listers.pools.list();
    const names = new Set(pools.map(({ metadata }) => metadata.name));
    for (const name of this.#read.keys()) if (!names.has(name)) this.#read.delete(name);
    return pools.map((pool) => {
      const { name } = pool.metadata;
      const text = poolFingerprint(pool);
      const known = this.#read.get(name);
      // an unchanged pool stays the same object, because others compare by identity
      if (known?.fingerprint === text) return known.read;
      const read = parsePool(pool);
      this.#read.set(name, { fingerprint: text, read });
      return read;
    });
  }
}

function requestedSpace({ metadata, config, delegation }: ParsedNad) {
  if (!config.ok || delegation.kind !== 'holdfast') return [];
  const network = config.network.name;
  return { namespace: metadata.namespace ?? '', network, addressSpace: delegation.config.addressSpace ?? network };
}

/** Groups elements by key. Elements without a key are left out. */
function groupBy<T>(elements: readonly T[], keyOf: (element: T) => string | undefined): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const element of elements) {
    const key = keyOf(element);
    if (key === undefined) continue;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [element]);
    else group.push(element);
  }
  return groups;
}
