import type { LeaseOwner } from '../../../api/address-lease.js';
import type { Address, Family } from '../../../ipam/core/address.js';
import {
  type LeaseRecord,
  type LeaseTimes,
  type Takeability,
  byPreferenceOf,
  isKept,
  isOfTable,
  mayTake,
  stateOf,
} from '../../../ipam/core/lease.js';
import { type Pool, subnetOf } from '../../../ipam/core/pool.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import { isNewer } from '../../../kube/resource-version.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import type { Call } from '../call.js';
import { type LeaseWriter, type PodRequest, type Written, readable } from './lease-writer.js';
import type { PodLeaseMetrics } from './metrics.js';
import type { OwnLeases } from '../own-leases.js';
import { tableTaken } from './refusals.js';
import type { SpaceCandidates } from './space-candidates.js';

export interface KeptAddressDeps {
  readonly own: OwnLeases;
  readonly writer: LeaseWriter;
  readonly client: Pick<Client, 'listAs'>;
  readonly clock: Pick<Clock, 'wall'>;
  readonly metrics: PodLeaseMetrics;
}

/** For whom it is looked, and where. */
export interface KeptSearch {
  readonly pool: Pool;
  /** That the pod asks for: lower case, with colons. */
  readonly mac: string;
  readonly candidates: SpaceCandidates;
  readonly times: LeaseTimes;
  readonly owner: LeaseOwner;
  readonly requestFor: (address: Address) => PodRequest;
  readonly call: Call;
}

/** What others do to the very lease that is wanted is met so often. */
const RACES = 3;

/**
 * The addresses that are kept for the MAC address of a pod: it had them, or an admin reserved them, in a pool that is sticky or not. Caches choose,
 * writes decide; where nobody follows the leases of the space, the API server's cache is asked once, by the MAC address itself.
 */
export class KeptAddress {
  readonly #deps: KeptAddressDeps;
  readonly #search: KeptSearch;
  /** Of all families. */
  #listed: Promise<readonly LeaseRecord[]> | undefined;

  constructor(deps: KeptAddressDeps, search: KeptSearch) {
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
        if (isOfTable(kept)) throw tableTaken(kept, undefined, this.#search);
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
    for (let race = 0; race < RACES && lease !== undefined && this.#isFor(lease); race++) {
      const answer = this.#answerOf(lease);
      if (answer === true) {
        const written: Written = await writer.take(lease, requestFor(lease.address), call);
        if (written.kind === 'ours') return written.lease;
        // what caches say is no reason to refuse
      } else if (race > 0) throw tableTaken(lease, answer, this.#search);
      lease = await writer.read(kept.metadata.name, call);
    }
    if (lease !== undefined && isOfTable(lease) && this.#isFor(lease)) throw tableTaken(lease, undefined, this.#search);
    return undefined;
  }

  /** Those that it may have now, and those of the static table, the best first. */
  async #keptOf(family: Family): Promise<LeaseRecord[]> {
    const { own } = this.#deps;
    const { pool, mac, candidates } = this.#search;
    const known = [...candidates.keptFor(pool, mac), ...own.keptFor(pool, mac)];
    const here = this.#fitting(known, family);
    // what the node has released itself says nothing of the static table
    if (candidates.hasSynced || here.some(isOfTable)) return here;
    this.#listed ??= this.#list();
    return this.#fitting([...(await this.#listed), ...known], family);
  }

  #fitting(leases: Iterable<LeaseRecord>, family: Family): LeaseRecord[] {
    const newest = [...newestOf(leases)];
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
    if (isOfTable(lease)) return lease.mac === mac && metadata.deletionTimestamp === undefined;
    return stateOf(lease) !== 'held' && isKept(lease, times) && this.#answerOf(lease) === true;
  }

  #answerOf(lease: LeaseRecord): Takeability {
    const { requestFor, times } = this.#search;
    return mayTake(lease, requestFor(lease.address), times, this.#deps.clock.wall());
  }

  async #list(): Promise<readonly LeaseRecord[]> {
    const { pool, mac, call } = this.#search;
    const fieldSelector = `spec.mac=${mac},spec.pool=${pool.name},spec.addressSpace=${pool.addressSpace}`;
    // from the API server's cache, however old: the write decides
    const options = { fieldSelector, resourceVersion: '0', signal: call.signal };
    const { items } = await this.#deps.client.listAs(ADDRESS_LEASES, readable, options);
    return items.filter((lease) => lease !== undefined);
  }
}

/** Each lease once, as it was last. */
function newestOf(leases: Iterable<LeaseRecord>): Iterable<LeaseRecord> {
  const found = new Map<string, LeaseRecord>();
  for (const lease of leases) {
    const { name, resourceVersion } = lease.metadata;
    const known = found.get(name)?.metadata.resourceVersion;
    if (known === undefined || isNewer(resourceVersion, known)) found.set(name, lease);
  }
  return found.values();
}
