import type { AddressLease, LeaseWrite } from '../../../api/address-lease.js';
import { labelValue } from '../../../api/ipam-claim.js';
import { LEASE_OWNER_UID } from '../../../api/names.js';
import {
  type LeaseRecord,
  type LeaseRequest,
  createLease,
  isReservation,
  readLease,
  reallocateLease,
  releaseLease,
  updateLeaseUsage,
} from '../../../addressing/lease/lease.js';
import { releaseTime } from '../../../addressing/lease/cooling-start.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { findUnlessGone } from '../../../kube/absence.js';
import type { CallOptions, Client, ListOptions } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import { isAborted, isAlreadyExists, isConflict, isNotFound, mayHaveActed } from '../../../kube/errors.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import { type LeaseClient, writeLease } from '../../../cluster/lease-writes.js';
import type { LentBlocks } from '../blocks/lent-blocks.js';
import type { PodLeaseMetrics, WriteKind } from '../metrics.js';
import { type NodeLeases, isHeldAt } from '../node-leases.js';
import type { InterfaceRef } from '../request.js';

/** The content of a lease for a pod on this node. */
export interface PodLeaseRequest extends LeaseRequest {
  readonly containerID: string;
  readonly interface: string;
}

interface LeaseWriterDeps {
  readonly client: LeaseClient & Pick<Client, 'get'>;
  readonly own: NodeLeases;
  /** Tracks the addresses of writes under way; absent if the feature gate NodeBlocks is off. */
  readonly uses?: Pick<LentBlocks, 'addUse' | 'removeUse'> | undefined;
  readonly clock: Pick<Clock, 'now' | 'wall' | 'sleep'>;
  readonly metrics: PodLeaseMetrics;
}

/** Attempts of a write that got no answer and was not applied. */
const WRITE_ATTEMPTS = 3;
const RETRY_MS = 50;
/** Attempts to release a lease that other writers change. */
const RELEASE_ATTEMPTS = 5;

/** `lost`: another owner was faster; `deleted`: the lease that was to be changed does not exist. */
type Written = LeaseRecord | 'lost' | 'deleted';

/** Writes leases of pods of this node. If a write gets no answer, the lease is read to learn whether it was applied. */
export class LeaseWriter {
  readonly #deps: LeaseWriterDeps;
  #writes = 0;

  constructor(deps: LeaseWriterDeps) {
    this.#deps = deps;
  }

  /**
   * Creates a lease.
   * @returns undefined if another owner was faster
   * @throws {Error} if the write failed, or its result is unknown: it is recorded as uncertain then
   */
  async create(request: PodLeaseRequest, call: CallOptions): Promise<LeaseRecord | undefined> {
    return leaseOf(await this.#write('create', request, createLease(request), call));
  }

  /** Reads live whether the address has a lease. */
  async isLeased(request: PodLeaseRequest, call: CallOptions): Promise<boolean> {
    return (await this.read(leaseNameOf(request), call)) !== undefined;
  }

  /** Allocates a released lease as {@link create} does, which follows if ipam has deleted it. @param lease one that the request may have */
  async reallocate(lease: LeaseRecord, request: PodLeaseRequest, call: CallOptions): Promise<LeaseRecord | undefined> {
    const { own } = this.#deps;
    const known = own.get(lease.metadata.name);
    const written = await this.#write('take', request, reallocateLease(lease, request), call);
    if (typeof written !== 'string') return written;
    // otherwise it would be tried again until the next list
    if (known?.metadata.resourceVersion === lease.metadata.resourceVersion) own.markGone(lease.metadata.name, known);
    return written === 'deleted' && !isReservation(lease) ? this.create(request, call) : undefined;
  }

  /** Moves a lease to the pod's new sandbox, as {@link create}. @param lease held by the same pod */
  async move(lease: LeaseRecord, request: PodLeaseRequest, call: CallOptions): Promise<LeaseRecord | undefined> {
    return leaseOf(await this.#write('move', request, updateLeaseUsage(lease, request), call));
  }

  /** Reads a lease live. @returns undefined if it does not exist or is invalid */
  async read(name: string, call: CallOptions): Promise<LeaseRecord | undefined> {
    const { client, own } = this.#deps;
    const known = own.get(name);
    const found = await findUnlessGone(client, ADDRESS_LEASES, { name }, call);
    const record = found && tryReadLease(found);
    if (record === undefined) own.markGone(name, known);
    else own.update(record);
    const updated = own.get(name);
    return updated?.metadata.resourceVersion === record?.metadata.resourceVersion ? updated : record;
  }

  /**
   * Reads the leases of the interface whose writes got no answer. One that the interface holds is certain then. Another write may still
   * arrive, so it stays uncertain until the sweep.
   */
  async readUncertain(target: InterfaceRef, call: CallOptions): Promise<void> {
    for (const name of this.#deps.own.uncertainLeasesOf(target)) await this.read(name, call);
  }

  /**
   * Releases a held lease, with retries if another writer changes it first.
   * @param still whether to release the lease in its current version
   * @returns whether this call has released it
   */
  async release(lease: LeaseRecord, still: (lease: LeaseRecord) => boolean, call: CallOptions): Promise<boolean> {
    const { client, own, clock, metrics } = this.#deps;
    let current: LeaseRecord | undefined = lease;
    for (let attempt = 1; current !== undefined && still(current); attempt++) {
      try {
        const written = await writeLease(client, releaseLease(current, releaseTime(clock)), call);
        if (written !== undefined) own.update(readLease(written));
        metrics.wrote('release', 'done');
        return true;
      } catch (error) {
        if (mayStillAct(error)) own.addUncertainRelease(current);
        const isStale = isConflict(error) || isNotFound(error);
        metrics.wrote('release', isStale ? 'lost' : 'failed');
        if (!isStale || attempt === RELEASE_ATTEMPTS) throw error;
        current = await this.read(lease.metadata.name, call);
      }
    }
    return false;
  }

  /** Writes the lease. Its address counts as used until the result is known or recorded as uncertain. */
  async #write(kind: WriteKind, request: PodLeaseRequest, write: LeaseWrite, call: CallOptions): Promise<Written> {
    const { uses } = this.#deps;
    const by = `write ${++this.#writes}`;
    uses?.addUse(by, request);
    try {
      return await this.#tryToWrite(kind, request, write, call);
    } finally {
      uses?.removeUse(by);
    }
  }

  async #tryToWrite(kind: WriteKind, request: PodLeaseRequest, write: LeaseWrite, call: CallOptions): Promise<Written> {
    const { client, own, clock, metrics } = this.#deps;
    for (let attempt = 1; ; attempt++) {
      try {
        const written = await writeLease(client, write, call);
        if (written === undefined) throw new TypeError(`${kind} returned no lease`);
        const lease = readLease(written);
        own.update(lease);
        metrics.wrote(kind, 'done');
        return lease;
      } catch (error) {
        const isLost = isLostRace(kind, error);
        metrics.wrote(kind, isLost ? 'lost' : 'failed');
        // after an attempt without an answer, the conflicting lease may be our own
        if (isLost && attempt === 1) return isNotFound(error) ? 'deleted' : 'lost';
        const found = isLost ? await this.#readResult(request, call) : await this.#recheck(error, request, call);
        if (found !== undefined) return found;
        if (isLost) return 'lost';
        if (attempt === WRITE_ATTEMPTS) throw error;
        await clock.sleep(RETRY_MS * attempt, call.signal);
      }
    }
  }

  /** Reads the lease after a failed write. @throws the same error if nothing was written, or there is no time to check */
  async #recheck(error: unknown, request: PodLeaseRequest, call: CallOptions): Promise<Written | undefined> {
    if (!mayStillAct(error)) throw error;
    this.#deps.own.addUncertain({ ...request, name: leaseNameOf(request) }, interfaceOfRequest(request));
    if (isAborted(error)) throw error;
    return this.#readResult(request, call);
  }

