import type { LeaseOwner } from '../../../api/address-lease.js';
import { type Address, type Family, sameAddress } from '../../../addressing/address/address.js';
import { type LeaseRules, leaseTimesOf } from '../../../addressing/lease/lease-times.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { type LeaseRecord, type LeaseTimes, availabilityOf, stateOf } from '../../../addressing/lease/lease.js';
import { type Pool, subnetOf } from '../../../addressing/pool/pool.js';
import type { Logger } from '../../../kube/log.js';
import { messageOf } from '../../../kube/errors.js';
import type { Attachment } from '../attachment.js';
import { runtimeUidOf } from '../node-pods.js';
import { type AddressSearchRequest, type AddressSearchDeps, FreeAddressSearch } from './free-address-search.js';
import { StickyAddressSearch } from './sticky-address-search.js';
import { type PodLeaseRequest, listLeasesOfOwner } from './lease-writer.js';
import { isHeldAt } from '../node-leases.js';
import type { InterfaceRef } from '../request.js';
import type { AddContext } from '../request-queue.js';
import { supersededError, addressTakenError, leasedMeanwhileError, notLeasableError } from './allocation-errors.js';

export interface PodAllocationDeps extends AddressSearchDeps {
  readonly nodeName: string;
  readonly log: Logger;
  readonly rules: LeaseRules;
}

/** The request of one ADD. */
interface PodAllocationRequest extends Pick<AddressSearchRequest, 'pool' | 'candidates' | 'blocks'> {
  readonly attachment: Attachment;
  /** An ADD of a later sandbox of the pod, or its DEL, may have changed any lease read before. */
  readonly call: AddContext;
}

/** A lease of the pod. `isNew`: this ADD has allocated it. */
interface AllocatedLease {
  readonly lease: LeaseRecord;
  readonly isNew: boolean;
}

/** How often to retry when another writer changes the lease first. */
const MAX_CONFLICTS = 4;
/** The roll-back of a failed ADD has its own deadline, because that of the ADD may be over. */
const ROLLBACK_CALL = { deadlineMs: 3_000 };

/**
 * Allocates the leases of one ADD, for all families or none. In this order: leases that the pod has already, requested addresses, sticky and
 * reserved ones for its MAC address, any free address.
 */
export class PodAllocation {
  readonly #deps: PodAllocationDeps;
  readonly #request: PodAllocationRequest;
  readonly #target: InterfaceRef;
  readonly #owner: LeaseOwner;
  readonly #times: LeaseTimes;
  readonly #free: FreeAddressSearch;
  /** Absent if the pod requests no MAC address, or the feature gate StickyMAC is off. */
  readonly #sticky: StickyAddressSearch | undefined;

  constructor(deps: PodAllocationDeps, request: PodAllocationRequest) {
    const { pod, containerId, interfaceName, mac } = request.attachment;
    const { namespace, name } = pod.metadata;
    const owner: LeaseOwner = { kind: 'Pod', namespace, name, uid: runtimeUidOf(pod) };
    const times = leaseTimesOf(request.pool, deps.rules);
    const requestFor = (address: Address) => this.#leaseRequestFor(address);
    const search = { ...request, owner, times, requestFor };
    this.#deps = deps;
    this.#request = request;
    this.#target = { containerId, interfaceName };
    this.#owner = owner;
    this.#times = times;
    this.#free = new FreeAddressSearch(deps, search);
    if (mac !== undefined && deps.rules.stickyMAC) this.#sticky = new StickyAddressSearch(deps, { ...search, mac });
  }

