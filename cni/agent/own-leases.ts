import type { AddressLease } from '../../api/address-lease.js';
import type { Address } from '../../ipam/core/address.js';
import { type LeaseRecord, readLease, stateOf } from '../../ipam/core/lease.js';
import type { Pool } from '../../ipam/core/pool.js';
import { Cache } from '../../kube/cache.js';
import type { Clock } from '../../kube/clock.js';
import type { Change, Informer } from '../../kube/informer.js';
import { isNewer } from '../../kube/resource-version.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { InformerRegistry, Watched } from '../../kube/informers.js';

/** Of an interface of a sandbox: what a DEL is about. */
export interface Place {
  readonly containerId: string;
  readonly interfaceName: string;
}

/** A lease that we wrote, and the watch has not shown. */
export interface Unseen {
  readonly record: LeaseRecord;
  /** In the clock's ms. */
  readonly since: number;
}

/** What follows the leases; an Informer does. */
export type OwnFeed = Pick<Informer<AddressLease, LeaseRecord>, 'hasSynced' | 'synced' | 'onChange'>;

/** A write whose end nobody knows. */
export interface Doubt {
  /** Of the lease. */
  readonly name: string;
  readonly place: Place;
  /** In the clock's ms. */
  readonly since: number;
}

/** Is told, in the same turn, of what pods of this node have, and of what they may have. */
export interface LeaseListener {
  /** A lease of the node, in whatever state, is another than it was: undefined where there is none. */
  changed(before: LeaseRecord | undefined, after: LeaseRecord | undefined): void;
  /** An address may be leased to a pod of the node, or may not, until {@link resolved}. */
  doubted(key: string, request: DoubtedRequest): void;
  resolved(key: string): void;
}

/** What was to be written, and may have been. */
export interface DoubtedRequest {
  readonly pool: string;
  readonly address: Address;
}

/** Writes without an answer are few, and looked at soon. */
const DOUBTS = 1_024;

/**
 * The leases of this node, in whatever state: what the watch has told, and what we wrote ourselves since. The watch lags behind; whatever
 * of it is older than what is known changes nothing.
 */
