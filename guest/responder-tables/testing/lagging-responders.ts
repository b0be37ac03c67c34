import { expect } from 'chai';
import type { VirtualMachineInstance } from '../../../api/kubevirt.js';
import type { KubeObject } from '../../../api/meta.js';
import { CLAIM_GUEST_MAC } from '../../../api/names.js';
import { readLease } from '../../../addressing/lease/lease.js';
import { leaseOf } from '../../../test/objects/lease-objects.js';
import { claim, vmReference, vmi } from '../../../test/objects/workload-objects.js';
import {
  type Change,
  type Kind,
  LaggingGuest,
  LaggingResponder,
  MAX_STALENESS_MS,
  NAD,
  Published,
} from './lagging-tables.js';

export const COOLDOWN_MS = 2 * MAX_STALENESS_MS;
/** Between two messages about the age of the table. */
const REFRESH_MS = 1_000;
export const ADDRESSES = ['10.1.0.1', '10.1.0.2', '10.1.0.3', '10.1.0.4', '10.1.0.5'];

interface Lease {
  owner: string;
  releasedAt?: number;
}

interface ModelVm {
  address: string;
  mac?: string;
}

/** VMs, the allocator with its cool-down, two replicas of `guest`, two responders, and the network on which guests use their addresses. */
export class World {
  now = 1_000_000;
  readonly #changes: Change[] = [];
  readonly #leases = new Map<string, Lease>();
  /** By VM: its claim's address, and the MAC address while it runs. */
  readonly #vms = new Map<number, ModelVm>();
  /** The addresses that guests use, by MAC address. */
  readonly #wire = new Map<string, string>();
  readonly #published = new Published();
  readonly guests = [new LaggingGuest(this.#published), new LaggingGuest(this.#published)] as const;
  readonly responders = [new LaggingResponder(), new LaggingResponder()] as const;
  readonly #hasFixedMacs: boolean;
  #starts = 0;

  /** @param hasFixedMacs specs have MAC addresses; otherwise KubeVirt generates one at each start */
  constructor(hasFixedMacs: boolean) {
    this.#hasFixedMacs = hasFixedMacs;
    this.guests[0].leads = true;
  }

  /** The VM gets a claim with an address if it has none. */
  start(vm: number): void {
    const found = this.#vms.get(vm) ?? this.#allocate(vm);
    if (found === undefined || found.mac !== undefined) return;
    const number = this.#hasFixedMacs ? vm : ++this.#starts;
    const mac = `02:00:00:00:00:${number.toString(16).padStart(2, '0')}`;
    this.#vms.set(vm, { ...found, mac });
    const made = vmi({ data: NAD }, { name: `vm${vm}`, vm: `uid-${vm}` });
    for (const each of made.spec?.domain?.devices?.interfaces ?? []) each.macAddress = mac;
    const running: VirtualMachineInstance = { ...made, status: { phase: 'Running', interfaces: [] } };
    this.#tell('vmis', `vms/vm${vm}`, running);
    this.#tellClaim(vm);
  }

  stop(vm: number): void {
    const found = this.#vms.get(vm);
    if (found?.mac === undefined) return;
    this.#wire.delete(found.mac);
    this.#vms.set(vm, { address: found.address });
    this.#tell('vmis', `vms/vm${vm}`, undefined);
    this.#tellClaim(vm);
  }

  delete(vm: number): void {
    this.stop(vm);
    const found = this.#vms.get(vm);
    if (found === undefined) return;
    this.#vms.delete(vm);
    this.#tell('claims', `vms/vm${vm}.data`, undefined);
    this.#release(found.address);
  }

  /** A stopped VM gets another address. */
  move(vm: number): void {
    const found = this.#vms.get(vm);
    if (found === undefined || found.mac !== undefined) return;
    if (this.#allocate(vm) !== undefined) this.#release(found.address);
  }

  restartWithOtherAddress(vm: number): void {
    this.stop(vm);
    this.move(vm);
    this.start(vm);
  }

  advance(ms: number): void {
    const end = this.now + ms;
    while (this.now < end) {
      this.now = Math.min(end, this.now + REFRESH_MS);
      this.follow();
    }
  }

  follow(): void {
    for (const guest of this.guests) guest.follow(this.#changes, this.now);
    for (const responder of this.responders) responder.follow(this.#published, this.now);
  }

  /** The guest asks by DHCP, and takes the first answer. */
  ask(vm: number): void {
    const { mac } = this.#vms.get(vm) ?? {};
    if (mac !== undefined) this.responders.some((responder) => this.#answers(responder, vm, mac));
  }

  #answers(
    { entries, confirmed, freshUntil, isStopped, isCutOff }: LaggingResponder,
    vm: number,
    mac: string,
  ): boolean {
    const address = entries.get(mac)?.ipv4?.address;
    if (address === undefined) return false;
    const others = [...this.#wire].filter(([other, used]) => other !== mac && used === address);
    const isFresh = this.now < freshUntil;
    // a probe finds other guests
    if ((!isFresh || confirmed.get(mac) !== address) && others.length > 0) return false;
    expect(others, `${address} has two guests`).to.deep.equal([]);
    const seesLeases = !isCutOff && !isStopped && this.#guestSeesAll;
    this.#expectLeased(address, vm, { isFresh, seesLeases });
    this.#wire.set(mac, address);
    confirmed.set(mac, address);
    for (const responder of this.responders) responder.hear(mac, address);
    return true;
  }

  /** The address that the guest uses. */
  used(vm: number): string | undefined {
    return this.#wire.get(this.#vms.get(vm)?.mac ?? '');
  }

  /** If two replicas write at the same time, one of them no longer leads, and the other one corrects what it writes. */
  get #guestSeesAll(): boolean {
    return this.guests.some(({ isHealthy }) => isHealthy) && !this.guests.every(({ leads }) => leads);
  }

  #expectLeased(address: string, vm: number, answer: { isFresh: boolean; seesLeases: boolean }): void {
    const lease = this.#leases.get(address);
    if (answer.seesLeases) expect(lease, 'responders whose guest sees leases').to.deep.equal({ owner: `vm${vm}.data` });
    const { releasedAt = this.now } = lease ?? {};
    if (answer.isFresh) expect(this.now - releasedAt, `${address} was released`).to.be.at.most(MAX_STALENESS_MS);
  }

  #allocate(vm: number): ModelVm | undefined {
    const address = ADDRESSES.find((each) => {
      const lease = this.#leases.get(each);
      return lease === undefined || (lease.releasedAt !== undefined && this.now - lease.releasedAt >= COOLDOWN_MS);
    });
    if (address === undefined) return undefined;
    this.#leases.set(address, { owner: `vm${vm}.data` });
    this.#tellLease(address);
    this.#vms.set(vm, { address });
    this.#tellClaim(vm);
    return { address };
  }

  #release(address: string): void {
    const lease = this.#leases.get(address);
    if (lease !== undefined) this.#leases.set(address, { ...lease, releasedAt: this.now });
    this.#tellLease(address);
  }

  #tellLease(address: string): void {
    const { owner = '', releasedAt } = this.#leases.get(address) ?? {};
    const version = this.#changes.length + 1;
    const lease = leaseOf(address, version, { name: owner, ...(releasedAt !== undefined && { releasedAt }) });
    this.#tell('leases', lease.metadata.name, readLease(lease));
  }

  #tellClaim(vm: number): void {
    const { address = '', mac } = this.#vms.get(vm) ?? {};
    const name = `vm${vm}.data`;
    const owner = vmReference(`uid-${vm}`, `vm${vm}`);
    const made = claim({
      name,
      network: 'blue',
      nad: NAD,
      owner,
      ips: [`${address}/24`],
      created: '2026-01-01T00:00:00Z',
    });
    if (mac !== undefined) made.metadata.annotations = { ...made.metadata.annotations, [CLAIM_GUEST_MAC]: mac };
    this.#tell('claims', `vms/${name}`, made);
  }

  #tell(kind: Kind, key: string, object: KubeObject | undefined): void {
    this.#changes.push({ kind, key, object });
  }
}
