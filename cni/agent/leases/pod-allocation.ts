import type { LeaseOwner } from '../../../api/address-lease.js';
import { type Address, type Family, sameAddress } from '../../../ipam/core/address.js';
import { type LeaseRules, leaseTimesOf } from '../../../ipam/core/lease-times.js';
import { leaseName } from '../../../ipam/core/lease-name.js';
import { type LeaseRecord, type LeaseTimes, availabilityOf, stateOf } from '../../../ipam/core/lease.js';
import { type Pool, subnetOf } from '../../../ipam/core/pool.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import type { Logger } from '../../../kube/log.js';
import { messageOf } from '../../../kube/errors.js';
import type { Attachment } from '../attachment.js';
import type { RequestContext } from '../request-context.js';
import type { BlockPicker } from '../blocks/node-blocks.js';
import { runtimeUidOf } from '../pods/node-pod.js';
import { FreeAddressSearch } from './free-address-search.js';
import { StickyAddressSearch } from './sticky-address-search.js';
import type { LeaseWriter, PodLeaseRequest, LeaseWriteResult } from './lease-writer.js';
import type { PodLeaseMetrics } from './metrics.js';
import { type NodeLeases, type SandboxInterface, isHeldAt } from '../node-leases.js';
import { supersededError, addressTakenError, leasedMeanwhileError, notLeasableError } from './allocation-errors.js';
import type { SpaceCandidates } from './space-candidates.js';

export interface PodAllocationDeps {
  readonly own: NodeLeases;
  readonly writer: LeaseWriter;
  readonly client: Pick<Client, 'listAs'>;
  readonly nodeName: string;
  readonly clock: Pick<Clock, 'wall'>;
  readonly metrics: PodLeaseMetrics;
  readonly log: Logger;
  readonly rules: LeaseRules;
}

/** What one ADD wants. */
export interface PodAllocationRequest {
  readonly attachment: Attachment;
  readonly pool: Pool;
  readonly candidates: SpaceCandidates;
  /** Those of the node; absent: nodes are lent none. */
  readonly blocks: BlockPicker | undefined;
  /** False once an ADD of a later sandbox of the pod has come in: that one, or its DEL, may have changed any lease that was read before. */
  readonly isLatest: () => boolean;
  readonly call: RequestContext;
}

/** An address that the pod has. `isNew`: by this very ADD. */
interface AllocatedLease {
  readonly lease: LeaseRecord;
  readonly isNew: boolean;
}

/** What others do to the very lease that is wanted is met so often. */
const MAX_CONFLICTS = 4;
/** For taking back what a failed ADD has got, when its own time may be over. */
const ROLLBACK_CALL = { deadlineMs: 3_000 };

/** One ADD's way to its leases: those that the pod has already, those it asks for, those kept for its MAC address, else any. All families, or none. */
export class PodAllocation {
  readonly #deps: PodAllocationDeps;
  readonly #wish: PodAllocationRequest;
  readonly #place: SandboxInterface;
  readonly #times: LeaseTimes;
  readonly #any: FreeAddressSearch;
  /** Absent: the pod asks for no MAC address, or none counts. */
  readonly #kept: StickyAddressSearch | undefined;

  constructor(deps: PodAllocationDeps, wish: PodAllocationRequest) {
    this.#deps = deps;
    this.#wish = wish;
    const { containerId, interfaceName } = wish.attachment;
    this.#place = { containerId, interfaceName };
    this.#times = leaseTimesOf(wish.pool, deps.rules);
    const requestFor = (address: Address) => this.#requestFor(address);
    this.#any = new FreeAddressSearch(deps, { ...wish, times: this.#times, requestFor });
    const { mac } = wish.attachment;
    if (mac !== undefined && deps.rules.stickyMAC) {
      const owner = this.#owner;
      this.#kept = new StickyAddressSearch(deps, { ...wish, mac, owner, times: this.#times, requestFor });
    }
  }

