import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { joinKey, objectKey } from '../../../api/meta.js';
import { AllocationReason, IPS_ALLOCATED } from '../../../api/names.js';
import type { Cache } from '../../../kube/informers/cache.js';
import type { Clock } from '../../../kube/clock.js';
import type { ObjectChange } from '../../../kube/informers/informer.js';
import { forEachInSlices } from '../../../kube/run-in-slices.js';
import { type Address, sameAddress } from '../../../addressing/address/address.js';
import type { RestoreHold } from '../../../addressing/allocator/allocator.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { type LeaseRecord, stateOf } from '../../../addressing/lease/lease.js';
import { isLeasable } from '../../../addressing/pool/pool.js';
import type { LeaseBook, LeaseChange } from '../../leases/lease-book.js';
import { affectedClaims } from '../../../addressing/directory/affected.js';
import type { NetworkChanges, PoolDirectory } from '../../../addressing/directory/directory.js';
import type { ChangedNamespaces } from '../../../addressing/directory/network-entry.js';
import { readShownAddresses } from './claim-addresses.js';
import { resolveClaim } from './claim-resolution.js';
import { conditionOf } from '../../../cluster/claim-conditions.js';

interface RestoreHoldDependencies {
  claims: Pick<Cache<IPAMClaim>, 'get' | 'list' | 'byIndex'>;
  book: Pick<LeaseBook, 'ofClaim' | 'ofExactClaim' | 'addRestoreHold' | 'removeRestoreHold'>;
  directory: Pick<PoolDirectory, 'resolve'>;
  clock: Pick<Clock, 'now'>;
}

interface SpaceAddress {
  readonly addressSpace: string;
  readonly address: Address;
}

/** By the name that a lease of the address has. */
type AddressesByLease = ReadonlyMap<string, SpaceAddress>;
const NO_ADDRESSES: AddressesByLease = new Map();

/**
 * Holds on addresses that claims show without having a lease of them: restored claims, and claims whose lease was deleted. A VM may run with such an address, so
 * no other workload gets it before the claim has it back. If several claims show one address, each may try: the lease decides.
 *
 * Holds follow from the cached claims and leases. The caches may lag behind our own writes. Therefore a lost lease creates a hold whatever the status says, and a
 * hold ends only with its claim, or after a sync that left nothing to do.
 */
export class RestoreHolds {
  readonly #dependencies: RestoreHoldDependencies;
  readonly #ofClaim = new Map<string, Map<string, SpaceAddress>>();
  /** By lease name, then by the UID of the claim. */
  readonly #byName = new Map<string, Map<string, RestoreHold>>();
  /** Resolves when the holds for all changes until now were added; undefined before {@link prepare}. */
  #prepared: Promise<boolean> | undefined;
  /** Changes whose claims were not looked at yet. */
  readonly #changed = new Map<string, ChangedNamespaces>();
  readonly #stopping = new AbortController();

