import type { AddressLease } from '../../../api/address-lease.js';
import {
  type LeaseRecord,
  type LeaseRequest,
  type LeaseWrite,
  createLease,
  updateLeaseUsage,
  readLease,
  releaseLease,
  reallocateLease,
} from '../../../ipam/core/lease.js';
import { leaseName } from '../../../ipam/core/lease-name.js';
import { findUnlessGone } from '../../../kube/absence.js';
import type { CallOptions, Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import { TransportError, isAlreadyExists, isConflict, isNotFound } from '../../../kube/errors.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import { type LeaseClient, writeLease } from '../../../cluster/lease-writes.js';
import { mayHaveActed } from '../../../kube/errors.js';
import type { LentBlocks } from '../blocks/lent-blocks.js';
import type { PodLeaseMetrics, WriteKind } from './metrics.js';
import { type NodeLeases, type SandboxInterface, isHeldAt } from '../node-leases.js';

/** Of a write that gives somebody an address: he has it; or somebody else was faster. */
export type LeaseWriteResult = { readonly kind: 'ours'; readonly lease: LeaseRecord } | { readonly kind: 'lost' };

/** What a lease of a pod on this node says. */
export interface PodLeaseRequest extends LeaseRequest {
  readonly containerID: string;
  readonly interface: string;
}

export interface LeaseWriterDeps {
  readonly client: LeaseClient & Pick<Client, 'get'>;
  readonly own: NodeLeases;
  /** Is told of writes under way that give addresses; absent: nobody asks. */
  readonly uses?: Pick<LentBlocks, 'addUse' | 'removeUse'> | undefined;
  readonly clock: Pick<Clock, 'wall' | 'sleep'>;
  readonly metrics: PodLeaseMetrics;
}

const LOST: LeaseWriteResult = { kind: 'lost' };
/** A write that got no answer, and did nothing, is tried so often. */
const WRITE_ATTEMPTS = 3;
const RETRY_MS = 50;
/** A lease that changes more often while it is being released is left to a later attempt. */
const RELEASE_ATTEMPTS = 5;

/** Writes leases of pods of this node. Where there is no answer, the lease itself says what has become of the write. */
export class LeaseWriter {
  readonly #deps: LeaseWriterDeps;
  #writes = 0;

  constructor(deps: LeaseWriterDeps) {
    this.#deps = deps;
  }

  /** @throws {Error} where nothing can be written, or nobody knows whether it was: the lease is in doubt then */
  create(request: PodLeaseRequest, call: CallOptions): Promise<LeaseWriteResult> {
    return this.#give('create', request, { write: createLease(request), call });
  }

  /** @param lease released, and the request may have it */
  reallocate(lease: LeaseRecord, request: PodLeaseRequest, call: CallOptions): Promise<LeaseWriteResult> {
    return this.#give('take', request, { write: reallocateLease(lease, request), call });
  }

  /** @param lease held by the same pod in an earlier sandbox */
  move(lease: LeaseRecord, request: PodLeaseRequest, call: CallOptions): Promise<LeaseWriteResult> {
    return this.#give('move', request, { write: updateLeaseUsage(lease, request), call });
  }

  /** @returns undefined where there is no such lease, or nothing that can be read as one */
  async read(name: string, call: CallOptions): Promise<LeaseRecord | undefined> {
    const { client, own } = this.#deps;
    const known = own.get(name);
    const found = await findUnlessGone(client, ADDRESS_LEASES, { name }, call);
    const record = found && tryReadLease(found);
    if (record === undefined) own.markGone(name, known);
    else own.update(record);
    return record;
  }

  /** Finds out what nobody knows of the place: writes that got no answer. */
  async resolveUncertain(place: SandboxInterface, call: CallOptions): Promise<void> {
    const { own } = this.#deps;
    for (const name of own.uncertainLeasesOf(place)) {
      await this.read(name, call);
      own.resolve(name, place);
    }
  }

  /**
   * Ends what is held, whoever else changes the lease meanwhile.
   * @param still whether the lease as it is by then is to be released
   * @returns whether it was released by this
   */
  async release(lease: LeaseRecord, still: (lease: LeaseRecord) => boolean, call: CallOptions): Promise<boolean> {
    const { client, own, clock, metrics } = this.#deps;
    let current: LeaseRecord | undefined = lease;
    for (let attempt = 1; current !== undefined && still(current); attempt++) {
      try {
        const written = await writeLease(client, releaseLease(current, clock.wall()), call);
        if (written !== undefined) own.update(readLease(written));
        metrics.wrote('release', 'done');
        return true;
      } catch (error) {
        const isStale = isConflict(error) || isNotFound(error);
        metrics.wrote('release', isStale ? 'lost' : 'failed');
        if (!isStale || attempt === RELEASE_ATTEMPTS) throw error;
        current = await this.read(lease.metadata.name, call);
      }
    }
    return false;
  }

  /** From before the first request until its end is known, or is a doubt, the address counts as used. */
  async #give(kind: WriteKind, request: PodLeaseRequest, attempt: LeaseWriteAttempt): Promise<LeaseWriteResult> {
    const { uses } = this.#deps;
    const by = `write ${++this.#writes}`;
    uses?.addUse(by, request);
    try {
      return await this.#tryToGive(kind, request, attempt);
    } finally {
      uses?.removeUse(by);
    }
  }

  async #tryToGive(
    kind: WriteKind,
    request: PodLeaseRequest,
    { write, call }: LeaseWriteAttempt,
  ): Promise<LeaseWriteResult> {
    const { client, own, clock, metrics } = this.#deps;
    for (let attempt = 1; ; attempt++) {
      try {
        const written = await writeLease(client, write, call);
        if (written === undefined) throw new TypeError(`${kind} of a lease gave none`);
        const lease = readLease(written);
        own.update(lease);
        metrics.wrote(kind, 'done');
        return { kind: 'ours', lease };
      } catch (error) {
        const isLost = isLostRace(kind, error);
        metrics.wrote(kind, isLost ? 'lost' : 'failed');
        // where an earlier attempt got no answer, it may be our own that is in the way
        if (isLost && attempt === 1) return LOST;
        const found = isLost ? await this.#lookAt(request, call) : await this.#lookAfter(error, request, call);
        if (found !== undefined) return found;
        if (isLost) return LOST;
        if (attempt === WRITE_ATTEMPTS) throw error;
        await clock.sleep(RETRY_MS * attempt, call.signal);
      }
    }
  }

  /** @throws {Error} that very error, where it says that nothing was done, or there is no time to find out */
  async #lookAfter(error: unknown, request: PodLeaseRequest, call: CallOptions): Promise<LeaseWriteResult | undefined> {
    const isAborted = error instanceof TransportError && error.fault === 'aborted';
    if (!isAborted && !mayHaveActed(error)) throw error;
    this.#deps.own.addUncertain({ ...request, name: leaseNameOf(request) }, interfaceOfRequest(request));
    // a request that was given up may be on its way all the same
    if (isAborted) throw error;
    return this.#lookAt(request, call);
  }

  /** @returns undefined where the write was not done: it may be tried again */
  async #lookAt(request: PodLeaseRequest, call: CallOptions): Promise<LeaseWriteResult | undefined> {
    const found = await this.read(leaseNameOf(request), call);
    if (found === undefined) return undefined;
    const isOurs = found.owner?.uid === request.owner.uid && isHeldAt(found, interfaceOfRequest(request));
    return isOurs ? { kind: 'ours', lease: found } : LOST;
  }
}

interface LeaseWriteAttempt {
  readonly write: LeaseWrite;
  readonly call: CallOptions;
}

function interfaceOfRequest({ containerID, interface: interfaceName }: PodLeaseRequest): SandboxInterface {
  return { containerId: containerID, interfaceName };
}

function leaseNameOf({ addressSpace, address }: PodLeaseRequest): string {
  return leaseName(addressSpace, address);
}

function isLostRace(kind: WriteKind, error: unknown): boolean {
  return isAlreadyExists(error) || isConflict(error) || (kind !== 'create' && isNotFound(error));
}

/** @returns undefined where the object is no lease that Holdfast could have made */
export function tryReadLease(lease: AddressLease): LeaseRecord | undefined {
  try {
    return readLease(lease);
  } catch {
    return undefined;
  }
}
