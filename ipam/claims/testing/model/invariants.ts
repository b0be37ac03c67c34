import type { AddressLease } from '../../../../api/address-lease.js';
import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import { objectKey } from '../../../../api/meta.js';
import { IPS_ALLOCATED } from '../../../../api/names.js';
import { readProbe } from '../../../../api/probe.js';
import type { WriteChecks } from './api.js';
import { isProbeRequested } from './probe-operations.js';
import { MAX_STALENESS_MS } from './process.js';
import type { IpamWorld } from './world.js';
import { bareAddress } from '../../../../test/bare-address.js';

/** A violated invariant. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

function statusAddresses(claim: IPAMClaim): string[] {
  return (claim.status?.ips ?? []).map(bareAddress);
}

export function leasesHeldBy(world: IpamWorld, uid: string | undefined): AddressLease[] {
  return world.list('addressleases').filter(({ spec }) => spec.releasedAt === undefined && spec.owner?.uid === uid);
}

/** Checks at each write of the IPAM what must never happen. */
export class Invariants implements WriteChecks {
  /** UIDs of leases that a status has shown. */
  readonly #shown = new Set<string>();
  /** By pod: the addresses that it was given, and the UID of the claim; undefined if it got them without one. */
  readonly inUse = new Map<string, { claim: string | undefined; addresses: readonly string[] }>();
  /** The world's version when the writing process last read the claim; undefined: it has not read it. */
  readAtVersion: number | undefined;
  /** By claim UID and address: the version since which the status shows the address. */
  readonly #shownSince = new Map<string, number>();
  readonly #world: IpamWorld;

  constructor(world: IpamWorld) {
    this.#world = world;
  }

  checkLeaseChange(before: AddressLease | undefined, after: AddressLease | undefined): void {
    if (before === undefined) return;
    this.#judgeTable(before, after);
    if (after?.spec.quarantine !== undefined) this.#judgeQuarantine(before, after);
    else if (before.spec.owner !== undefined) this.#judgeOwner(before, after);
  }

