import { expect } from 'chai';
import type { AddressLease } from '../api/address-lease.js';
import { createLease } from '../addressing/lease/lease.js';
import { parseAddress } from '../addressing/address/address.js';
import { Client } from '../kube/client.js';
import { InformerRegistry } from '../kube/informers/informers.js';
import { silentLogger } from '../kube/log.js';
import { silentMetrics } from '../kube/metrics.js';
import { ADDRESS_LEASES } from '../kube/resources.js';
import { ObjectTracker } from '../kube/testing/object-tracker.js';
import { MemoryTransport } from '../kube/testing/memory-transport.js';
import type { ProcessContext } from '../process/context.js';
import { ManualClock } from '../test/manual-clock.js';
import { compiledPool } from '../test/objects/lease-objects.js';
import { TurnCounter } from '../test/turn-counter.js';
import { CapacityCaches } from './capacity-caches.js';

const START = Date.UTC(2026, 0, 1);
const POOL = compiledPool({ cidr: '10.0.0.0/24' });
const NOTHING_COOLS = { blocks: [], cooledSince: START };

function leaseOf(address: string): AddressLease {
  const owner = { kind: 'IPAMClaim' as const, namespace: 'vms', name: 'vm1.data', uid: 'u' };
  return createLease({ address: parseAddress(address), addressSpace: 'blue', pool: 'blue', owner }).object;
}

describe('the caches of capacity', () => {
  let clock: ManualClock;
  let transport: MemoryTransport;
  let caches: CapacityCaches;
  let resume: () => void;

  beforeEach(() => {
    clock = new ManualClock(START);
    resume = () => undefined;
    const tracker = new ObjectTracker();
    tracker.create(ADDRESS_LEASES, leaseOf('10.0.0.1'));
    transport = new MemoryTransport(tracker, clock);
    const options = { client: new Client(transport), log: silentLogger, clock, random: () => 0.5 };
    const informers = new InformerRegistry({ ...options, metrics: silentMetrics });
    const context = { ...options, informers, metrics: { kube: silentMetrics } } as unknown as ProcessContext;
    caches = new CapacityCaches({ context, hasNodeBlocks: false, onChange: () => undefined });
    caches.start();
  });
  afterEach(() => {
    resume();
    return caches.stop();
  });

  const free = () => caches.inventory.free(POOL, 4, NOTHING_COOLS).total;

  async function pass(to: number): Promise<void> {
    while (clock.now() < to) {
      clock.advanceTo(clock.now() + 1_000);
      for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate);
    }
  }

  /** From now on, no new watch of the kind gets anything. */
  function silence(plural: string): void {
    const silent = new Promise<void>((end) => (resume = end));
    transport.before = ({ path, query }) => (path.endsWith(plural) && query?.watch ? silent : undefined);
  }

  for (const plural of ['addressleases', 'pods'])
    it(`show no address as free while the watch of ${plural} is silent, because others may have got it`, async () => {
      caches.followLeasesOf([POOL]);
      await pass(START + 600_000);
      expect(free()).to.equal(253);
      silence(plural);
      await pass(START + 900_000);
      expect(free()).to.equal(0);
      resume();
      await pass(START + 1_000_000);
      expect(free()).to.equal(253);
    });

  it('count leased addresses while no lease changes and the API server sends no bookmarks', async () => {
    transport.before = ({ query }) => void (query && delete query.allowWatchBookmarks);
    caches.followLeasesOf([POOL]);
    for (let minute = 1; minute <= 10; minute++) {
      await pass(START + minute * 60_000);
      expect(free(), `after ${minute} minutes`).to.equal(253);
    }
  });

  it('let other work of the process run while they take over a long list', async () => {
    for (let last = 2; last <= 20; last++) transport.tracker.create(ADDRESS_LEASES, leaseOf(`10.0.0.${last}`));
    const now = () => ManualClock.prototype.now.call(clock);
    clock.now = () => {
      clock.advanceTo(now() + 15);
      return now();
    };
    const counter = new TurnCounter();
    while (!caches.followLeasesOf([POOL])) await new Promise(setImmediate);
    counter.stop();
    expect(counter.turns).to.be.at.least(10);
    expect(free()).to.equal(234);
  });
});