  /**
   * Allocates the leases.
   * @returns a lease of each family, IPv4 first
   * @throws {CniError} if an address is not available
   * @throws {Error} if a request to the API server failed
   */
  async run(): Promise<LeaseRecord[]> {
    const { pool, attachment, call } = this.#request;
    await this.#deps.writer.readUncertain(this.#target, call);
    await this.#learnOwn();
    for (const address of attachment.requested) requireLeasable(address, pool);
    const results = await Promise.allSettled(pool.families.map((family) => this.#reserve(family)));
    const got = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined && call.isLatest()) return got.map(({ lease }) => lease);
    await Promise.all(got.filter(({ isNew }) => isNew).map(({ lease }) => this.#rollBack(lease)));
    throw failed === undefined ? supersededError(attachment.containerId) : failed.reason;
  }

  /**
   * Lists the leases of a pod that ran before, if none is known: `kubectl holdfast migrate whereabouts`, or an earlier process of this agent,
   * may have created them.
   */
  async #learnOwn(): Promise<void> {
    const { own, client } = this.#deps;
    const { attachment, call } = this.#request;
    const { uid } = this.#owner;
    if (attachment.pod.status?.phase !== 'Running' || own.ofPod(uid).length > 0) return;
    for (const lease of await listLeasesOfOwner(client, uid, call)) own.update(lease);
  }

  async #reserve(family: Family): Promise<AllocatedLease> {
    const wanted = this.#request.attachment.requested.find((address) => address.family === family);
    for (const known of this.#ownOf(family, wanted)) {
      const got = await this.#reuse(known);
      if (got !== undefined) return got;
    }
    this.#requireLatest();
    if (wanted !== undefined) return { lease: await this.#leaseRequested(wanted), isNew: true };
    const lease = (await this.#sticky?.lease(family)) ?? (await this.#free.lease(family));
    return { lease, isNew: true };
  }

  /** Returns the leases of the interface: first those held by this sandbox, then other held ones, then released ones. */
  #ownOf(family: Family, wanted: Address | undefined): LeaseRecord[] {
    const rank = (lease: LeaseRecord) => (isHeldAt(lease, this.#target) ? 0 : stateOf(lease) === 'held' ? 1 : 2);
    return [...this.#deps.own.ofPod(this.#owner.uid)]
      .filter((lease) => lease.address.family === family)
      .filter(({ address }) => wanted === undefined || sameAddress(address, wanted))
      .filter((lease) => this.#isOwn(lease))
      .sort((a, b) => rank(a) - rank(b));
  }

  /** Uses a lease that the interface has or had. The cache chooses it, but the answer is always a lease that was read or written. */
  async #reuse(known: LeaseRecord): Promise<AllocatedLease | undefined> {
    const { own, writer } = this.#deps;
    const { name } = known.metadata;
    const { call } = this.#request;
    const isHere = (each: LeaseRecord) => isHeldAt(each, this.#target);
    let lease = isHere(known) ? await writer.read(name, call) : known;
    for (let race = 0; race < MAX_CONFLICTS && lease !== undefined && this.#isOwn(lease); race++) {
      if (isHere(lease)) {
        if (!own.mayBeReleased(lease)) return { lease, isNew: false };
        // completed here, it changes the version, so that it cannot arrive later
        await writer.release(lease, isHere, call);
        lease = own.get(name);
        continue;
      }
      this.#requireLatest();
      const request = this.#leaseRequestFor(lease.address);
      if (!this.#canStillHave(lease, request)) return undefined;
      const isNew = stateOf(lease) === 'released';
      const written = await (isNew ? writer.reallocate(lease, request, call) : writer.move(lease, request, call));
      if (written !== undefined) return { lease: written, isNew };
      lease = await writer.read(name, call);
    }
    return undefined;
  }

  /** Whether the interface can have its earlier lease: the pool may have lost the address since, or another owner may come first. */
  #canStillHave(lease: LeaseRecord, request: PodLeaseRequest): boolean {
    const { pool } = this.#request;
    if (subnetOf(pool, lease.address)?.leasable.has(lease.address.value) !== true) return false;
    return stateOf(lease) === 'held' || availabilityOf(lease, request, this.#times, this.#deps.clock.now()) === true;
  }

  /** Refuses the ADD of an earlier sandbox. @throws {CniError} if the pod has a later sandbox */
  #requireLatest(): void {
    if (!this.#request.call.isLatest()) throw supersededError(this.#target.containerId);
  }

  /** Whether the lease is, or was, of this interface and of this pool. */
  #isOwn({ owner, interface: interfaceName, pool: poolName, addressSpace }: LeaseRecord): boolean {
    const { pool } = this.#request;
    if (poolName !== pool.name || addressSpace !== pool.addressSpace) return false;
    const { namespace, name, uid } = this.#owner;
    // the manifest of a static pod may contain the UID of another pod
    const isOfPod = owner?.kind === 'Pod' && owner.namespace === namespace && owner.name === name;
    return isOfPod && owner.uid === uid && interfaceName === this.#target.interfaceName;
  }

  async #leaseRequested(address: Address): Promise<LeaseRecord> {
    const { candidates } = this.#request;
    if (!candidates.try(address)) throw leasedMeanwhileError(address);
    let isTaken = false;
    try {
      const lease = await this.#allocateRequested(address);
      isTaken = true;
      return lease;
    } finally {
      candidates.settle(address, isTaken);
    }
  }

  async #allocateRequested(address: Address): Promise<LeaseRecord> {
    const { writer, clock } = this.#deps;
    const { pool, candidates, call } = this.#request;
    const request = this.#leaseRequestFor(address);
    const name = leaseName(pool.addressSpace, address);
    let written = await writer.create(request, call);
    for (let race = 0; race < MAX_CONFLICTS && written === undefined; race++) {
      const found = await writer.read(name, call);
      if (found === undefined) written = await writer.create(request, call);
      else {
        const lease = candidates.withCoolingStart(found);
        const answer = availabilityOf(lease, request, this.#times, clock.now());
        if (answer !== true) throw addressTakenError(lease, answer, { times: this.#times, owner: this.#owner });
        written = await writer.reallocate(lease, request, call);
      }
    }
    if (written === undefined) throw leasedMeanwhileError(address);
    return written;
  }

  async #rollBack(lease: LeaseRecord): Promise<void> {
    try {
      await this.#deps.writer.release(lease, (each) => isHeldAt(each, this.#target), ROLLBACK_CALL);
    } catch (error) {
      // the DEL after the failed ADD, or the leak sweep, releases it
      const fields = { lease: lease.metadata.name, err: error };
      this.#deps.log.warn(fields, `cannot release the lease of a failed ADD yet: ${messageOf(error)}`);
    }
  }

  #leaseRequestFor(address: Address): PodLeaseRequest {
    const { attachment, pool } = this.#request;
    const { containerId, interfaceName, mac } = attachment;
    return {
      address,
      addressSpace: pool.addressSpace,
      pool: pool.name,
      owner: this.#owner,
      node: this.#deps.nodeName,
      containerID: containerId,
      interface: interfaceName,
      ...(mac !== undefined && { mac }),
    };
  }
}

/** Checks that the pool leases the address. @throws {CniError} if it does not */
function requireLeasable(address: Address, pool: Pool): void {
  const subnet = subnetOf(pool, address);
  if (subnet?.requestable.has(address.value) !== true) throw notLeasableError(address, pool, subnet);
}
