import type { Family } from '../../../addressing/address/address.js';
import {
  type Availability,
  type LeaseRecord,
  availabilityOf,
  isReservation,
  isSticky,
  stateOf,
} from '../../../addressing/lease/lease.js';
import { byPreferenceOf } from '../../../addressing/lease/lease-record.js';
import { subnetOf } from '../../../addressing/pool/pool.js';
import { isNewer } from '../../../api/meta.js';
import { listCachedLeases } from './lease-writer.js';
import type { AddressSearchRequest, AddressSearchDeps } from './free-address-search.js';
import { reservationTakenError } from './allocation-errors.js';

/** With the MAC address of the pod: lower case, with colons. */
type StickyRequest = AddressSearchRequest & { readonly mac: string };

/** How often to retry when another writer changes the lease first. */
const MAX_CONFLICTS = 3;

/**
 * Leases the addresses that are sticky or reserved for the MAC address of a pod. Reservations count in pools that are not sticky, too.
 * Caches choose candidates, writes decide. If the leases of the address space are not watched, they are listed once by MAC address from
 * the API server's cache.
 */
export class StickyAddressSearch {
  readonly #deps: AddressSearchDeps;
  readonly #search: StickyRequest;
  /** Leases of both families. */
  #listed: Promise<readonly LeaseRecord[]> | undefined;

  constructor(deps: AddressSearchDeps, search: StickyRequest) {
    this.#deps = deps;
    this.#search = search;
  }

  /**
   * Leases the address of a family. Waits for a reserved address; never substitutes another one.
   * @returns undefined if there is none, or another owner was faster: the pod may get any address then
   * @throws {CniError} if an address is reserved for the MAC address, but another owner holds it
   * @throws {Error} if a request to the API server failed
   */
  async lease(family: Family): Promise<LeaseRecord | undefined> {
    const { candidates } = this.#search;
    for (const kept of await this.#stickyLeases(family)) {
      // another pod may be trying the address: it loses, because it has another MAC address, or the write decides
      const isAttempt = candidates.try(kept.address);
      let isTaken = false;
      try {
        const lease = await this.#allocate(kept);
        isTaken = true;
        if (lease === undefined) continue;
        this.#deps.metrics.picked('kept');
        return lease;
      } finally {
        if (isAttempt) candidates.settle(kept.address, isTaken);
      }
    }
    return undefined;
  }

  async #allocate(kept: LeaseRecord): Promise<LeaseRecord | undefined> {
    const { writer } = this.#deps;
    const { requestFor, call } = this.#search;
    let lease: LeaseRecord | undefined = kept;
    for (let race = 0; race < MAX_CONFLICTS && lease !== undefined && this.#isMatching(lease); race++) {
      const answer = this.#availabilityOf(lease);
      if (answer === true) {
        const written: LeaseRecord | undefined = await writer.reallocate(lease, requestFor(lease.address), call);
        if (written !== undefined) return written;
        // never refuse by cached leases: the first round continues with a live read
      } else if (race > 0) throw reservationTakenError(lease, answer, this.#search);
      lease = await writer.read(kept.metadata.name, call);
    }
    if (lease !== undefined && isReservation(lease) && this.#isMatching(lease))
      throw reservationTakenError(lease, undefined, this.#search);
    return undefined;
  }

  /** Returns the leases that may be allocated now, and reservations, in order of preference. */
  async #stickyLeases(family: Family): Promise<LeaseRecord[]> {
    const { own } = this.#deps;
    const { pool, mac, candidates } = this.#search;
    const known = [...candidates.stickyFor(pool, mac), ...own.stickyFor(pool, mac)];
    const here = this.#matching(known, family);
    // leases released by this node do not show whether there is a reservation
    if (candidates.hasSynced || here.some(isReservation)) return here;
    this.#listed ??= this.#list();
    return this.#matching([...known, ...(await this.#listed)], family);
  }

  #matching(leases: Iterable<LeaseRecord>, family: Family): LeaseRecord[] {
    const newest = [...newestVersionsOf(leases)];
    const fitting = newest.filter((lease) => lease.address.family === family && this.#isMatching(lease));
    return fitting.sort(byPreferenceOf(this.#search.owner));
  }

  #isMatching(lease: LeaseRecord): boolean {
    const { pool, mac, times } = this.#search;
    const { address, addressSpace, metadata } = lease;
    // a reservation may be in another address space, and an earlier pool of this name may have been, too
    if (lease.pool !== pool.name || addressSpace !== pool.addressSpace) return false;
    // the pool may have lost the address since
    if (subnetOf(pool, address)?.requestable.has(address.value) !== true) return false;
    if (isReservation(lease)) return lease.mac === mac && metadata.deletionTimestamp === undefined;
    return stateOf(lease) !== 'held' && isSticky(lease, times) && this.#availabilityOf(lease) === true;
  }

  #availabilityOf(lease: LeaseRecord): Availability {
    const { candidates, requestFor, times } = this.#search;
    const known = candidates.withCoolingStart(lease);
    return availabilityOf(known, requestFor(lease.address), times, this.#deps.clock.now());
  }

  #list(): Promise<readonly LeaseRecord[]> {
    const { pool, mac, call } = this.#search;
    const fieldSelector = `spec.mac=${mac},spec.pool=${pool.name},spec.addressSpace=${pool.addressSpace}`;
    return listCachedLeases(this.#deps.client, { fieldSelector }, call);
  }
}

/** Returns the newest version of each lease; of equal ones the first. */
function newestVersionsOf(leases: Iterable<LeaseRecord>): Iterable<LeaseRecord> {
  const found = new Map<string, LeaseRecord>();
  for (const lease of leases) {
    const { name, resourceVersion } = lease.metadata;
    const known = found.get(name)?.metadata.resourceVersion;
    if (known === undefined || isNewer(resourceVersion, known)) found.set(name, lease);
  }
  return found.values();
}
