import { expect } from 'chai';
import fc from 'fast-check';
import type { LeaseOwner, LeaseWrite } from '../../api/address-lease.js';
import { parseAddress } from '../../addressing/address/address.js';
import {
  type LeaseRecord,
  availabilityOf,
  createLease,
  expireLease,
  mayExpire,
  readLease,
  reallocateLease,
  releaseLease,
  stateOf,
} from '../../addressing/lease/lease.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { Client } from '../../kube/client.js';
import { StatusError } from '../../kube/errors.js';
import { SECRETS } from '../../kube/resources.js';
import { type Fault, MemoryTransport } from '../../kube/testing/memory-transport.js';
import type { ApiRequest } from '../../kube/transport/transport.js';
import type { Sync, SyncResult } from '../../kube/controller-loop.js';
import { apiError } from '../../test/api-errors.js';
import { NAMESPACE } from '../../test/objects/workload-objects.js';
import { MAC, ReconcilerWorld, runSync } from '../testing/reconciler-world.js';

const LOST = apiError(500, 'InternalError', 'etcd is away', 'net');
const TIMES = { cooldownMs: 60_000, stickyMs: 0 };
const ADDRESSES = ['10.1.0.5', '10.1.0.6', '10.1.0.7'];
const OWN: LeaseOwner = {
  kind: 'IPAMClaim',
  namespace: NAMESPACE,
  name: 'vm1.data',
  uid: 'vm1.data-uid',
  workloadUID: 'vm-uid',
};
const OTHER: LeaseOwner = { ...OWN, name: 'vm2.data', uid: 'vm2.data-uid', workloadUID: 'vm2-uid' };

/** A write without an answer arrives within this time, or never. */
const LATE_MS = 50_000;

/** At which write of a sync the API server goes away, and whether it carries out that write without an answer. */
interface Outage {
  readonly write: number;
  readonly isCarriedOut: boolean | 'late';
  /** The process starts again, and knows nothing. */
  readonly isCrash: boolean;
}

/** The API server, with leases that keep their preconditions. */
class UnreliableWorld extends ReconcilerWorld {
  outage: Outage | undefined;
  #lateUntil = 0;
  #writes = 0;
  readonly #ipam = new Client(new MemoryTransport(this.tracker));

  begin(outage: Outage | undefined): void {
    this.outage = outage;
    this.#writes = 0;
  }

