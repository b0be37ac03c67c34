import type { AddressPool } from '../../api/address-pool.js';
import { shortHash } from '../../api/hash.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type KubeObject, byAge, objectKey } from '../../api/meta.js';
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
import { poolsBySegment } from './segments.js';

export type { Resolution } from './resolution.js';
export type { PoolState } from './pool-state.js';

export interface PoolListers {
  pools: Pick<Cache<AddressPool>, 'list'>;
  networks: Pick<Cache<ParsedNad>, 'list' | 'get'>;
  /** Whether the API server knows NADs. Default: it does. */
  areNetworksServed?: () => boolean;
}

/** They tell of changes of the caches; informers do. */
export interface PoolChanges {
  pools: { onChange(handler: (change: ObjectChange<AddressPool>) => void): void };
  networks: {
    onChange(handler: (change: ObjectChange<ParsedNad>) => void): void;
    onServed?(handler: () => void): void;
  };
}

/** All of one network. `state` is equal where nothing changed that a claim could notice. */
interface NetworkEntry {
  admin: EvaluatedPool[];
  /** By the namespace of the NADs. */
  derived: Map<string, EvaluatedPool[]>;
  nads: ParsedNad[];
  fingerprint: string;
}

/** A pool as it was read, and what it was read from. */
interface ParsedPoolEntry {
  fingerprint: string;
  read: ParsedPool;
}

/** Which pool serves whom. Follows the caches of pools and NADs: tell it of their changes, or who tells them. */
export class PoolDirectory {
  readonly #listers: PoolListers;
  readonly #handlers: ((networks: ReadonlySet<string>) => void)[] = [];
  readonly #read = new Map<string, ParsedPoolEntry>();
  readonly #statements = new WeakMap<ParsedNad, string>();
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

  /** Which pool serves somebody without a claim, too. */
  resolveUser(user: NetworkUser): Resolution {
    this.#refresh();
    return resolve(user, this.#table);
  }

  /** What a pool may lease, also of one that serves nobody (now). Undefined where it is invalid or unknown. */
  pool(name: string): Pool | undefined {
    this.#refresh();
    const pool = this.#pools.get(name);
    return pool && compiledPool(pool);
  }

  stateOf(name: string): PoolState | undefined {
    this.#refresh();
    return this.#pools.get(name)?.state;
  }

  /** The pools of a network, admins' and derived ones, oldest first within each. */
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

  /** The pools in whose subnets an address lies, of those that share an address space. */
  poolsWith(addressSpace: string, address: Address): readonly string[] {
    this.#refresh();
    const pools = this.#spaces.get(addressSpace) ?? [];
    return pools.filter((pool) => subnetOf(pool, address) !== undefined).map(({ name }) => name);
  }

  /** The administrators' pools in an address space. */
  adminPoolsIn(addressSpace: string): readonly Pool[] {
    this.#refresh();
    return this.#adminSpaces.get(addressSpace) ?? [];
  }

  /** Namespace and network of each NAD that asks for a pool in an address space, whether it has one or not. */
  networksIn(addressSpace: string): readonly { namespace: string; network: string }[] {
    const wanted = this.#listers.networks.list().flatMap(requestedSpace);
    return wanted.filter((each) => each.addressSpace === addressSpace);
  }

  /** The NADs of a namespace whose config names the network, oldest first. */
  nadsOf(namespace: string, network: string): readonly ParsedNad[] {
    this.#refresh();
    return this.#nads.get(networkKey(namespace, network)) ?? [];
  }

  /** The pools whose addresses are used on each layer-2 segment of NADs, as far as their configs tell. */
  get poolsByWire(): ReadonlyMap<string, ReadonlySet<EvaluatedPool>> {
    this.#refresh();
    return (this.#byWire ??= poolsBySegment(this.#networks.values()));
  }

  /** Told of the networks for whose claims something else may be true now; soon after the change, several changes at once. */
  onChange(handler: (networks: ReadonlySet<string>) => void): void {
    this.#handlers.push(handler);
  }

  /** Hears of changes by itself. Follow before others do: who asks because of a change is then answered with it. */
  follow({ pools, networks }: PoolChanges): void {
    pools.onChange((change) => this.changed(change));
    networks.onChange((change) => this.changed(change));
    networks.onServed?.(() => this.changed());
  }

  /** The caches of pools or NADs have changed. Given the change, one of a pool's status is passed over. */
  changed(change?: { type: string; object: KubeObject; before?: KubeObject }): void {
    if (change?.type === 'changed' && change.before !== undefined && isStatusChange(change.before, change.object))
      return;
    this.#stale = true;
    if (this.#due) return;
    this.#due = true;
    // a list brings many changes at once
    queueMicrotask(() => this.#refresh());
  }

  /** False while nothing is known of NADs, for their kind is not served. */
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
      const judged = evaluatePools(pools.get(network) ?? []);
      const attachments = nads.get(network) ?? [];
      for (const pool of judged) this.#pools.set(pool.name, pool);
      for (const [namespace, own] of groupBy(attachments, ({ metadata }) => metadata.namespace)) {
        this.#nads.set(networkKey(namespace, network), own);
      }
      this.#networks.set(network, {
        admin: judged.filter(({ nadNamespace }) => nadNamespace === undefined),
        derived: groupBy(judged, ({ nadNamespace }) => nadNamespace),
        nads: attachments,
        fingerprint: JSON.stringify([
          this.knowsNetworks,
          judged.map(evaluationFingerprint),
          attachments.map((nad) => this.#statementOf(nad)),
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
      // the same Pool stays the same object: others compare by it
      if (known?.fingerprint === text) return known.read;
      const read = parsePool(pool);
      this.#read.set(name, { fingerprint: text, read });
      return read;
    });
  }

  #statementOf(nad: ParsedNad): string {
    const known = this.#statements.get(nad);
    if (known !== undefined) return known;
    const { uid, creationTimestamp } = nad.metadata;
    // compared only: the hash is short, however long the NAD is
    const statement = shortHash(
      JSON.stringify([objectKey(nad), uid, creationTimestamp, nad.delegation, nad.segment]),
      32,
    );
    this.#statements.set(nad, statement);
    return statement;
  }
}

function requestedSpace({ metadata, config, delegation }: ParsedNad) {
  if (!config.ok || delegation.kind !== 'holdfast') return [];
  const network = config.network.name;
  return { namespace: metadata.namespace ?? '', network, addressSpace: delegation.config.addressSpace ?? network };
}

function isStatusChange(before: KubeObject, after: KubeObject): boolean {
  return (
    'spec' in before &&
    'spec' in after &&
    poolFingerprint(before as AddressPool) === poolFingerprint(after as AddressPool)
  );
}

/** All of a pool that counts. */
function poolFingerprint({ metadata, spec }: AddressPool): string {
  const { name, uid, creationTimestamp, deletionTimestamp, annotations } = metadata;
  return JSON.stringify([name, uid, creationTimestamp, deletionTimestamp, annotations, spec]);
}

function evaluationFingerprint({ name, uid, nadNamespace, namespaces, state, compiled }: EvaluatedPool): unknown {
  const described = state.kind === 'served' ? state.kind : state.message;
  return [name, uid, nadNamespace, namespaces, described, serialOf(compiled)];
}

const serials = new WeakMap<object, number>();
let lastSerial = 0;

/** Tells one reading of a spec from another. */
function serialOf(compiled: object): number {
  const serial = serials.get(compiled) ?? ++lastSerial;
  serials.set(compiled, serial);
  return serial;
}

/** Elements without a key are left out. */
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