  #judgeOwner(before: AddressLease, after: AddressLease | undefined): void {
    const wasHeld = before.spec.releasedAt === undefined;
    if (wasHeld && (after === undefined || after.spec.releasedAt !== undefined)) this.#mayGo(before, after);
    if (after === undefined || after.spec.releasedAt !== undefined) return;
    if (wasHeld && after.spec.owner?.uid !== before.spec.owner?.uid && !this.#isTakenOver(before, after)) {
      throw new Violation(`${before.metadata.name} is taken from its owner`);
    }
    if (!wasHeld) this.#mayBeTaken(before, after);
  }

  /** Only an address that another host has, and that no claim has shown. */
  #judgeQuarantine({ metadata, spec }: AddressLease, after: AddressLease): void {
    const { name } = metadata;
    const probe = readProbe(metadata);
    const claim = this.#world.claim(spec.owner?.uid);
    if (typeof probe !== 'object' || probe.taken !== after.spec.quarantine?.mac)
      throw new Violation(`${name} is quarantined, and its probe says ${JSON.stringify(probe)}`);
    if (spec.releasedAt !== undefined || spec.reserved === true)
      throw new Violation(`${name} is quarantined, and is not held by a claim`);
    if (claim === undefined) return;
    if (statusAddresses(claim).includes(spec.address) || this.#isInUse(spec.address, claim))
      throw new Violation(`${name} is quarantined, and ${claim.metadata.name} shows it`);
  }

  /** A claim takes over the address of the launcher of its own VM. */
  #isTakenOver(before: AddressLease, after: AddressLease): boolean {
    const claim = this.#world.claim(after.spec.owner?.uid);
    const pod = this.#world.list('pods').find(({ metadata }) => metadata.uid === before.spec.owner?.uid);
    return claim === undefined || pod === undefined || pod.metadata.name === claim.metadata.name;
  }

  checkStatusChange(before: IPAMClaim, after: IPAMClaim): void {
    const key = objectKey(after);
    const ips = statusAddresses(after);
    const held = leasesHeldBy(this.#world, after.metadata.uid);
    this.#judgeFirst(before, { key, ips, held });
    for (const lease of held) {
      if (ips.includes(lease.spec.address)) this.#shown.add(lease.metadata.uid ?? '');
    }
    this.#noteShown(before, after);
    const allocated = after.status?.conditions?.find(({ type }) => type === IPS_ALLOCATED);
    if (allocated === undefined) throw new Violation(`${key} has no ${IPS_ALLOCATED}`);
    if (allocated.status === 'True' && ips.length === 0) throw new Violation(`${key} is allocated without addresses`);
    const had = [...statusAddresses(before), ...held.map(({ spec }) => spec.address)];
    if (allocated.status === 'False' && !ips.every((ip) => had.includes(ip))) {
      throw new Violation(`${key} is refused, and shows what it never had`);
    }
  }

  /** If a user deletes a lease while a process shows it, another process may allocate the address anew. */
  #judgeFirst(before: IPAMClaim, { key, ips, held }: { key: string; ips: string[]; held: AddressLease[] }): void {
    if (statusAddresses(before).length > 0) return;
    const early = held.find(
      (lease) =>
        ips.includes(lease.spec.address) && isProbeRequested(lease) && !this.#world.freedByUser.has(lease.spec.address),
    );
    if (early !== undefined) throw new Violation(`${key} shows ${early.spec.address}, which is being probed`);
  }

  /** Checks reservations for a MAC address. */
  #judgeTable(before: AddressLease, after: AddressLease | undefined): void {
    const { name } = before.metadata;
    const { owner, mac, reserved } = before.spec;
    if (owner !== undefined && reserved !== true) {
      if (after?.spec.reserved !== undefined) throw new Violation(`${name} became a reservation`);
    } else if (after === undefined) throw new Violation(`${name} was reserved, and is deleted`);
    else if (after.spec.mac !== mac || after.spec.reserved !== true)
      throw new Violation(`${name} was reserved for ${mac}`);
  }

  #noteShown(before: IPAMClaim, after: IPAMClaim): void {
    const news = statusAddresses(after).filter((ip) => !statusAddresses(before).includes(ip));
    for (const ip of news) this.#shownSince.set(`${after.metadata.uid}/${ip}`, this.#world.version + 1);
  }

  #mayGo(lease: AddressLease, after: AddressLease | undefined): void {
    const { name, uid = '' } = lease.metadata;
    if (lease.spec.owner?.kind === 'Pod') throw new Violation(`${name} is released, and a pod has it`);
    const claim = this.#world.claim(lease.spec.owner?.uid);
    if (after === undefined && this.#shown.has(uid)) throw new Violation(`${name} is deleted, and was shown`);
    if (claim === undefined || this.#isOvertaken(lease, claim) || this.#hasAnotherOf(lease)) return;
    if (statusAddresses(claim).includes(lease.spec.address)) {
      throw new Violation(`${name} goes, and its claim shows it`);
    }
    if (this.#isInUse(lease.spec.address, claim)) throw new Violation(`${name} goes, and a pod has it`);
  }

  #isInUse(address: string, { metadata }: IPAMClaim): boolean {
    return [...this.inUse].some(([pod, { claim, addresses }]) => {
      const isTakenOver = pod === metadata.name && !this.#hasOwnLease(pod, address);
      const isOfClaim = claim === undefined ? isTakenOver : claim === metadata.uid;
      return isOfClaim && addresses.includes(address);
    });
  }

  /** The pod has the address by a lease of its own, perhaps in another address space. */
  #hasOwnLease(pod: string, address: string): boolean {
    const uid = this.#world.get('pods', `vms/${pod}`)?.metadata.uid;
    return leasesHeldBy(this.#world, uid).some(({ spec }) => spec.address === address);
  }

  /**
   * The claim has another lease of the same address, in another address space, unless a user deleted it: caches that disagree about the pool's address
   * space have caused both.
   */
  #hasAnotherOf({ metadata, spec }: AddressLease): boolean {
    if (this.#world.freedByUser.has(spec.address)) return true;
    const others = leasesHeldBy(this.#world, spec.owner?.uid).filter((lease) => lease.metadata.name !== metadata.name);
    return others.some((lease) => lease.spec.address === spec.address);
  }

  /**
   * Another process has come to show a lease that existed when this one saw that the claim does not need it. No precondition can prevent it, and it heals: the
   * claim allocates the address again before it has cooled down.
   */
  #isOvertaken({ metadata, spec }: AddressLease, claim: IPAMClaim): boolean {
    const since = this.#shownSince.get(`${claim.metadata.uid}/${spec.address}`) ?? 0;
    const { readAtVersion } = this;
    return readAtVersion !== undefined && Number(metadata.resourceVersion) <= readAtVersion && since > readAtVersion;
  }

  #mayBeTaken(before: AddressLease, after: AddressLease): void {
    if (after.spec.owner?.uid === before.spec.owner?.uid) return;
    const workload = after.spec.owner?.workloadUID;
    if (workload !== undefined && workload === before.spec.owner?.workloadUID) return;
    const since = this.#world.now - Date.parse(before.spec.releasedAt ?? '');
    if (since < 2 * MAX_STALENESS_MS)
      throw new Violation(`${before.metadata.name} is taken ${since} ms after its release`);
  }
}