  protected override faultOf(request: ApiRequest): Fault {
    if (request.method === 'GET') return undefined;
    const { write = Infinity, isCarriedOut = false } = this.outage ?? {};
    this.#writes += 1;
    if (this.#writes < write) return undefined;
    const isLost = this.#writes === write;
    if (isLost && isCarriedOut === 'late') this.late.push(request);
    if (isLost) this.#lateUntil = this.now + LATE_MS;
    return { error: LOST, applied: isLost && isCarriedOut === true };
  }

  override arrive(): void {
    if (this.now > this.#lateUntil) this.late.length = 0;
    super.arrive();
  }

  /** Carries out a write of ipam. One that was decided on an older version of the lease has no effect. */
  async writeLease(write: LeaseWrite): Promise<void> {
    await writeLease(this.#ipam, write).catch((error: unknown) => expect(error).to.be.instanceOf(StatusError));
  }

  records(): LeaseRecord[] {
    return [...this.leases.values()].map(readLease);
  }
}

/** One VM with one claim, the claim of another VM that wants the same addresses, ipam and the process. */
class Model {
  readonly #world = new UnreliableWorld();
  #reconciler = this.#world.reconciler();
  #run: Sync = this.#reconciler.createSync();
  #options: { secret: string; annotation?: string | null; macs?: (string | undefined)[] } | undefined = {
    secret: 'net',
  };
  #starts = 0;
  #now = 0;
  /** The leases as they were at the end of the last step, and of the step before. */
  #before = [...this.#world.leases.values()];
  #longBefore = this.#before;

  readonly changes = {
    restart: () => this.#restart(),
    'lead again': () => (this.#run = this.#reconciler.createSync()),
    'delete Secret': () => this.#world.deleteAll(SECRETS),
    rename: () => (this.#options = { secret: this.#options?.secret === 'net' ? 'other' : 'net' }),
    'leave it to the pool': () => (this.#options = { secret: 'net', ...this.#options, annotation: null }),
    'delete claim': () => this.#world.claims.delete(`${NAMESPACE}/vm1.data`),
    'opt out': () => (this.#options = { secret: 'net', ...this.#options, annotation: '' }),
    'add interface': () => (this.#options = { secret: 'net', ...this.#options, macs: [MAC, undefined] }),
    'delete VM': () => (this.#options = undefined),
    undo: () => (this.#options = { secret: this.#options?.secret ?? 'net' }),
  };

  constructor() {
    this.#world.addNetwork('data', [{ cidr: '10.1.0.0/24' }], { networkData: { default: true } });
    this.#world.addClaim('data', []);
  }

  pass(ms: number): void {
    this.#now += ms;
    this.#world.now = this.#now;
  }

  arrive(): void {
    this.#world.arrive();
  }

  /** A claim shows an address before it is leased, or without a lease after a restore. The VM starts when its lease changes. */
  async moveClaim(shown: string | undefined, isLeased: boolean): Promise<void> {
    const world = this.#world;
    for (const lease of world.records())
      if (
        lease.owner?.uid === OWN.uid &&
        stateOf(lease) === 'held' &&
        !(isLeased && lease.metadata.name === nameOf(shown))
      )
        await world.writeLease(releaseLease(lease, this.#now));
    if (shown !== undefined && isLeased) await this.#allocate(shown, OWN, world.records());
    const claim = world.claims.get(`${NAMESPACE}/vm1.data`) ?? world.addClaim('data', []);
    world.setClaim({ ...claim, status: { ...claim.status, ips: shown === undefined ? [] : [`${shown}/24`] } });
    this.#starts += 1;
    world.addVmi(`vmi-${this.#starts}`, undefined);
  }

  /** ipam expires leases and gives an address to the other VM, both by its cache. */
  async allocateToOther(address: string, isLagging: boolean): Promise<void> {
    const cached = isLagging ? this.#before.map(readLease) : this.#world.records();
    await this.#allocate(address, OTHER, cached);
    for (const lease of cached)
      if (mayExpire(lease, TIMES, this.#now)) await this.#world.writeLease(expireLease(lease));
    if (!this.#world.leases.has(nameOf(address))) await this.#allocate(address, OTHER, []);
  }

  async #allocate(text: string, owner: LeaseOwner, cached: readonly LeaseRecord[]): Promise<void> {
    const request = { address: parseAddress(text), addressSpace: 'data', pool: 'data', owner };
    const lease = cached.find(({ metadata }) => metadata.name === nameOf(text));
    if (lease === undefined) await this.#world.writeLease(createLease(request));
    else if (availabilityOf(lease, request, TIMES, this.#now) === true)
      await this.#world.writeLease(reallocateLease(lease, request));
  }

  async otherReleases(): Promise<void> {
    for (const lease of this.#world.records())
      if (lease.owner?.uid === OTHER.uid && stateOf(lease) === 'held')
        await this.#world.writeLease(releaseLease(lease, this.#now));
  }

  /** The process works with an old cache of leases, and perhaps fails. */
  async sync(outage: Outage | undefined, isLagging: boolean): Promise<void> {
    const world = this.#world;
    if (this.#options !== undefined) world.addVm('vm1', this.#options);
    else {
      world.vms.delete(`${NAMESPACE}/vm1`);
      world.vmis.delete(`${NAMESPACE}/vm1`);
    }
    world.shownLeases = isLagging ? this.#longBefore : undefined;
    world.begin(outage);
    await this.#sync().catch((error: unknown) => expect(String(error)).to.match(/etcd is away|is still locked/));
    world.shownLeases = undefined;
    world.begin(undefined);
    if (outage?.isCrash === true) this.#restart();
  }

  /** The process works without a failure: then the Secret has no address that is not leased to the claim. */
  async settle(): Promise<void> {
    await this.sync(undefined, false);
    this.arrive();
    this.pass(60_000);
    await this.sync(undefined, false);
    await this.#sync();
    for (const address of this.#written()) expect(this.#ownerOf(address), address).to.equal(OWN.uid);
    for (const { metadata, networkData, owner, releasedAt } of this.#world.records())
      if (networkData !== undefined)
        expect([owner?.uid, releasedAt], metadata.name).to.deep.equal([OWN.uid, undefined]);
  }

  /** Another claim never has an address that is in a Secret. */
  check(): void {
    for (const address of this.#written()) expect(this.#ownerOf(address), address).not.to.equal(OTHER.uid);
  }

  remember(): void {
    this.#longBefore = this.#before;
    this.#before = [...this.#world.leases.values()];
  }

  #written(): string[] {
    const texts = [...this.#world.secrets.values()].map(({ data }) => data?.networkdata ?? '');
    return texts.flatMap(
      (text) =>
        Buffer.from(text, 'base64')
          .toString()
          .match(/10\.1\.0\.[567]/g) ?? [],
    );
  }

  #ownerOf(address: string): string | undefined {
    const lease = this.#world.records().find(({ metadata }) => metadata.name === nameOf(address));
    return lease !== undefined && stateOf(lease) === 'held' ? lease.owner?.uid : undefined;
  }

  /** Its connections end, and so do its requests. */
  #restart(): void {
    this.#world.late.length = 0;
    this.#reconciler = this.#world.reconciler();
    this.#run = this.#reconciler.createSync();
  }

  #sync(): Promise<SyncResult> {
    return runSync(this.#run);
  }
}

function nameOf(address = ''): string {
  return address === '' ? '' : leaseName('data', parseAddress(address));
}

const outage = fc.record({
  write: fc.integer({ min: 1, max: 6 }),
  isCarriedOut: fc.constantFrom(true, false, 'late' as const),
  isCrash: fc.boolean(),
});
const step = fc.record({
  move: fc.option(
    fc.record({ shown: fc.option(fc.constantFrom(...ADDRESSES), { nil: undefined }), isLeased: fc.boolean() }),
    { nil: undefined },
  ),
  changes: fc.array(fc.constantFrom(...(Object.keys(new Model().changes) as (keyof Model['changes'])[])), {
    maxLength: 2,
  }),
  process: fc.constantFrom('is down' as const, 'works', 'settles'),
  outage: fc.option(outage, { nil: undefined }),
  isGuestLagging: fc.boolean(),
  passed: fc.constantFrom(0, 30_000, 61_000),
  wanted: fc.option(fc.constantFrom(...ADDRESSES), { nil: undefined }),
  isIpamLagging: fc.boolean(),
  doesOtherRelease: fc.boolean(),
  doLateWritesArrive: fc.boolean(),
});

describe('the Secrets with network data, after each step', () => {
  it('have no address of another claim, although objects change, writes fail, caches lag, and the process is down or restarts', async () => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const model = new Model();
      for (const each of steps) {
        if (each.move !== undefined) await model.moveClaim(each.move.shown, each.move.isLeased);
        model.check();
        for (const change of each.changes) model.changes[change]();
        if (each.process === 'works') await model.sync(each.outage, each.isGuestLagging);
        if (each.process === 'settles') await model.settle();
        model.check();
        model.pass(each.passed);
        if (each.doLateWritesArrive) model.arrive();
        model.check();
        if (each.doesOtherRelease) await model.otherReleases();
        if (each.wanted !== undefined) await model.allocateToOther(each.wanted, each.isIpamLagging);
        model.check();
        model.remember();
      }
    });
    await fc.assert(property, { numRuns: Number(process.env.MODEL_RUNS ?? 500) });
  });
});
