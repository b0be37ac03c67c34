import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey, splitKey } from '../../api/meta.js';
import type { Cache } from '../../kube/informers/cache.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { type ParsedNad, changesNetwork } from '../../cluster/transforms.js';
import type { Address } from '../address/address.js';
import type { SpacePool } from '../pool/address-space-rights.js';
import type { Pool } from '../pool/pool.js';
import { type NetworkUser, type Resolution, type ResolutionTable, resolve, userOfClaim } from './resolution.js';
import {
  type EvaluatedPool,
  type ParsedPool,
  type PoolState,
  compiledPool,
  isStatusChange,
  parsePool,
  poolFingerprint,
} from './pool-state.js';
import { GroupedIndex, SubnetIndex } from './indexes.js';
import {
  type ChangedNamespaces,
  NetworkEntry,
  type SpaceRequest,
  poolsBySegment,
  spaceRequestOf,
} from './network-entry.js';

export interface PoolListers {
  pools: Pick<Cache<AddressPool>, 'list' | 'get'>;
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

/** A parsed pool, and the fingerprint of the object that it was parsed from. */
interface ParsedPoolEntry {
  readonly fingerprint: string;
  readonly read: ParsedPool;
  /** Empty if the pool is invalid. */
  readonly space: string;
}

/** A NAD, and the address space in which it requests a pool. */
interface NadEntry {
  readonly nad: ParsedNad;
  readonly request: SpaceRequest | undefined;
}

/** The networks whose claims may be affected by a change, with the namespaces of the NADs. */
export type NetworkChanges = ReadonlyMap<string, ChangedNamespaces>;

/**
 * Knows which pool serves which workload. Reads the caches of pools and NADs; call {@link follow} or {@link changed}. Tenants can change their NADs as often
 * as they want, so the cost of a change does not grow with the number of NADs.
 */
export class PoolDirectory {
  readonly #listers: PoolListers;
  readonly #schedule: (run: () => void) => void;
  readonly #handlers: ((changes: NetworkChanges) => void)[] = [];
  readonly #pools = new Map<string, ParsedPoolEntry>();
  readonly #nads = new Map<string, NadEntry>();
  readonly #networks = new Map<string, NetworkEntry>();
  readonly #poolsBySpace = new GroupedIndex<ParsedPool>();
  readonly #subnets = new SubnetIndex();
  readonly #requestsBySpace = new GroupedIndex<SpaceRequest>();
  #bySegment: ReadonlyMap<string, ReadonlySet<EvaluatedPool>> | undefined;
  readonly #changedPools = new Set<string>();
  readonly #changedNads = new Set<string>();
  /** Anything may have changed. */
  #isStale = true;
  #isDue = false;

  /** @param schedule when to tell handlers of changes, if nobody asks before. Default: at the end of the turn */
  constructor(listers: PoolListers, schedule: (run: () => void) => void = queueMicrotask) {
    this.#listers = listers;
    this.#schedule = schedule;
  }

  /** @param keepsPool it has addresses of the derived pool, which may have served its namespace before */
  resolve(claim: IPAMClaim, keepsPool = false): Resolution {
    return this.resolveUser({ ...userOfClaim(claim), keepsPool });
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
    return pool && compiledPool(pool.read);
  }

  stateOf(name: string): PoolState | undefined {
    this.#refresh();
    const read = this.#pools.get(name)?.read;
    const pools = read && this.#networks.get(read.network)?.poolsOf(read.nadNamespace);
    return pools?.find((pool) => pool.name === name)?.state;
  }

  /** The pools of a network, oldest first: first administrators' pools, then derived ones. */
  poolsOf(network: string): readonly EvaluatedPool[] {
    this.#refresh();
    return this.#networks.get(network)?.pools ?? [];
  }

  /** The namespaces that have NADs of the network. */
  namespacesOf(network: string): readonly string[] {
    this.#refresh();
    return this.#networks.get(network)?.namespaces ?? [];
  }

  /** The pools of an address space whose subnets contain an address. */
  poolsContaining(addressSpace: string, address: Address): readonly string[] {
    this.#refresh();
    return this.#subnets.poolsContaining(addressSpace, address);
  }

