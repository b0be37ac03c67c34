import type { AddressLease } from '../../api/address-lease.js';
import type { Address } from '../../addressing/address/address.js';
import { coolingStart, withCoolingStart } from '../../addressing/lease/cooling-start.js';
import { type LeaseRecord, isHeldByPod, readLease, stateOf } from '../../addressing/lease/lease.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { Cache } from '../../kube/informers/cache.js';
import type { Clock } from '../../kube/clock.js';
import type { ObjectChange, Informer } from '../../kube/informers/informer.js';
import { isNewer } from '../../api/meta.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { InformerRegistry, WatchSpec } from '../../kube/informers/informers.js';
import { type InterfaceRef, sandboxInterfaceKey } from './request.js';

/** The part of an Informer that is used here. */
type NodeLeaseInformer = Pick<Informer<AddressLease, LeaseRecord>, 'hasSynced' | 'synced' | 'onChange' | 'onList'> & {
  readonly cache: Pick<Informer<AddressLease, LeaseRecord>['cache'], 'get'>;
};

/** A write with an unknown result. */
interface UncertainWrite {
  /** Of the lease. */
  readonly leaseName: string;
  readonly target: InterfaceRef;
  /** In the clock's ms. */
  readonly since: number;
}

/** Called synchronously when leases of this node, or uncertain writes, change. */
export interface LeaseListener {
  /** A lease of the node has changed; undefined if it did not exist, or does not exist any more. */
  changed(before: LeaseRecord | undefined, after: LeaseRecord | undefined): void;
  /** A write may or may not have leased an address, until {@link resolved}. */
  uncertain(key: string, request: UncertainRequest): void;
  resolved(key: string): void;
}

/** The lease that may have been written. */
interface UncertainRequest {
  readonly pool: string;
  readonly address: Address;
}

/** Uncertain writes are few, and are resolved soon. */
const MAX_UNCERTAIN_WRITES = 1_024;

/** Finds what others have changed, as ipam, which deletes leases. */
export const RELIST_MS = 3_600_000;
/** Released leases that are kept to allocate them again. ipam deletes them, and only the next list or a write shows that. */
const MAX_RELEASED_LEASES = 1_024;

/**
 * The leases of this node, in any state. Nothing is watched, because the API server filters a watch by field for every change of any
 * lease: this agent makes nearly all changes itself. They come from the answers to its writes and reads, and from lists: at the start, once
 * more when no write of an earlier process can arrive any more, and about once an hour. Others may have changed a lease since, so a write
 * carries the version, and no answer is given without a live read.
 */
