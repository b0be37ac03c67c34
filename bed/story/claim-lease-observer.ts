import type { AddressLease, LeaseOwner } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import type { Reflector } from '../../kube/informers/reflector.js';
import { ADDRESS_LEASES, IPAM_CLAIMS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import { watchObjects } from './watched-objects.js';

interface ObservedHolder {
  kind: LeaseOwner['kind'];
  uid: string;
  workloadUID: string | undefined;
  /** The resourceVersion at which it became the holder, or was last observed as such. */
  version: bigint;
}

interface ObservedRelease {
  lease: string;
  address: string;
  uid: string;
  workloadUID: string | undefined;
  version: bigint;
  /** When the cool-down began, in ms. */
  since: number;
}

/** How late an event may be. A `releasedAt` that is older was written by a process with a wrong clock. */
const MAX_DELAY_MS = 60_000;

/**
 * Watches leases and claims of one address space with the name of its network, and checks the invariants that must hold despite crashes. The order of events is
 * that of their resourceVersions, because two watches have no common order.
 */
export class ClaimLeaseObserver {
  readonly violations: string[] = [];
  readonly #space: string;
  readonly #cooldownMs: number;
  readonly #leases: Reflector<AddressLease>;
  readonly #claims: Reflector<IPAMClaim>;
  /** Existing claims, by UID. */
  readonly #livingClaims = new Map<string, IPAMClaim>();
  /** By address. */
  readonly #holders = new Map<string, ObservedHolder>();
  readonly #released = new Map<string, ObservedRelease>();
  readonly #releases: ObservedRelease[] = [];
  readonly #deletedWhileHeld: Pick<ObservedRelease, 'lease' | 'address' | 'uid'>[] = [];
  /** By UID: the resourceVersion of the claim's deletion. */
  readonly #goneClaims = new Map<string, bigint>();
  /** By claim UID: all addresses that its status has had, without prefix length. */
  readonly #shown = new Map<string, string[]>();
  #events = 0;
  #taken = 0;

  constructor(
    client: Client,
    { space, cooldownMs, namespace }: { space: string; cooldownMs: number; namespace: string },
  ) {
    this.#space = space;
    this.#cooldownMs = cooldownMs;
    this.#leases = watchObjects(client, ADDRESS_LEASES, {
      see: (lease) => this.#seeLease(lease),
      list: (leases) => this.#startAgain(leases),
      remove: (lease) => this.#seeRemoved(lease),
    });
    this.#claims = watchObjects(client, IPAM_CLAIMS, {
      namespace,
      see: (claim) => this.#seeClaim(claim),
      list: (claims) => this.#seeClaims(claims),
      remove: ({ metadata }) => this.#seeGone(metadata.uid ?? '', BigInt(metadata.resourceVersion ?? '0')),
    });
  }

  /** The number of observed changes. */
  get events(): number {
    return this.#events;
  }

  /** How often an address was taken. Counts all that are held again if the watch starts anew. */
  get taken(): number {
    return this.#taken;
  }

  /** The number of released addresses. */
  get releases(): number {
    return this.#releases.length;
  }

  start(): void {
    this.#leases.start();
    this.#claims.start();
  }

  /** Stops the watches, and checks the order of releases and deletions. */
  async stop(): Promise<void> {
    await Promise.all([this.#leases.stop(), this.#claims.stop()]);
    for (const { lease, address, uid } of this.#deletedWhileHeld) {
      // a lease that no status ever had may be deleted without a cool-down, because no pod can know its address
      if (this.#shown.get(uid)?.includes(address)) {
        this.violations.push(`${lease} was deleted while it was held for ${uid}`);
      }
    }
    for (const { lease, address, uid, version } of this.#releases) {
      // a lease that a crash left behind, and that no status ever had, may be released at any time
      if (!this.#shown.get(uid)?.includes(address)) continue;
      const gone = this.#goneClaims.get(uid);
      if (gone === undefined) this.violations.push(`${lease} was released while its claim ${uid} was there`);
      else if (gone > version) this.violations.push(`${lease} was released before its claim ${uid} was gone`);
    }
  }

  /** Differences between claims and leases: each address of a claim needs a held lease, and each held lease a claim. */
  inconsistencies(): string[] {
    const claims = this.#livingClaims;
    return [
      ...[...claims.values()].flatMap((claim) => this.#unsettledClaim(claim)),
      ...[...this.#holders].flatMap(([address, { uid }]) => {
        const ips = claims.get(uid)?.status?.ips ?? [];
        return ips.some((ip) => bareAddress(ip) === address)
          ? []
          : [`${address} is held for ${uid}, which shows ${ips.join(' ')}`];
      }),
    ];
  }

  #unsettledClaim(claim: IPAMClaim): string[] {
    if (claim.spec.network !== this.#space) return [];
    const ips = claim.status?.ips ?? [];
    if (ips.length === 0) return [`${objectKey(claim)} has no addresses`];
    const lost = ips.filter((ip) => this.#holders.get(bareAddress(ip))?.uid !== claim.metadata.uid);
    return lost.map((ip) => `${objectKey(claim)} shows ${ip}, which it does not hold`);
  }

  /** Starts anew after a list, because the events since the last one are unknown. */
  #startAgain(leases: readonly AddressLease[]): void {
    this.#holders.clear();
    this.#released.clear();
    for (const lease of leases) this.#seeLease(lease);
  }

  #seeLease(lease: AddressLease): void {
    if (lease.spec.addressSpace !== this.#space) return;
    this.#events++;
    const { owner, releasedAt, address } = lease.spec;
    const version = BigInt(lease.metadata.resourceVersion ?? '0');
    if (owner === undefined) return;
    if (releasedAt !== undefined) this.#seeReleased(lease, owner, version);
    else this.#seeHeld(address, owner, version);
  }

  #seeRemoved({ metadata, spec: { addressSpace, address } }: AddressLease): void {
    if (addressSpace !== this.#space) return;
    this.#events++;
    const before = this.#holders.get(address);
    if (before === undefined) this.#expire(metadata.name, address);
    else this.#deletedWhileHeld.push({ lease: metadata.name, address, uid: before.uid });
    this.#holders.delete(address);
  }

  #seeReleased(lease: AddressLease, owner: LeaseOwner, version: bigint): void {
    const { address, releasedAt = '' } = lease.spec;
    const [at, now] = [Date.parse(releasedAt), Date.now()];
    const before = this.#holders.get(address);
    const release = {
      lease: lease.metadata.name,
      address,
      uid: owner.uid,
      workloadUID: owner.workloadUID,
      since: before !== undefined && now - at > MAX_DELAY_MS ? now : Math.min(at, now),
      version,
    };
    if (before !== undefined) this.#releases.push(release);
    this.#released.set(address, release);
    this.#holders.delete(address);
  }

  #seeHeld(address: string, { kind, uid, workloadUID }: LeaseOwner, version: bigint): void {
    const before = this.#holders.get(address);
    // a claim may take over the lease of its launcher
    const isTakenOver = before?.kind === 'Pod' && kind === 'IPAMClaim';
    if (before === undefined) this.#take(address, uid, workloadUID);
    else if (before.uid !== uid && !isTakenOver)
      this.violations.push(`${address} went from ${before.uid} to ${uid} without a release`);
    this.#holders.set(address, { kind, uid, workloadUID, version });
  }

  #take(address: string, uid: string, workloadUID: string | undefined): void {
    this.#taken++;
    const last = this.#released.get(address);
    if (last === undefined || last.uid === uid || (workloadUID !== undefined && last.workloadUID === workloadUID))
      return;
    const cooled = Date.now() - last.since;
    if (cooled < this.#cooldownMs) this.violations.push(`${address} cooled down for ${String(cooled)} ms only`);
  }

  #expire(lease: string, address: string): void {
    const last = this.#released.get(address);
    const cooled = Date.now() - (last?.since ?? 0);
    if (cooled < this.#cooldownMs) this.violations.push(`${lease} expired ${String(cooled)} ms after its release`);
  }

  /** Claims that a list lacks were deleted some time before it. */
  #seeClaims(claims: readonly IPAMClaim[]): void {
    const listed = new Set(claims.map(({ metadata }) => metadata.uid));
    for (const uid of this.#livingClaims.keys()) if (!listed.has(uid)) this.#seeGone(uid, 0n);
    for (const claim of claims) this.#seeClaim(claim);
  }

  #seeGone(uid: string, version: bigint): void {
    this.#events++;
    this.#livingClaims.delete(uid);
    this.#goneClaims.set(uid, version);
  }

  #seeClaim(claim: IPAMClaim): void {
    this.#events++;
    const { uid = '' } = claim.metadata;
    this.#livingClaims.set(uid, claim);
    const ips = (claim.status?.ips ?? []).map(bareAddress);
    const earlier = this.#shown.get(uid);
    if (earlier !== undefined && earlier.join() !== ips.join()) {
      this.violations.push(`${objectKey(claim)} showed ${earlier.join()}, and then "${ips.join()}"`);
    }
    if (ips.length > 0) this.#shown.set(uid, ips);
  }
}
