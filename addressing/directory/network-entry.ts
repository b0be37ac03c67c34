import { byAge } from '../../api/meta.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import {
  type EvaluatedPool,
  type ParsedPool,
  byPoolAge,
  evaluatePools,
  evaluationFingerprint,
  nadFingerprint,
} from './pool-state.js';
import { isServingNamespace } from './resolution.js';

/** Namespaces of NADs; undefined: all. */
export type ChangedNamespaces = ReadonlySet<string> | undefined;

/**
 * The pools and NADs of one network. A change costs nothing for the NADs that stay, because a tenant may have thousands of them, and may name the network of
 * another tenant. After additions and removals, call {@link refresh}.
 */
export class NetworkEntry {
  /** By the namespace of the NADs; undefined: administrators' pools. */
  readonly #parts = new Map<string | undefined, NetworkPart>();
  readonly #changed = new Set<string | undefined>();
  #knowsNetworks: boolean;
  #pools: readonly EvaluatedPool[] | undefined;

  constructor(knowsNetworks: boolean) {
    this.#knowsNetworks = knowsNetworks;
  }

  /** Returns the part of the NADs of a namespace, or of administrators' pools, for additions and removals. */
  partToChange(namespace: string | undefined): NetworkPart {
    const part = this.#parts.get(namespace) ?? new NetworkPart();
    this.#parts.set(namespace, part);
    this.#changed.add(namespace);
    return part;
  }

  /** Evaluates what was added and removed. @returns the namespaces whose claims it may concern. An empty set: none */
  refresh(knowsNetworks: boolean): ChangedNamespaces {
    let isForAll = knowsNetworks !== this.#knowsNetworks;
    this.#knowsNetworks = knowsNetworks;
    const namespaces = new Set<string>();
    for (const namespace of this.#changed) {
      const part = this.#parts.get(namespace);
      if (part?.refresh() === true) {
        // administrators' pools concern the claims of all namespaces
        if (namespace === undefined) isForAll = true;
        else namespaces.add(namespace);
      }
      if (part?.isEmpty === true) this.#parts.delete(namespace);
    }
    this.#changed.clear();
    this.#pools = undefined;
    return isForAll ? undefined : namespaces;
  }

