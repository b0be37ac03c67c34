import type { AddressLease, LeaseOwner } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { type Change, Informer } from '../../kube/informer.js';
import { ADDRESS_LEASES, IPAM_CLAIMS } from '../../kube/resources.js';

interface Holder {
  uid: string;
  workloadUID: string | undefined;
  /** Of the write with which it became, or was last seen as, the holder. */
  version: bigint;
}

interface Release {
  lease: string;
  address: string;
  uid: string;
  workloadUID: string | undefined;
  version: bigint;
  /** In ms. */
  at: number;
}

/**
 * Watches what the API server tells of leases and claims of one address space, and knows nothing else of Holdfast: it checks what must
 * hold whatever crashes. Versions order the writes, since the two watches may not.
 */
export class Observer {
  readonly violations: string[] = [];
  readonly #space: string;
  readonly #cooldownMs: number;
  readonly #leases: Informer<AddressLease>;
  readonly #claims: Informer<IPAMClaim>;
  /** By address. */
  readonly #holders = new Map<string, Holder>();
  readonly #released = new Map<string, Release>();
  readonly #releases: Release[] = [];
  /** By UID: the version with which the claim went. */
  readonly #goneClaims = new Map<string, bigint>();
  /** By claim UID: the addresses that it has shown, without prefix length. */
  readonly #shown = new Map<string, string[]>();
  #events = 0;

  constructor(
    client: Client,
    { space, cooldownMs, namespace }: { space: string; cooldownMs: number; namespace: string },
  ) {
    this.#space = space;
    this.#cooldownMs = cooldownMs;
    this.#leases = new Informer<AddressLease>(client, ADDRESS_LEASES);
    this.#claims = new Informer<IPAMClaim>(client, IPAM_CLAIMS, { namespace });
    this.#leases.onChange((change) => this.#seeLease(change));
    this.#claims.onChange((change) => this.#seeClaim(change));
  }

  /** How many changes were seen. */
  get events(): number {
    return this.#events;
  }

  /** How many addresses were given up. */
  get releases(): number {
    return this.#releases.length;
  }

  async start(): Promise<void> {
    this.#leases.start();
    this.#claims.start();
    await Promise.all([this.#leases.synced(), this.#claims.synced()]);
  }

  /** Ends the watches, and judges what only all events together tell. */
  async stop(): Promise<void> {
    await Promise.all([this.#leases.stop(), this.#claims.stop()]);
    for (const { lease, address, uid, version } of this.#releases) {
      // what a crash left behind, and no claim ever showed, may be given up at any time
      if (!this.#shown.get(uid)?.includes(address)) continue;
      const gone = this.#goneClaims.get(uid);
      if (gone === undefined) this.violations.push(`${lease} was released while its claim ${uid} was there`);
      else if (gone > version) this.violations.push(`${lease} was released before its claim ${uid} was gone`);
    }
  }

  /** What is there is whole: each claim has a lease for each of its addresses, and each lease that is held has a claim. */
  unsettled(): string[] {
    const claims = new Map(this.#claims.cache.list().map((claim) => [claim.metadata.uid ?? '', claim]));
    return [
      ...[...claims.values()].flatMap((claim) => this.#unsettledClaim(claim)),
      ...[...this.#holders].flatMap(([address, { uid }]) => {
        const ips = claims.get(uid)?.status?.ips ?? [];
        return ips.some((ip) => withoutPrefix(ip) === address)
          ? []
          : [`${address} is held for ${uid}, which shows ${ips.join(' ')}`];
      }),
    ];
  }

  #unsettledClaim(claim: IPAMClaim): string[] {
    const ips = claim.status?.ips ?? [];
    if (ips.length === 0) return [`${objectKey(claim)} has no addresses`];
    const lost = ips.filter((ip) => this.#holders.get(withoutPrefix(ip))?.uid !== claim.metadata.uid);
    return lost.map((ip) => `${objectKey(claim)} shows ${ip}, which it does not hold`);
  }

  #seeLease({ type, object }: Change<AddressLease>): void {
    if (object.spec.addressSpace !== this.#space) return;
    this.#events++;
    const { owner, releasedAt, address } = object.spec;
    const version = BigInt(object.metadata.resourceVersion ?? '0');
    if (type === 'removed') this.#seeRemoved(object.metadata.name, address, version);
    else if (owner === undefined) return;
    else if (releasedAt !== undefined) this.#seeReleased(object, Date.parse(releasedAt), version);
    else this.#seeHeld(address, owner, version);
  }

  #seeRemoved(lease: string, address: string, version: bigint): void {
    const before = this.#holders.get(address);
    if (before === undefined) this.#expire(lease, address);
    else this.#release({ lease, ...before, at: 0, version }, address);
    this.#holders.delete(address);
  }

  #seeReleased(lease: AddressLease, at: number, version: bigint): void {
    const { address } = lease.spec;
    const before = this.#holders.get(address);
    if (before !== undefined) this.#release({ lease: lease.metadata.name, ...before, at, version }, address);
    this.#holders.delete(address);
  }

  #seeHeld(address: string, { uid, workloadUID }: LeaseOwner, version: bigint): void {
    const before = this.#holders.get(address);
    if (before === undefined) this.#take(address, uid, workloadUID);
    else if (before.uid !== uid) this.violations.push(`${address} went from ${before.uid} to ${uid} without a release`);
    this.#holders.set(address, { uid, workloadUID, version });
  }

  #release(given: Omit<Release, 'address'>, address: string): void {
    const release = { ...given, address };
    this.#releases.push(release);
    this.#released.set(address, release);
    if (release.at === 0) this.violations.push(`${release.lease} was deleted while it was held for ${release.uid}`);
  }

  #take(address: string, uid: string, workloadUID: string | undefined): void {
    const last = this.#released.get(address);
    if (last === undefined || last.uid === uid || (workloadUID !== undefined && last.workloadUID === workloadUID))
      return;
    const cooled = Date.now() - last.at;
    if (cooled < this.#cooldownMs) this.violations.push(`${address} cooled down for ${String(cooled)} ms only`);
  }

  #expire(lease: string, address: string): void {
    const last = this.#released.get(address);
    if (last !== undefined && Date.now() - last.at < this.#cooldownMs) {
      this.violations.push(`${lease} expired ${String(Date.now() - last.at)} ms after its release`);
    }
  }

  #seeClaim({ type, object }: Change<IPAMClaim>): void {
    this.#events++;
    const { uid = '', resourceVersion = '0' } = object.metadata;
    if (type === 'removed') {
      this.#goneClaims.set(uid, BigInt(resourceVersion));
      return;
    }
    const ips = (object.status?.ips ?? []).map(withoutPrefix);
    const earlier = this.#shown.get(uid);
    if (earlier !== undefined && earlier.join() !== ips.join()) {
      this.violations.push(`${objectKey(object)} showed ${earlier.join()}, and then "${ips.join()}"`);
    }
    if (ips.length > 0) this.#shown.set(uid, ips);
  }
}

function withoutPrefix(ip: string): string {
  return ip.replace(/\/.*/, '');
}