  /** Reads the lease. @returns undefined if the write was not applied and may be repeated */
  async #readResult(request: PodLeaseRequest, call: CallOptions): Promise<Written | undefined> {
    const found = await this.read(leaseNameOf(request), call);
    if (found === undefined) return undefined;
    const isOurs = found.owner?.uid === request.owner.uid && isHeldAt(found, interfaceOfRequest(request));
    return isOurs ? found : 'lost';
  }
}

function leaseOf(written: Written): LeaseRecord | undefined {
  return typeof written === 'string' ? undefined : written;
}

function interfaceOfRequest({ containerID, interface: interfaceName }: PodLeaseRequest): InterfaceRef {
  return { containerId: containerID, interfaceName };
}

function leaseNameOf({ addressSpace, address }: PodLeaseRequest): string {
  return leaseName(addressSpace, address);
}

/** Whether the write may have been applied, or may still be. */
function mayStillAct(error: unknown): boolean {
  return isAborted(error) || mayHaveActed(error);
}

function isLostRace(kind: WriteKind, error: unknown): boolean {
  return isAlreadyExists(error) || isConflict(error) || (kind !== 'create' && isNotFound(error));
}

/** Parses a lease. @returns undefined if the object is not a valid lease */
export function tryReadLease(lease: AddressLease): LeaseRecord | undefined {
  try {
    return readLease(lease);
  } catch {
    return undefined;
  }
}

/** Lists the leases of an owner, as {@link listCachedLeases} does. */
export function listLeasesOfOwner(
  client: Pick<Client, 'listAs'>,
  uid: string,
  call: { readonly signal?: AbortSignal } = {},
): Promise<readonly LeaseRecord[]> {
  return listCachedLeases(client, { labelSelector: `${LEASE_OWNER_UID}=${labelValue(uid)}` }, call);
}

/** Lists the leases that a selector chooses, without invalid ones, from the API server's cache: it may be stale, because writes decide. */
export async function listCachedLeases(
  client: Pick<Client, 'listAs'>,
  selector: Partial<Pick<ListOptions, 'labelSelector' | 'fieldSelector'>>,
  { signal }: { readonly signal?: AbortSignal },
): Promise<readonly LeaseRecord[]> {
  const options = { ...selector, resourceVersion: '0', signal };
  const { items } = await client.listAs(ADDRESS_LEASES, tryReadLease, options);
  return items.filter((lease) => lease !== undefined);
}
