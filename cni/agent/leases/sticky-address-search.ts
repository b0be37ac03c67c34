import type { LeaseOwner } from '../../../api/address-lease.js';
import type { Address, Family } from '../../../ipam/core/address.js';
import {
  type LeaseRecord,
  type LeaseTimes,
  type Availability,
  byPreferenceOf,
  isSticky,
  isReservation,
  availabilityOf,
  stateOf,
} from '../../../ipam/core/lease.js';
import { type Pool, subnetOf } from '../../../ipam/core/pool.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import { isNewer } from '../../../kube/resource-version.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import type { RequestContext } from '../request-context.js';
import { type LeaseWriter, type PodLeaseRequest, type LeaseWriteResult, tryReadLease } from './lease-writer.js';
import type { PodLeaseMetrics } from './metrics.js';
import type { NodeLeases } from '../node-leases.js';
import { reservationTakenError } from './allocation-errors.js';
import type { SpaceCandidates } from './space-candidates.js';

export interface StickyAddressSearchDeps {
  readonly own: NodeLeases;
  readonly writer: LeaseWriter;
  readonly client: Pick<Client, 'listAs'>;
  readonly clock: Pick<Clock, 'wall'>;
  readonly metrics: PodLeaseMetrics;
}

/** For whom it is looked, and where. */
export interface StickyAddressRequest {
  readonly pool: Pool;
  /** That the pod asks for: lower case, with colons. */
  readonly mac: string;
  readonly candidates: SpaceCandidates;
  readonly times: LeaseTimes;
  readonly owner: LeaseOwner;
  readonly requestFor: (address: Address) => PodLeaseRequest;
  readonly call: RequestContext;
}

/** What others do to the very lease that is wanted is met so often. */
const MAX_CONFLICTS = 3;

/**
 * The addresses that are kept for the MAC address of a pod: it had them, or an admin reserved them, in a pool that is sticky or not. Caches choose,
 * writes decide; where nobody follows the leases of the space, the API server's cache is asked once, by the MAC address itself.
 */
export class StickyAddressSearch {
  readonly #deps: StickyAddressSearchDeps;
  readonly #search: StickyAddressRequest;
  /** Of all families. */
  #listed: Promise<readonly LeaseRecord[]> | undefined;

  constructor(deps: StickyAddressSearchDeps, search: StickyAddressRequest) {
    this.#deps = deps;
    this.#search = search;
  }

  /**
   * @returns undefined where none is kept, or somebody else was faster: any will do then
   * @throws {CniError} where the static table has one for it, and somebody else does
   * @throws {Error} where the API server cannot be asked
   */
  async lease(family: Family): Promise<LeaseRecord | undefined> {
    const { candidates } = this.#search;
    for (const kept of await this.#keptOf(family)) {
      if (!candidates.try(kept.address)) {
        if (isReservation(kept)) throw reservationTakenError(kept, undefined, this.#search);
        continue;
      }
      let isTaken = false;
      try {
        const lease = await this.#take(kept);
        isTaken = true;
        if (lease === undefined) continue;
        this.#deps.metrics.picked('kept');
        return lease;
      } finally {
        candidates.settle(kept.address, isTaken);
      }
    }
    return undefined;
  }

  async #take(kept: LeaseRecord): Promise<LeaseRecord | undefined> {
    const { writer } = this.#deps;
    const { requestFor, call } = this.#search;
    let lease: LeaseRecord | undefined = kept;
    for (let race = 0; race < MAX_CONFLICTS && lease !== undefined && this.#isFor(lease); race++) {
      const answer = this.#answerOf(lease);
      if (answer === true) {
        const written: LeaseWriteResult = await writer.reallocate(lease, requestFor(lease.address), call);
        if (written.kind === 'ours') return written.lease;
        // what caches say is no reason to refuse
      } else if (race > 0) throw reservationTakenError(lease, answer, this.#search);
      lease = await writer.read(kept.metadata.name, call);
    }
    if (lease !== undefined && isReservation(lease) && this.#isFor(lease))
      throw reservationTakenError(lease, undefined, this.#search);
    return undefined;
  }

  /** Those that it may have now, and those of the static table, the best first. */
  async #keptOf(family: Family): Promise<LeaseRecord[]> {
    const { own } = this.#deps;
    const { pool, mac, candidates } = this.#search;
    const known = [...candidates.stickyFor(pool, mac), ...own.stickyFor(pool, mac)];
    const here = this.#fitting(known, family);
    // what the node has released itself says nothing of the static table
    if (candidates.hasSynced || here.some(isReservation)) return here;
    this.#listed ??= this.#list();
    return this.#fitting([...(await this.#listed), ...known], family);
  }

  #fitting(leases: Iterable<LeaseRecord>, family: Family): LeaseRecord[] {
    const newest = [...newestVersionsOf(leases)];
    const fitting = newest.filter((lease) => lease.address.family === family && this.#isFor(lease));
    return fitting.sort(byPreferenceOf(this.#search.owner));
  }

  #isFor(lease: LeaseRecord): boolean {
    const { pool, mac, times } = this.#search;
    const { address, addressSpace, metadata } = lease;
    // a reservation may name another address space, and a pool of this name may have been in one
    if (lease.pool !== pool.name || addressSpace !== pool.addressSpace) return false;
    // the pool may have been narrowed since
    if (subnetOf(pool, address)?.requestable.has(address.value) !== true) return false;
    if (isReservation(lease)) return lease.mac === mac && metadata.deletionTimestamp === undefined;
    return stateOf(lease) !== 'held' && isSticky(lease, times) && this.#answerOf(lease) === true;
  }

  #answerOf(lease: LeaseRecord): Availability {
    const { requestFor, times } = this.#search;
    return availabilityOf(lease, requestFor(lease.address), times, this.#deps.clock.wall());
  }

  async #list(): Promise<readonly LeaseRecord[]> {
    const { pool, mac, call } = this.#search;
    const fieldSelector = `spec.mac=${mac},spec.pool=${pool.name},spec.addressSpace=${pool.addressSpace}`;
    // from the API server's cache, however old: the write decides
    const options = { fieldSelector, resourceVersion: '0', signal: call.signal };
    const { items } = await this.#deps.client.listAs(ADDRESS_LEASES, tryReadLease, options);
    return items.filter((lease) => lease !== undefined);
  }
}

/** Each lease once, as it was last. */
function newestVersionsOf(leases: Iterable<LeaseRecord>): Iterable<LeaseRecord> {
  const found = new Map<string, LeaseRecord>();
  for (const lease of leases) {
    const { name, resourceVersion } = lease.metadata;
    const known = found.get(name)?.metadata.resourceVersion;
    if (known === undefined || isNewer(resourceVersion, known)) found.set(name, lease);
  }
  return found.values();
}