  constructor(dependencies: RestoreHoldDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Adds the holds of all claims, and from then on those that changes cause. Call it when the caches have synced, also in replicas that wait: with
   * many claims it takes seconds. Called again, it resolves when the holds for all changes until now are there: allocate nothing before.
   * @returns false if it was stopped before the end
   */
  prepare(): Promise<boolean> {
    return (this.#prepared ??= this.#addHoldsOf(this.#dependencies.claims.list()));
  }

  /**
   * Call it when this process becomes the leader, and sync no claim before it resolves: until then, holds are missing. It removes those that the former leader has
   * made needless, which only a sync tells.
   * @returns false if the signal aborts before the end
   */
  async start(signal?: AbortSignal): Promise<boolean> {
    if (!(await this.prepare())) return false;
    return forEachInSlices([...this.#ofClaim.keys()], (uid) => this.#recheck(uid), this.#dependencies.clock, signal);
  }

  /** Ends {@link prepare}. Call it when the process stops. */
  stop(): void {
    this.#stopping.abort();
  }

  onClaimChange({ type, object, before }: ObjectChange<IPAMClaim>): void {
    if (this.#prepared === undefined) return;
    const { uid = '' } = object.metadata;
    const { uid: former = uid } = before?.metadata ?? {};
    if (former !== uid) this.#removeHolds(former);
    if (type === 'removed') this.#removeHolds(uid);
    else this.#addHolds(object, this.#lackedAddresses(object));
  }

  onLeaseChange({ before, after }: LeaseChange): void {
    if (this.#prepared === undefined) return;
    const had = holderOf(before);
    const has = holderOf(after);
    if (after !== undefined && has !== undefined) this.#removeHold(has.uid, after.metadata.name);
    if (before === undefined || had === undefined || had.uid === has?.uid) return;
    const claim = this.#dependencies.claims.get(joinKey(had.namespace, had.name));
    if (claim?.metadata.uid === had.uid) this.#addHolds(claim, new Map([[before.metadata.name, before]]), false);
  }

  /** Pools and NADs have changed: more claims may be served now. A network may have all claims of a cluster. */
  onNetworksChange(changes: NetworkChanges): void {
    if (this.#prepared === undefined) return;
    if (this.#changed.size === 0)
      this.#prepared = this.#prepared.then((areAdded) => areAdded && this.#addHoldsOfChanges());
    for (const [network, namespaces] of changes) {
      const known = this.#changed.has(network) ? this.#changed.get(network) : new Set<string>();
      this.#changed.set(network, known && namespaces && new Set([...known, ...namespaces]));
    }
  }

  /**
   * Call it after a sync that left nothing to do.
   * @param claim the newest version that the sync knows
   */
  onSynced(claim: IPAMClaim): void {
    if (this.#prepared === undefined) return;
    const { uid = '' } = claim.metadata;
    const lacked = this.#lackedAddresses(claim);
    const heldNames = [...(this.#ofClaim.get(uid)?.keys() ?? [])];
    // without a pool, the claim can neither get its addresses back nor lose them
    const isServed = heldNames.length > 0 && resolveClaim(claim, this.#dependencies).kind !== 'unserved';
    if (isServed) for (const name of heldNames) if (!lacked.has(name)) this.#removeHold(uid, name);
    this.#addHolds(claim, lacked);
  }

  /** Returns a hold that takes precedence over the claim. A claim that shows the address as well yields only if it was refused and the other was not. */
  holdAgainst(claim: IPAMClaim, addressSpace: string, address: Address): RestoreHold | undefined {
    const holds = this.#byName.get(leaseName(addressSpace, address));
    if (holds === undefined) return undefined;
    const { uid = '' } = claim.metadata;
    const shows = readShownAddresses(claim).addresses.some((shown) => sameAddress(shown, address));
    const own = holds.get(uid) ?? (shows ? restoreHoldOf(claim) : undefined);
    for (const [other, hold] of holds) {
      if (other !== uid && (own === undefined || (own.wasRefused && !hold.wasRefused))) return hold;
    }
    return undefined;
  }

  #addHoldsOfChanges(): Promise<boolean> {
    const claims = affectedClaims(this.#changed, this.#dependencies.claims);
    this.#changed.clear();
    return this.#addHoldsOf(claims);
  }

  /** @returns false if it was stopped before the end */
  #addHoldsOf(listed: Iterable<IPAMClaim>): Promise<boolean> {
    const { claims, clock } = this.#dependencies;
    const addHolds = (each: IPAMClaim) => {
      // it may have changed or gone meanwhile
      const claim = claims.get(objectKey(each));
      if (claim !== undefined) this.#addHolds(claim, this.#lackedAddresses(claim));
    };
    return forEachInSlices(listed, addHolds, clock, this.#stopping.signal);
  }

  #recheck(uid: string): void {
    const [name = ''] = this.#ofClaim.get(uid)?.keys() ?? [];
    const hold = this.#byName.get(name)?.get(uid);
    const claim = hold && this.#dependencies.claims.get(joinKey(hold.namespace, hold.name));
    if (claim === undefined) return;
    const lacked = this.#lackedAddresses(claim);
    for (const held of [...(this.#ofClaim.get(uid)?.keys() ?? [])]) if (!lacked.has(held)) this.#removeHold(uid, held);
  }

  #lackedAddresses(claim: IPAMClaim): AddressesByLease {
    const { book } = this.#dependencies;
    const { addresses } = readShownAddresses(claim);
    if (addresses.length === 0) return NO_ADDRESSES;
    const resolution = resolveClaim(claim, this.#dependencies);
    if (resolution.kind !== 'served') return NO_ADDRESSES;
    const { pool } = resolution;
    const { addressSpace } = pool;
    // a lease in the address space of an earlier pool does not protect the address in this one
    const held = book
      .ofExactClaim(claim)
      .filter((lease) => stateOf(lease) === 'held' && lease.addressSpace === addressSpace);
    const lacked = addresses.filter((shown) => !held.some(({ address }) => sameAddress(address, shown)));
    const leasable = lacked.filter((address) => isLeasable(pool, address));
    return new Map(leasable.map((address) => [leaseName(addressSpace, address), { addressSpace, address }]));
  }

  /** @param isRefused default: as the claim says */
  #addHolds(claim: IPAMClaim, addresses: AddressesByLease, isRefused?: boolean): void {
    if (addresses.size === 0) return;
    const { uid = '' } = claim.metadata;
    const hold = restoreHoldOf(claim, isRefused);
    const known = this.#ofClaim.get(uid) ?? new Map<string, SpaceAddress>();
    this.#ofClaim.set(uid, known);
    for (const [name, { addressSpace, address }] of addresses) {
      known.set(name, { addressSpace, address });
      const holds = this.#byName.get(name) ?? new Map<string, RestoreHold>();
      this.#byName.set(name, holds.set(uid, hold));
      this.#dependencies.book.addRestoreHold(addressSpace, address);
    }
  }

  #removeHolds(uid: string): void {
    for (const name of [...(this.#ofClaim.get(uid)?.keys() ?? [])]) this.#removeHold(uid, name);
  }

  /** Waiting claims are notified, even if other claims still show the address. */
  #removeHold(uid: string, name: string): void {
    const addresses = this.#ofClaim.get(uid);
    const lost = addresses?.get(name);
    if (addresses === undefined || lost === undefined) return;
    addresses.delete(name);
    if (addresses.size === 0) this.#ofClaim.delete(uid);
    const { book } = this.#dependencies;
    const holds = this.#byName.get(name);
    holds?.delete(uid);
    const isLeft = holds !== undefined && holds.size > 0;
    if (!isLeft) this.#byName.delete(name);
    book.removeRestoreHold(lost.addressSpace, lost.address);
    if (isLeft) book.addRestoreHold(lost.addressSpace, lost.address);
  }
}

function restoreHoldOf(claim: IPAMClaim, isRefused = wasRefused(claim)): RestoreHold {
  const { namespace = '', name } = claim.metadata;
  return { namespace, name, wasRefused: isRefused };
}

/** The claim was refused because another owner had the address. */
function wasRefused(claim: IPAMClaim): boolean {
  const allocated = conditionOf(claim, IPS_ALLOCATED);
  return allocated?.status === 'False' && allocated.reason === AllocationReason.Conflict;
}

function holderOf(lease: LeaseRecord | undefined) {
  if (lease === undefined || stateOf(lease) !== 'held') return undefined;
  return lease.owner?.kind === 'IPAMClaim' ? lease.owner : undefined;
}