export class OwnLeases {
  readonly #feed: OwnFeed;
  readonly #nodeName: string;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #leases = new Cache<LeaseRecord>({
    pod: ({ owner }) => (owner?.kind === 'Pod' ? [owner.uid] : []),
    container: ({ containerID }) => (containerID === undefined ? [] : [containerID]),
    released: (lease) => (stateOf(lease) === 'released' ? [lease.pool] : []),
  });
  /** By name. */
  readonly #unseen = new Map<string, Unseen>();
  /** Leases that may be held at a place and may not. */
  readonly #doubts = new Map<string, Doubt>();
  #listener: LeaseListener | undefined;
  #held = 0;

  constructor(informers: Pick<InformerRegistry, 'get'>, nodeName: string, clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
    this.#nodeName = nodeName;
    // by the field, which is the truth that the label repeats
    const watched: Watched<AddressLease, LeaseRecord> = {
      resource: ADDRESS_LEASES,
      fieldSelector: ofNode(nodeName),
      shrink: readLease,
    };
    this.#feed = informers.get(watched);
    this.#feed.onChange((change) => this.#observe(change));
  }

  /** To be set before anything is known. */
  tell(listener: LeaseListener): void {
    this.#listener = listener;
  }

  /** The first full list is there. */
  get hasSynced(): boolean {
    return this.#feed.hasSynced;
  }

  synced(): Promise<void> {
    return this.#feed.synced();
  }

  /** How many are held. */
  get held(): number {
    return this.#held;
  }

  all(): readonly LeaseRecord[] {
    return this.#leases.list();
  }

  /** Of a pod's UID, in whatever state. */
  ofPod(uid: string): readonly LeaseRecord[] {
    return this.#leases.byIndex('pod', uid);
  }

  /** Released leases of a pool in its address space. A pool of the same name may have been in another one before. */
  releasedOf({ name, addressSpace }: Pick<Pool, 'name' | 'addressSpace'>): readonly LeaseRecord[] {
    return this.#leases.byIndex('released', name).filter((lease) => lease.addressSpace === addressSpace);
  }

  /** Of a pool: those that are released, and had this MAC address. */
  keptFor(pool: Pick<Pool, 'name' | 'addressSpace'>, mac: string): readonly LeaseRecord[] {
    return this.releasedOf(pool).filter((lease) => lease.mac === mac);
  }

  /** Of pods, and held. */
  heldAt(place: Place): readonly LeaseRecord[] {
    return this.#leases.byIndex('container', place.containerId).filter((lease) => isHeldAt(lease, place));
  }

  /** The answer to a write of ours, or what was read since. */
  learned(record: LeaseRecord): void {
    const { name } = record.metadata;
    if (!this.#isNews(record)) return;
    if (record.node === this.#nodeName) {
      this.#set(record);
      this.#unseen.set(name, { record, since: this.#clock.now() });
    } else this.#delete(name);
  }

  get(name: string): LeaseRecord | undefined {
    return this.#leases.get(name);
  }

  /** There is no such lease. @param known what was known of it when it was asked for: what was learned since stays */
  gone(name: string, known: LeaseRecord | undefined): void {
    if (known !== undefined && this.#leases.get(name) === known) this.#delete(name);
  }

  /** What we wrote, and the watch has not shown: it may have been deleted while no watch ran. */
  unseen(): readonly Unseen[] {
    return [...this.#unseen.values()];
  }

  /** The place was to have a lease, and nobody knows whether it has. What is learned of earlier states does not end the doubt. */
  doubt(request: DoubtedRequest & { readonly name: string }, place: Place): void {
    const key = keyOf(request.name, place);
    const [oldest] = this.#doubts.keys();
    if (this.#doubts.size >= DOUBTS && oldest !== undefined && !this.#doubts.has(key)) this.#resolve(oldest);
    this.#doubts.set(key, { name: request.name, place, since: this.#clock.now() });
    this.#listener?.doubted(key, request);
  }

  /** Writes whose end nobody has asked about. */
  doubts(): readonly Doubt[] {
    return [...this.#doubts.values()];
  }

  /** The names of leases that the place may have, and is not known to have. */
  doubtsAbout({ containerId, interfaceName }: Place): readonly string[] {
    const about = [...this.#doubts.values()].filter(
      ({ place }) => place.containerId === containerId && place.interfaceName === interfaceName,
    );
    return about.map(({ name }) => name);
  }

  /** The lease was read after the doubt came up. */
  resolved(name: string, place: Place): void {
    this.#resolve(keyOf(name, place));
  }

  #observe({ type, object }: Change<LeaseRecord>): void {
    if (type === 'removed') this.#remove(object);
    else this.#see(object);
  }

  #see(record: LeaseRecord): void {
    const { name, resourceVersion } = record.metadata;
    const news = this.#isNews(record);
    if (news) this.#set(record);
    if (news || this.#leases.get(name)?.metadata.resourceVersion === resourceVersion) this.#unseen.delete(name);
  }

  /** It is deleted, or another node has it. What we wrote after that stays. */
  #remove({ metadata: { name, resourceVersion } }: LeaseRecord): void {
    const known = this.#leases.get(name)?.metadata.resourceVersion;
    if (known !== undefined && !isNewer(known, resourceVersion)) this.#delete(name);
  }

  #resolve(key: string): void {
    if (this.#doubts.delete(key)) this.#listener?.resolved(key);
  }

  #set(record: LeaseRecord): void {
    const before = this.#leases.set(record);
    this.#count(before, -1);
    this.#count(record, 1);
    this.#listener?.changed(before, record);
    const { containerID: containerId, interface: interfaceName } = record;
    if (containerId === undefined || interfaceName === undefined || stateOf(record) !== 'held') return;
    this.resolved(record.metadata.name, { containerId, interfaceName });
  }

  #delete(name: string): void {
    const before = this.#leases.delete(name);
    this.#count(before, -1);
    this.#unseen.delete(name);
    if (before !== undefined) this.#listener?.changed(before, undefined);
  }

  #count(record: LeaseRecord | undefined, by: 1 | -1): void {
    if (record !== undefined && stateOf(record) === 'held') this.#held += by;
  }

  #isNews({ metadata: { name, resourceVersion } }: LeaseRecord): boolean {
    const known = this.#leases.get(name)?.metadata.resourceVersion;
    return known === undefined || isNewer(resourceVersion, known);
  }
}

function keyOf(name: string, { containerId, interfaceName }: Place): string {
  return `${name} ${containerId} ${interfaceName}`;
}

/** A field selector. */
export function ofNode(nodeName: string): string {
  return `spec.node=${nodeName}`;
}

/** A pod holds it there: claims' leases are nobody's to free but ipam's. */
export function isHeldAt(lease: LeaseRecord, { containerId, interfaceName }: Place): boolean {
  const isThere = lease.containerID === containerId && lease.interface === interfaceName;
  return isThere && lease.owner?.kind === 'Pod' && stateOf(lease) === 'held';
}