  /**
   * @returns a lease of each family, IPv4 first
   * @throws {CniError} where an address cannot be had
   * @throws {Error} where the API server cannot be asked
   */
  async run(): Promise<LeaseRecord[]> {
    const { pool, attachment, isLatest, call } = this.#wish;
    await this.#deps.writer.resolveUncertain(this.#place, call);
    for (const address of attachment.requested) requireLeasable(address, pool);
    const results = await Promise.allSettled(pool.families.map((family) => this.#reserve(family)));
    const got = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined && isLatest()) return got.map(({ lease }) => lease);
    await Promise.all(got.filter(({ isNew }) => isNew).map(({ lease }) => this.#giveBack(lease)));
    throw failed === undefined ? supersededError(attachment.containerId) : failed.reason;
  }

  async #reserve(family: Family): Promise<AllocatedLease> {
    const wanted = this.#wish.attachment.requested.find((address) => address.family === family);
    for (const known of this.#ownOf(family, wanted)) {
      const got = await this.#again(known);
      if (got !== undefined) return got;
    }
    this.#refuseEarlier();
    if (wanted !== undefined) return { lease: await this.#exactly(wanted), isNew: true };
    const lease = (await this.#kept?.lease(family)) ?? (await this.#any.lease(family));
    return { lease, isNew: true };
  }

  /** What the interface has, or had until its last sandbox ended: those held here first, then those held, then those released. */
  #ownOf(family: Family, wanted: Address | undefined): LeaseRecord[] {
    const { attachment } = this.#wish;
    const rank = (lease: LeaseRecord) => (isHeldAt(lease, this.#place) ? 0 : stateOf(lease) === 'held' ? 1 : 2);
    return [...this.#deps.own.ofPod(runtimeUidOf(attachment.pod))]
      .filter((lease) => lease.address.family === family)
      .filter(({ address }) => wanted === undefined || sameAddress(address, wanted))
      .filter((lease) => this.#isItsOwn(lease))
      .sort((a, b) => rank(a) - rank(b));
  }

  /** A lease that the pod has for this interface, or had. Caches choose it; what is answered was read or written. */
  async #again(known: LeaseRecord): Promise<AllocatedLease | undefined> {
    const { writer } = this.#deps;
    const { name } = known.metadata;
    const { call } = this.#wish;
    let lease = isHeldAt(known, this.#place) ? await writer.read(name, call) : known;
    for (let race = 0; race < MAX_CONFLICTS && lease !== undefined && this.#isItsOwn(lease); race++) {
      if (isHeldAt(lease, this.#place)) return { lease, isNew: false };
      const written = await this.#bring(lease);
      if (written?.kind !== 'lost') return written && { lease: written.lease, isNew: stateOf(lease) === 'released' };
      lease = await writer.read(name, call);
    }
    return undefined;
  }

  /** To this sandbox. @returns undefined where the pod cannot have the lease any more */
  async #bring(lease: LeaseRecord): Promise<LeaseWriteResult | undefined> {
    const { writer, clock } = this.#deps;
    const { pool, call } = this.#wish;
    this.#refuseEarlier();
    // the pool may have been narrowed since
    if (subnetOf(pool, lease.address)?.requestable.has(lease.address.value) !== true) return undefined;
    const request = this.#requestFor(lease.address);
    if (stateOf(lease) === 'held') return writer.move(lease, request, call);
    if (availabilityOf(lease, request, this.#times, clock.wall()) !== true) return undefined;
    return writer.reallocate(lease, request, call);
  }

  /** @throws {CniError} if the pod has a later sandbox */
  #refuseEarlier(): void {
    if (!this.#wish.isLatest()) throw supersededError(this.#place.containerId);
  }

  /** The interface has, or had, the lease, and the pool is still the one that it is of. */
  #isItsOwn({ owner, interface: interfaceName, pool: poolName, addressSpace }: LeaseRecord): boolean {
    const { attachment, pool } = this.#wish;
    if (poolName !== pool.name || addressSpace !== pool.addressSpace) return false;
    const { namespace, name } = attachment.pod.metadata;
    // a UID that a manifest of a static pod names may stand in the owner of another pod's lease
    const isOfPod = owner?.kind === 'Pod' && owner.namespace === namespace && owner.name === name;
    return isOfPod && owner.uid === runtimeUidOf(attachment.pod) && interfaceName === this.#place.interfaceName;
  }

  async #exactly(address: Address): Promise<LeaseRecord> {
    const { candidates } = this.#wish;
    if (!candidates.try(address)) throw leasedMeanwhileError(address);
    let isTaken = false;
    try {
      const lease = await this.#demand(address);
      isTaken = true;
      return lease;
    } finally {
      candidates.settle(address, isTaken);
    }
  }

  async #demand(address: Address): Promise<LeaseRecord> {
    const { writer, clock } = this.#deps;
    const { pool, call } = this.#wish;
    const request = this.#requestFor(address);
    const name = leaseName(pool.addressSpace, address);
    let written = await writer.create(request, call);
    for (let race = 0; race < MAX_CONFLICTS && written.kind === 'lost'; race++) {
      const lease = await writer.read(name, call);
      if (lease === undefined) written = await writer.create(request, call);
      else {
        const answer = availabilityOf(lease, request, this.#times, clock.wall());
        if (answer !== true) throw addressTakenError(lease, answer, { times: this.#times, owner: this.#owner });
        written = await writer.reallocate(lease, request, call);
      }
    }
    if (written.kind === 'lost') throw leasedMeanwhileError(address);
    return written.lease;
  }

  async #giveBack(lease: LeaseRecord): Promise<void> {
    try {
      await this.#deps.writer.release(lease, (each) => isHeldAt(each, this.#place), ROLLBACK_CALL);
    } catch (error) {
      // the DEL that follows a failed ADD, or the sweep, does it
      const fields = { lease: lease.metadata.name, err: error };
      this.#deps.log.warn(fields, `lease of a failed ADD is not released yet: ${messageOf(error)}`);
    }
  }

  get #owner(): LeaseOwner {
    const { pod } = this.#wish.attachment;
    const { namespace, name } = pod.metadata;
    return { kind: 'Pod', namespace, name, uid: runtimeUidOf(pod) };
  }

  #requestFor(address: Address): PodLeaseRequest {
    const { attachment, pool } = this.#wish;
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

/** @throws {CniError} where the pool never leases the address to anybody */
function requireLeasable(address: Address, pool: Pool): void {
  const subnet = subnetOf(pool, address);
  if (subnet?.requestable.has(address.value) !== true) throw notLeasableError(address, pool, subnet);
}