  /** The valid pools of an address space, served or not. */
  poolsIn(addressSpace: string): readonly SpacePool[] {
    this.#refresh();
    return this.#poolsBySpace.of(addressSpace).flatMap((parsed) => {
      const pool = compiledPool(parsed);
      return pool === undefined ? [] : [{ pool, createdAt: parsed.createdAt, nadNamespace: parsed.nadNamespace }];
    });
  }

  /** The namespace and network of each NAD that requests a pool in an address space, whether it has one or not. */
  networksIn(addressSpace: string): readonly { namespace: string; network: string }[] {
    this.#refresh();
    return this.#requestsBySpace.of(addressSpace);
  }

  /** The NADs of a namespace whose config names the network, oldest first. */
  nadsOf(namespace: string, network: string): readonly ParsedNad[] {
    this.#refresh();
    return this.#table.nadsOf(namespace, network);
  }

  /** The pools whose addresses are used on each layer-2 segment, as far as the configs of NADs show it. */
  get poolsBySegment(): ReadonlyMap<string, ReadonlySet<EvaluatedPool>> {
    this.#refresh();
    return (this.#bySegment ??= poolsBySegment(this.#networks.values()));
  }

  /** Calls the handler with the networks whose claims may be affected, at the latest when somebody asks for one of them. */
  onChange(handler: (changes: NetworkChanges) => void): void {
    this.#handlers.push(handler);
  }

  /** Subscribes to changes. Call it before other subscribers, so that they see the new state when they ask. */
  follow({ pools, networks }: PoolChanges): void {
    pools.onChange(({ type, object, before }) => {
      if (type === 'changed' && before !== undefined && isStatusChange(before, object)) return;
      this.#changedPools.add(object.metadata.name);
      this.#setDue();
    });
    networks.onChange((change) => {
      if (!changesNetwork(change)) return;
      this.#changedNads.add(objectKey(change.object));
      this.#setDue();
    });
    networks.onServed?.(() => this.changed());
  }

  /** Call it when anything in the caches of pools or NADs may have changed. */
  changed(): void {
    this.#isStale = true;
    this.#setDue();
  }

  /** False while the API server does not serve NADs, so that nothing is known about them. */
  get knowsNetworks(): boolean {
    return this.#listers.areNetworksServed?.() ?? true;
  }

  readonly #table: ResolutionTable = {
    areNadsServed: () => this.knowsNetworks,
    nad: (key) => this.#listers.networks.get(key),
    nadsOf: (namespace, network) => this.#networks.get(network)?.nadsOf(namespace) ?? [],
    adminPools: (network) => this.#networks.get(network)?.admin ?? [],
    derivedPools: (network, namespace) => this.#networks.get(network)?.poolsOf(namespace) ?? [],
  };

  #setDue(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#schedule(() => {
      this.#isDue = false;
      this.#refresh();
    });
  }

  #refresh(): void {
    const networks = this.#takeChangedNetworks();
    if (networks.size === 0) return;
    const changes = new Map<string, ChangedNamespaces>();
    for (const network of networks) {
      const namespaces = this.#refreshNetwork(network);
      if (namespaces?.size !== 0) changes.set(network, namespaces);
    }
    this.#bySegment = undefined;
    if (changes.size > 0) for (const handler of this.#handlers) handler(changes);
  }

  #takeChangedNetworks(): ReadonlySet<string> {
    const networks = new Set<string>();
    if (this.#isStale) {
      this.#isStale = false;
      for (const { metadata } of this.#listers.pools.list()) this.#changedPools.add(metadata.name);
      for (const name of this.#pools.keys()) this.#changedPools.add(name);
      for (const nad of this.#listers.networks.list()) this.#changedNads.add(objectKey(nad));
      for (const key of this.#nads.keys()) this.#changedNads.add(key);
      // whether NADs are served concerns all of them
      for (const network of this.#networks.keys()) networks.add(network);
    }
    for (const name of this.#changedPools) for (const network of this.#updatePool(name)) networks.add(network);
    for (const key of this.#changedNads) for (const network of this.#updateNad(key)) networks.add(network);
    this.#changedPools.clear();
    this.#changedNads.clear();
    return networks;
  }

  /** @returns the networks that must be updated */
  #updatePool(name: string): string[] {
    const known = this.#pools.get(name);
    const pool = this.#listers.pools.get(name);
    const fingerprint = pool && poolFingerprint(pool);
    // an unchanged pool stays the same object, because others compare by identity
    if (known?.fingerprint === fingerprint) return [];
    if (known !== undefined) {
      const compiled = compiledPool(known.read);
      if (compiled !== undefined) this.#subnets.delete(compiled);
      this.#pools.delete(name);
      this.#entryOf(known.read.network).partToChange(known.read.nadNamespace).removePool(known.read);
      this.#poolsBySpace.delete(known.space, name);
    }
    if (pool !== undefined && fingerprint !== undefined) {
      const read = parsePool(pool);
      const compiled = compiledPool(read);
      const space = compiled?.addressSpace ?? '';
      if (compiled !== undefined) this.#subnets.add(compiled);
      this.#pools.set(name, { fingerprint, read, space });
      this.#entryOf(read.network).partToChange(read.nadNamespace).addPool(read);
      this.#poolsBySpace.set(space, name, read);
    }
    return [known, this.#pools.get(name)].flatMap((entry) => entry?.read.network ?? []);
  }

  /** @returns the networks that must be updated */
  #updateNad(key: string): string[] {
    const known = this.#nads.get(key);
    const nad = this.#listers.networks.get(key);
    if (known?.nad === nad) return [];
    const before = known && networkOf(known.nad);
    const { namespace } = splitKey(key);
    if (known !== undefined && before !== undefined) this.#entryOf(before).partToChange(namespace).removeNad(known.nad);
    if (known?.request !== undefined) this.#requestsBySpace.delete(known.request.addressSpace, key);
    if (nad === undefined) {
      this.#nads.delete(key);
      return before === undefined ? [] : [before];
    }
    const request = spaceRequestOf(nad);
    const network = networkOf(nad);
    this.#nads.set(key, { nad, request });
    if (network !== undefined) this.#entryOf(network).partToChange(namespace).addNad(nad);
    if (request !== undefined) this.#requestsBySpace.set(request.addressSpace, key, request);
    return [before, network].filter((each) => each !== undefined);
  }

  #entryOf(network: string): NetworkEntry {
    const entry = this.#networks.get(network) ?? new NetworkEntry(this.knowsNetworks);
    this.#networks.set(network, entry);
    return entry;
  }

  #refreshNetwork(network: string): ChangedNamespaces {
    const entry = this.#entryOf(network);
    const namespaces = entry.refresh(this.knowsNetworks);
    if (entry.isEmpty) this.#networks.delete(network);
    return namespaces;
  }
}

function networkOf({ config }: ParsedNad): string | undefined {
  return config.ok ? config.network.name : undefined;
}