export class NodeLeases {
  readonly #informer: NodeLeaseInformer;
  readonly #nodeName: string;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #leases = new Cache<LeaseRecord>({
    pod: ({ owner }) => (owner?.kind === 'Pod' ? [owner.uid] : []),
    container: ({ containerID }) => (containerID === undefined ? [] : [containerID]),
    released: (lease) => (stateOf(lease) === 'released' ? [lease.pool] : []),
  });
  /** Writes with an unknown result. */
  readonly #uncertain = new Map<string, UncertainWrite>();
  /** Versions of leases that a release without an answer may still change, by name. */
  readonly #uncertainReleases = new Map<string, string>();
  #listener: LeaseListener | undefined;
  #held = 0;

  /** @param lateMs after this time, a write is applied or never will be */
  constructor(informers: Pick<InformerRegistry, 'get'>, nodeName: string, clock: Pick<Clock, 'now'>, lateMs: number) {
    this.#clock = clock;
    this.#nodeName = nodeName;
    // by the field, because the label only repeats it
    const watched: WatchSpec<AddressLease, LeaseRecord> = {
      resource: ADDRESS_LEASES,
      fieldSelector: nodeFieldSelector(nodeName),
      transform: readLease,
      // a pause may be half as long
      relistMs: [2 * lateMs, RELIST_MS],
    };
    this.#informer = informers.get(watched);
    this.#informer.onChange((change) => this.#observe(change));
    this.#informer.onList(
      ({ to }) =>
        () =>
          this.#forgetUnlisted(to),
    );
  }

  /** Sets the listener. Call it before the first lease is known. */
  setListener(listener: LeaseListener): void {
    this.#listener = listener;
  }

  /** Whether the first list has arrived. */
  get hasSynced(): boolean {
    return this.#informer.hasSynced;
  }

  synced(): Promise<void> {
    return this.#informer.synced();
  }

  /** Number of held leases. */
  get held(): number {
    return this.#held;
  }

  all(): readonly LeaseRecord[] {
    return this.#leases.list();
  }

  /** Returns the leases of a pod, by UID, in any state. */
  ofPod(uid: string): readonly LeaseRecord[] {
    return this.#leases.byIndex('pod', uid);
  }

  /** Returns the released leases of a pool in its address space. An earlier pool of that name may have been in another one. */
  releasedOf({ name, addressSpace }: Pick<Pool, 'name' | 'addressSpace'>): readonly LeaseRecord[] {
    return this.#leases.byIndex('released', name).filter((lease) => lease.addressSpace === addressSpace);
  }

  /** Returns the released leases of a pool that had this MAC address. */
  stickyFor(pool: Pick<Pool, 'name' | 'addressSpace'>, mac: string): readonly LeaseRecord[] {
    return this.releasedOf(pool).filter((lease) => lease.mac === mac);
  }

  /** Returns the leases that a pod holds on the interface. */
  heldAt(target: InterfaceRef): readonly LeaseRecord[] {
    return this.#leases.byIndex('container', target.containerId).filter((lease) => isHeldAt(lease, target));
  }

  /** Takes the answer to a write, or a lease that was read. */
  update(record: LeaseRecord): void {
    if (!this.#isNewVersion(record)) return;
    if (record.node === this.#nodeName) this.#set(record);
    else this.#delete(record.metadata.name);
  }

  get(name: string): LeaseRecord | undefined {
    return this.#leases.get(name);
  }

  /** Records that a lease does not exist. @param known its version before the read: a newer one stays */
  markGone(name: string, known: LeaseRecord | undefined): void {
    if (known !== undefined && this.#leases.get(name) === known) this.#delete(name);
  }

  /** Forgets the oldest released leases beyond the limit. If one still exists, a create of its address fails. */
  prune(): void {
    const released = this.all().filter((lease) => stateOf(lease) === 'released');
    released.sort((a, b) => coolingStart(a) - coolingStart(b));
    for (const { metadata } of released.slice(0, -MAX_RELEASED_LEASES)) this.#delete(metadata.name);
  }

  /** Records a write with an unknown result. Older versions of the lease do not resolve it. */
  addUncertain(request: UncertainRequest & { readonly name: string }, target: InterfaceRef): void {
    const key = uncertainWriteKey(request.name, target);
    const [oldest] = this.#uncertain.keys();
    if (this.#uncertain.size >= MAX_UNCERTAIN_WRITES && oldest !== undefined && !this.#uncertain.has(key))
      this.#resolve(oldest);
    this.#uncertain.set(key, { leaseName: request.name, target, since: this.#clock.now() });
    this.#listener?.uncertain(key, request);
  }

  /** Returns all writes with an unknown result. */
  uncertainWrites(): readonly UncertainWrite[] {
    return [...this.#uncertain.values()];
  }

  /** Returns the names of leases that uncertain writes may have given to the interface. */
  uncertainLeasesOf({ containerId, interfaceName }: InterfaceRef): readonly string[] {
    const about = [...this.#uncertain.values()].filter(
      ({ target }) => target.containerId === containerId && target.interfaceName === interfaceName,
    );
    return about.map(({ leaseName }) => leaseName);
  }

  /** Ends the uncertainty, after the lease was read. */
  resolve(name: string, target: InterfaceRef): void {
    this.#resolve(uncertainWriteKey(name, target));
  }

  /** Records a release with an unknown result. */
  addUncertainRelease({ metadata }: LeaseRecord): void {
    this.#uncertainReleases.set(metadata.name, metadata.resourceVersion);
  }

  /** Whether a release of this version of the lease may still arrive. */
  mayBeReleased({ metadata }: LeaseRecord): boolean {
    return this.#uncertainReleases.get(metadata.name) === metadata.resourceVersion;
  }

  #observe({ type, object }: ObjectChange<LeaseRecord>): void {
    // the end of the list removes it, unless a write of this agent is newer
    if (type !== 'removed' && this.#isNewVersion(object)) this.#set(object);
  }

  /** Removes leases that are deleted or on another node. A write that is newer than the list stays. */
  #forgetUnlisted(listVersion: string): void {
    for (const { metadata } of this.all()) {
      const isListed = this.#informer.cache.get(metadata.name) !== undefined;
      if (!isListed && !isNewer(metadata.resourceVersion, listVersion)) this.#delete(metadata.name);
    }
  }

  #resolve(key: string): void {
    if (this.#uncertain.delete(key)) this.#listener?.resolved(key);
  }

  #set(version: LeaseRecord): void {
    const known = this.#leases.get(version.metadata.name);
    const record = withCoolingStart(version, { known, hasSynced: this.hasSynced, now: this.#clock.now() });
    const before = this.#leases.set(record);
    if (!this.mayBeReleased(record)) this.#uncertainReleases.delete(record.metadata.name);
    this.#count(before, -1);
    this.#count(record, 1);
    this.#listener?.changed(before, record);
    const { containerID: containerId, interface: interfaceName } = record;
    if (containerId === undefined || interfaceName === undefined || stateOf(record) !== 'held') return;
    this.resolve(record.metadata.name, { containerId, interfaceName });
  }

  #delete(name: string): void {
    this.#uncertainReleases.delete(name);
    const before = this.#leases.delete(name);
    this.#count(before, -1);
    if (before !== undefined) this.#listener?.changed(before, undefined);
  }

  #count(record: LeaseRecord | undefined, by: 1 | -1): void {
    if (record !== undefined && stateOf(record) === 'held') this.#held += by;
  }

  #isNewVersion({ metadata: { name, resourceVersion } }: LeaseRecord): boolean {
    const known = this.#leases.get(name)?.metadata.resourceVersion;
    return known === undefined || isNewer(resourceVersion, known);
  }
}

function uncertainWriteKey(name: string, target: InterfaceRef): string {
  return `${name} ${sandboxInterfaceKey(target)}`;
}

/** Returns the field selector of leases and blocks of a node. */
export function nodeFieldSelector(nodeName: string): string {
  return `spec.node=${nodeName}`;
}

/** Whether a pod holds the lease on the interface. Leases of claims never match: only ipam may release those. */
export function isHeldAt(lease: LeaseRecord, { containerId, interfaceName }: InterfaceRef): boolean {
  return lease.containerID === containerId && lease.interface === interfaceName && isHeldByPod(lease);
}