  /** Oldest first: administrators' pools, then derived ones. */
  get pools(): readonly EvaluatedPool[] {
    const derived = () => [...this.#parts].flatMap(([namespace, { pools }]) => (namespace === undefined ? [] : pools));
    return (this.#pools ??= [...this.admin, ...derived().sort(byPoolAge)]);
  }

  /** Administrators' pools, oldest first. */
  get admin(): readonly EvaluatedPool[] {
    return this.poolsOf(undefined);
  }

  /** The derived pools of a namespace, or administrators' pools, oldest first. */
  poolsOf(nadNamespace: string | undefined): readonly EvaluatedPool[] {
    return this.#parts.get(nadNamespace)?.pools ?? [];
  }

  /** The NADs of a namespace, oldest first. */
  nadsOf(namespace: string): readonly ParsedNad[] {
    return this.#parts.get(namespace)?.nads ?? [];
  }

  /** The layer-2 segments of the NADs of a namespace. */
  segmentsOf(namespace: string): Segments {
    return this.#parts.get(namespace)?.segments ?? segmentsOf([]);
  }

  /** The namespaces that have NADs. */
  get namespaces(): readonly string[] {
    return [...this.#parts].flatMap(([namespace, { hasNads }]) =>
      hasNads && namespace !== undefined ? [namespace] : [],
    );
  }

  get isEmpty(): boolean {
    return this.#parts.size === 0;
  }
}

/** The pools and NADs of one network and namespace. */
class NetworkPart {
  pools: readonly EvaluatedPool[] = [];
  readonly #parsed = new Map<string, ParsedPool>();
  #arePoolsChanged = false;
  #known = new Set<ParsedNad>();
  #nads: readonly ParsedNad[] | undefined;
  #segments: Segments | undefined;
  /** Fingerprints of the NADs since the last refresh. */
  readonly #removed = new Set<string>();
  readonly #added = new Set<string>();

  addPool(pool: ParsedPool): void {
    this.#parsed.set(pool.name, pool);
    this.#arePoolsChanged = true;
  }

  removePool({ name }: ParsedPool): void {
    this.#parsed.delete(name);
    this.#arePoolsChanged = true;
  }

  addNad(nad: ParsedNad): void {
    this.#known.add(nad);
    this.#added.add(nadFingerprint(nad));
    this.#forgetOrder();
  }

  removeNad(nad: ParsedNad): void {
    this.#known.delete(nad);
    this.#removed.add(nadFingerprint(nad));
    this.#forgetOrder();
  }

  /** @returns true if claims may be concerned */
  refresh(): boolean {
    const havePoolsChanged = this.#refreshPools();
    return this.#refreshNads() || havePoolsChanged;
  }

  /** Oldest first. Most processes never ask, so a change alone does not sort them. */
  get nads(): readonly ParsedNad[] {
    if (this.#nads !== undefined) return this.#nads;
    this.#nads = [...this.#known].sort(byAge);
    // what is sorted already is sorted fast
    this.#known = new Set(this.#nads);
    return this.#nads;
  }

  get segments(): Segments {
    return (this.#segments ??= segmentsOf(this.#known));
  }

  get hasNads(): boolean {
    return this.#known.size > 0;
  }

  get isEmpty(): boolean {
    return this.#parsed.size === 0 && !this.hasNads;
  }

  #forgetOrder(): void {
    this.#nads = undefined;
    this.#segments = undefined;
  }

  #refreshPools(): boolean {
    if (!this.#arePoolsChanged) return false;
    this.#arePoolsChanged = false;
    const before = this.pools;
    this.pools = evaluatePools([...this.#parsed.values()]);
    return fingerprintOf(before) !== fingerprintOf(this.pools);
  }

  #refreshNads(): boolean {
    const [added, removed] = [[...this.#added], this.#removed];
    const isSame = added.length === removed.size && added.every((each) => removed.has(each));
    this.#added.clear();
    this.#removed.clear();
    return !isSame;
  }
}

function fingerprintOf(pools: readonly EvaluatedPool[]): string {
  return JSON.stringify(pools.map(evaluationFingerprint));
}

/** The layer-2 segments of the NADs of one network and namespace. */
interface Segments {
  /** Of NADs that delegate IPAM. */
  readonly cni: ReadonlySet<string>;
  /** Of NADs without IPAM, where a pool may serve guests. */
  readonly guest: ReadonlySet<string>;
}

/** The pools of one network, and the segments of its NADs by their namespace. */
interface NetworkSegments {
  readonly admin: readonly EvaluatedPool[];
  readonly namespaces: readonly string[];
  segmentsOf(namespace: string): Segments;
  poolsOf(namespace: string): readonly EvaluatedPool[];
}

function segmentsOf(nads: Iterable<ParsedNad>): Segments {
  const [cni, guest] = [new Set<string>(), new Set<string>()];
  for (const { segment, delivery } of nads)
    if (segment !== undefined) (delivery.kind === 'cni' ? cni : guest).add(segment);
  return { cni, guest };
}

/** Returns the pools whose addresses are used on each layer-2 segment: those that serve a NAD attached to it. */
export function poolsBySegment(networks: Iterable<NetworkSegments>): ReadonlyMap<string, ReadonlySet<EvaluatedPool>> {
  const found = new Map<string, Set<EvaluatedPool>>();
  const add = (segments: ReadonlySet<string>, pools: readonly EvaluatedPool[]) => {
    for (const segment of segments) {
      const known = found.get(segment) ?? new Set();
      found.set(segment, known);
      for (const pool of pools) known.add(pool);
    }
  };
  for (const network of networks) {
    for (const namespace of network.namespaces) {
      const { cni, guest } = network.segmentsOf(namespace);
      const admins = network.admin.filter((pool) => isServingNamespace(pool, namespace));
      add(cni, [...network.poolsOf(namespace), ...admins]);
      add(
        guest,
        admins.filter(({ servesGuests }) => servesGuests),
      );
    }
  }
  return found;
}

/** The request of a NAD to have its pool in an address space. */
export interface SpaceRequest {
  readonly namespace: string;
  readonly network: string;
  readonly addressSpace: string;
}

export function spaceRequestOf({ metadata, config, delegation }: ParsedNad): SpaceRequest | undefined {
  if (!config.ok || delegation.kind !== 'holdfast') return undefined;
  const network = config.network.name;
  return { namespace: metadata.namespace ?? '', network, addressSpace: delegation.config.addressSpace ?? network };
}
