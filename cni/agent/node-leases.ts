import type { AddressLease } from '../../api/address-lease.js';
import type { Address } from '../../ipam/core/address.js';
import { type LeaseRecord, readLease, stateOf } from '../../ipam/core/lease.js';
import type { Pool } from '../../ipam/core/pool.js';
import { Cache } from '../../kube/cache.js';
import type { Clock } from '../../kube/clock.js';
import type { ObjectChange, Informer } from '../../kube/informer.js';
import { isNewer } from '../../kube/resource-version.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { InformerRegistry, WatchSpec } from '../../kube/informers.js';

/** Of an interface of a sandbox: what a DEL is about. */
export interface SandboxInterface {
  readonly containerId: string;
  readonly interfaceName: string;
}

/** A lease that we wrote, and the watch has not shown. */
export interface UnconfirmedLease {
  readonly record: LeaseRecord;
  /** In the clock's ms. */
  readonly since: number;
}

/** What follows the leases; an Informer does. */
export type NodeLeaseInformer = Pick<Informer<AddressLease, LeaseRecord>, 'hasSynced' | 'synced' | 'onChange'>;

/** A write whose end nobody knows. */
export interface UncertainWrite {
  /** Of the lease. */
  readonly leaseName: string;
  readonly target: SandboxInterface;
  /** In the clock's ms. */
  readonly since: number;
}

/** Is told, in the same turn, of what pods of this node have, and of what they may have. */
export interface LeaseListener {
  /** A lease of the node, in whatever state, is another than it was: undefined where there is none. */
  changed(before: LeaseRecord | undefined, after: LeaseRecord | undefined): void;
  /** An address may be leased to a pod of the node, or may not, until {@link resolved}. */
  uncertain(key: string, request: UncertainRequest): void;
  resolved(key: string): void;
}

/** What was to be written, and may have been. */
export interface UncertainRequest {
  readonly pool: string;
  readonly address: Address;
}

/** Writes without an answer are few, and looked at soon. */
const MAX_UNCERTAIN_WRITES = 1_024;

/**
 * The leases of this node, in whatever state: what the watch has told, and what we wrote ourselves since. The watch lags behind; whatever
 * of it is older than what is known changes nothing.
 */
export class NodeLeases {
  readonly #feed: NodeLeaseInformer;
  readonly #nodeName: string;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #leases = new Cache<LeaseRecord>({
    pod: ({ owner }) => (owner?.kind === 'Pod' ? [owner.uid] : []),
    container: ({ containerID }) => (containerID === undefined ? [] : [containerID]),
    released: (lease) => (stateOf(lease) === 'released' ? [lease.pool] : []),
  });
  /** By name. */
  readonly #unseen = new Map<string, UnconfirmedLease>();
  /** Leases that may be held at a place and may not. */
  readonly #doubts = new Map<string, UncertainWrite>();
  #listener: LeaseListener | undefined;
  #held = 0;

  constructor(informers: Pick<InformerRegistry, 'get'>, nodeName: string, clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
    this.#nodeName = nodeName;
    // by the field, which is the truth that the label repeats
    const watched: WatchSpec<AddressLease, LeaseRecord> = {
      resource: ADDRESS_LEASES,
      fieldSelector: nodeFieldSelector(nodeName),
      shrink: readLease,
    };
    this.#feed = informers.get(watched);
    this.#feed.onChange((change) => this.#observe(change));
  }

  /** To be set before anything is known. */
  setListener(listener: LeaseListener): void {
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
  stickyFor(pool: Pick<Pool, 'name' | 'addressSpace'>, mac: string): readonly LeaseRecord[] {
    return this.releasedOf(pool).filter((lease) => lease.mac === mac);
  }

  /** Of pods, and held. */
  heldAt(place: SandboxInterface): readonly LeaseRecord[] {
    return this.#leases.byIndex('container', place.containerId).filter((lease) => isHeldAt(lease, place));
  }

  /** The answer to a write of ours, or what was read since. */
  update(record: LeaseRecord): void {
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
  markGone(name: string, known: LeaseRecord | undefined): void {
    if (known !== undefined && this.#leases.get(name) === known) this.#delete(name);
  }

  /** What we wrote, and the watch has not shown: it may have been deleted while no watch ran. */
  unconfirmed(): readonly UnconfirmedLease[] {
    return [...this.#unseen.values()];
  }

  /** The place was to have a lease, and nobody knows whether it has. What is learned of earlier states does not end the doubt. */
  addUncertain(request: UncertainRequest & { readonly name: string }, place: SandboxInterface): void {
    const key = uncertainWriteKey(request.name, place);
    const [oldest] = this.#doubts.keys();
    if (this.#doubts.size >= MAX_UNCERTAIN_WRITES && oldest !== undefined && !this.#doubts.has(key))
      this.#resolve(oldest);
    this.#doubts.set(key, { leaseName: request.name, target: place, since: this.#clock.now() });
    this.#listener?.uncertain(key, request);
  }

  /** Writes whose end nobody has asked about. */
  uncertainWrites(): readonly UncertainWrite[] {
    return [...this.#doubts.values()];
  }

  /** The names of leases that the place may have, and is not known to have. */
  uncertainLeasesOf({ containerId, interfaceName }: SandboxInterface): readonly string[] {
    const about = [...this.#doubts.values()].filter(
      ({ target }) => target.containerId === containerId && target.interfaceName === interfaceName,
    );
    return about.map(({ leaseName }) => leaseName);
  }

  /** The lease was read after the doubt came up. */
  resolve(name: string, place: SandboxInterface): void {
    this.#resolve(uncertainWriteKey(name, place));
  }

  #observe({ type, object }: ObjectChange<LeaseRecord>): void {
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
    this.resolve(record.metadata.name, { containerId, interfaceName });
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

function uncertainWriteKey(name: string, { containerId, interfaceName }: SandboxInterface): string {
  return `${name} ${containerId} ${interfaceName}`;
}

/** A field selector. */
export function nodeFieldSelector(nodeName: string): string {
  return `spec.node=${nodeName}`;
}

/** A pod holds it there: claims' leases are nobody's to free but ipam's. */
export function isHeldAt(lease: LeaseRecord, { containerId, interfaceName }: SandboxInterface): boolean {
  const isThere = lease.containerID === containerId && lease.interface === interfaceName;
  return isThere && lease.owner?.kind === 'Pod' && stateOf(lease) === 'held';
}
