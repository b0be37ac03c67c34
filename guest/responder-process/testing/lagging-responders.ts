import { expect } from 'chai';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../../../api/kubevirt.js';
import type { KubeObject } from '../../../api/meta.js';
import { CLAIM_GUEST_MAC } from '../../../api/names.js';
import { CLAIM_INDEXES } from '../../../cluster/watch-specs.js';
import { type LeaseRecord, readLease } from '../../../addressing/lease/lease.js';
import { PoolDirectory } from '../../../addressing/directory/directory.js';
import { Cache } from '../../../kube/cache.js';
import { leaseOf } from '../../../test/lease-objects.js';
import { adminPool, cacheOf, nad } from '../../../test/pool-objects.js';
import { claim, vmReference, vmi } from '../../../test/workload-objects.js';
import { resultOf } from '../../testing/result-of.js';
import { NETWORK_INDEXES } from '../../../addressing/directory/affected.js';
import { Freshness } from '../freshness.js';
import { buildPoolTable } from '../table.js';
import type { TableEntry } from '../protocol.js';

const MAX_STALENESS_MS = 30_000;
export const COOLDOWN_MS = 2 * MAX_STALENESS_MS;
/** Between two messages about the age of the table. */
const REFRESH_MS = 1_000;
export const ADDRESSES = ['10.1.0.1', '10.1.0.2', '10.1.0.3', '10.1.0.4', '10.1.0.5'];
export const KINDS = ['claims', 'vmis', 'leases'] as const;
export type Kind = (typeof KINDS)[number];

const NAD = 'vms/data';
const networks = cacheOf([nad(NAD, { name: 'blue', type: 'bridge' })]);
const directory = new PoolDirectory({
  pools: cacheOf([adminPool('blue', { cidr: '10.1.0.0/24', guest: { attachment: 'data', dhcp: {} } })]),
  networks,
});
const state = directory.stateOf('blue');
if (state?.kind !== 'served') throw new TypeError('pool blue does not serve');
const { pool } = state;

interface Change {
  readonly kind: Kind;
  readonly key: string;
  readonly object: KubeObject | undefined;
}

/** A responder with its watches, which stop and continue one by one, and its packet helper. */
class Responder {
  readonly #caches = {
    claims: new Cache<IPAMClaim>({ ...CLAIM_INDEXES, ...NETWORK_INDEXES }),
    vmis: new Cache<VirtualMachineInstance>(),
    leases: new Cache<LeaseRecord>(),
  };
  readonly #seen = { claims: 0, vmis: 0, leases: 0 };
  readonly #progress = { claims: 0, vmis: 0, leases: 0 };
  #liveReadAt = 0;
  /** The API server has no connection to etcd: its watches go on to progress, and show nothing new. */
  isCutOff = false;
  readonly stopped = new Set<Kind>();
  entries: ReadonlyMap<string, TableEntry> = new Map();
  /** The addresses that their guests get without a probe while the table is fresh, by MAC address. */
  readonly confirmed = new Map<string, string>();
  freshUntil = 0;

  follow(changes: readonly Change[], now: number): void {
    for (const kind of KINDS) {
      if (this.stopped.has(kind)) continue;
      this.#progress[kind] = now;
      if (this.isCutOff) continue;
      for (const change of changes.slice(this.#seen[kind])) if (change.kind === kind) this.#apply(change);
      this.#seen[kind] = changes.length;
    }
    if (!this.isCutOff) this.#liveReadAt = now;
    this.entries = resultOf(buildPoolTable(pool, { ...this.#caches, networks, directory })).entries;
    for (const [mac, address] of this.confirmed)
      if (this.entries.get(mac)?.ipv4?.address !== address) this.confirmed.delete(mac);
    const watches = KINDS.map((kind) => ({ lastProgress: this.#progress[kind] }));
    const sources = [...watches, { lastProgress: this.#liveReadAt }];
    const freshness = new Freshness(sources, MAX_STALENESS_MS, { now: () => now });
    freshness.built(freshness.begin());
    const forMs = freshness.forMs();
    if (forMs > 0) this.freshUntil = now + forMs;
  }

  /** A guest uses an address, which all hosts hear. */
  hear(mac: string, address: string): void {
    for (const [other, confirmed] of this.confirmed)
      if (other !== mac && confirmed === address) this.confirmed.delete(other);
  }

  #apply({ kind, key, object }: Change): void {
    const cache = this.#caches[kind] as unknown as Cache<KubeObject>;
    if (object === undefined) cache.delete(key);
    else cache.set(object);
  }
}

interface Lease {
  owner: string;
  releasedAt?: number;
}

interface ModelVm {
  address: string;
  mac?: string;
}

/** VMs, the allocator with its cool-down, two responders, and the network on which guests use their addresses. */
export class World {
  now = 1_000_000;
  readonly #changes: Change[] = [];
  readonly #leases = new Map<string, Lease>();
  /** By VM: its claim's address, and the MAC address while it runs. */
  readonly #vms = new Map<number, ModelVm>();
  /** The addresses that guests use, by MAC address. */
  readonly #wire = new Map<string, string>();
  readonly responders = [new Responder(), new Responder()];
  readonly #hasFixedMacs: boolean;
  #starts = 0;

  /** @param hasFixedMacs specs have MAC addresses; otherwise KubeVirt generates one at each start */
  constructor(hasFixedMacs: boolean) {
    this.#hasFixedMacs = hasFixedMacs;
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

  watch(responder: number, kind: Kind, stops: boolean): void {
    const { stopped } = this.responders[responder]!;
    if (stops) stopped.add(kind);
    else stopped.delete(kind);
  }

  cutOff(responder: number, isCutOff: boolean): void {
    this.responders[responder]!.isCutOff = isCutOff;
  }

  advance(ms: number): void {
    const end = this.now + ms;
    while (this.now < end) {
      this.now = Math.min(end, this.now + REFRESH_MS);
      this.follow();
    }
  }

  follow(): void {
    for (const responder of this.responders) responder.follow(this.#changes, this.now);
  }

  /** The guest asks by DHCP, and takes the first answer. */
  ask(vm: number): void {
    const { mac } = this.#vms.get(vm) ?? {};
    if (mac === undefined) return;
    for (const { entries, confirmed, freshUntil, stopped, isCutOff } of this.responders) {
      const address = entries.get(mac)?.ipv4?.address;
      if (address === undefined) continue;
      const others = [...this.#wire].filter(([other, used]) => other !== mac && used === address);
      const isFresh = this.now < freshUntil;
      // a probe finds other guests
      if ((!isFresh || confirmed.get(mac) !== address) && others.length > 0) continue;
      expect(others, `${address} has two guests`).to.deep.equal([]);
      this.#expectLeased(address, vm, { isFresh, seesLeases: !isCutOff && !stopped.has('leases') });
      this.#wire.set(mac, address);
      confirmed.set(mac, address);
      for (const responder of this.responders) responder.hear(mac, address);
      return;
    }
  }

  /** The address that the guest uses. */
  used(vm: number): string | undefined {
    return this.#wire.get(this.#vms.get(vm)?.mac ?? '');
  }

  #expectLeased(address: string, vm: number, answer: { isFresh: boolean; seesLeases: boolean }): void {
    const lease = this.#leases.get(address);
    if (answer.seesLeases) expect(lease, 'a responder that sees leases').to.deep.equal({ owner: `vm${vm}.data` });
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
