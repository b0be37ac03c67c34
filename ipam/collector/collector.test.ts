import { expect } from 'chai';
import sinon from 'sinon';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { CLAIM_OWNER_NAME, CLAIM_OWNER_UID } from '../../api/names.js';
import type { EventSubject } from '../../kube/events.js';
import { silentLogger } from '../../kube/log.js';
import { DEFAULT_FEATURE_GATES } from '../../process/config/feature-gates.js';
import { Metrics } from '../../process/metrics.js';
import { ManualClock } from '../../test/manual-clock.js';
import { Collector, UnseenLeaseCheck } from './collector.js';
import { MAX_RELEASED_LEASES } from './expiry-queue.js';
import { createCollectorReport } from './report.js';
import { LeakWorld, READ_FAULTS } from './testing/leak-world.js';

const START = Date.UTC(2026, 0, 1);
const POOL = { pool: () => ({ cooldownMs: 0, stickyMs: 0 }), stateOf: () => ({}) };

class Bed {
  readonly world = new LeakWorld();
  readonly clock = new ManualClock(START);
  readonly metrics = new Metrics();
  readonly events: string[] = [];
  open = true;
  readonly collector: Collector;

  constructor(directory: object = POOL) {
    const { world, clock, metrics } = this;
    world.cacheNow = () => clock.now();
    const event = ({ kind, metadata }: EventSubject, type: string, reason: string, message: string) =>
      void this.events.push(`${type} ${reason} on ${kind} ${metadata.name}: ${message}`);
    this.collector = new Collector({
      ...world.deps,
      clock,
      directory: directory as never,
      report: createCollectorReport({ log: silentLogger, metrics, events: { event } }),
      gate: { isOpen: () => this.open },
      config: {
        ...{ collectAfterMs: 60_000, agentNamespace: 'holdfast-agents' },
        ...{ maxStalenessMs: 30_000, featureGates: DEFAULT_FEATURE_GATES },
      },
    });
  }

  /** Goes on from alarm to alarm; the caches get everything in between. */
  async until(seconds: number): Promise<void> {
    const end = START + seconds * 1_000;
    await this.clock.untilAlarmsSet(2);
    for (let next = this.clock.next; next !== undefined && next <= end; next = this.clock.next) {
      this.world.now = next;
      this.world.deliverAll();
      this.clock.advanceTo(next);
      await this.clock.untilAlarmsSet(2);
    }
    this.clock.advanceTo(end);
  }

  async metric(name: string): Promise<number> {
    const values = await this.metrics.registry.getSingleMetric(`holdfast_${name}`)!.get();
    return values.values.reduce((sum, { value }) => sum + value, 0);
  }
}

describe('the collector', () => {
  let bed: Bed;
  let claim: IPAMClaim;
  beforeEach(() => {
    bed = new Bed();
    claim = bed.world.addClaim('vm1.data', ['10.0.0.1/24']);
    bed.world.addLease('10.0.0.1', claim);
    bed.world.deliverAll();
  });
  afterEach(() => bed.collector.stop());

  const held = () => bed.world.leases().filter(({ spec }) => spec.releasedAt === undefined);

  it('does nothing, and sends no request, if nothing looks leaked', async () => {
    bed.collector.start();
    await bed.until(600);
    expect(bed.world.requests).to.deep.equal([]);
    expect(bed.events).to.deep.equal([]);
  });

  it('releases the lease of a deleted owner with an event, and deletes it after the cool-down', async () => {
    bed.collector.start();
    await bed.until(10);
    bed.world.remove('ipamclaims', 'vms/vm1.data');
    await bed.until(89);
    expect(held()).to.have.length(1);
    await bed.until(90);
    expect(held()).to.deep.equal([]);
    const { uid = '' } = claim.metadata;
    expect(bed.events).to.deep.equal([
      `Normal AddressLeaseCollected on AddressLease blue.10-0-0-1: released 10.0.0.1 of pool blue: its owner IPAMClaim vms/vm1.data (UID ${uid}) does not exist any more`,
    ]);
    expect(await bed.metric('leases_collected_total')).to.equal(1);
    expect(bed.world.lease('blue.10-0-0-1')?.spec.releasedAt).to.equal('2026-01-01T00:01:30.000Z');
    await bed.until(149);
    expect(bed.world.leases()).to.have.length(1);
    await bed.until(151);
    expect(bed.world.leases()).to.deep.equal([]);
    expect(await bed.metric('leases_expired_total')).to.equal(1);
  });

  it('releases a surplus lease of a claim, with events on the claim and its VM', async () => {
    const annotations = { [CLAIM_OWNER_NAME]: 'vm1', [CLAIM_OWNER_UID]: 'vm-uid' };
    bed.world.put('ipamclaims', { ...claim, metadata: { ...claim.metadata, annotations } });
    bed.world.addLease('10.0.0.2', claim);
    bed.collector.start();
    await bed.until(120);
    expect(held().map(({ spec }) => spec.address)).to.deep.equal(['10.0.0.1']);
    const about = bed.events.map((event) => event.split(':')[0]);
    expect(about).to.deep.equal([
      'Normal AddressLeaseCollected on AddressLease blue.10-0-0-2',
      'Normal AddressLeaseCollected on IPAMClaim vm1.data',
      'Normal AddressLeaseCollected on VirtualMachine vm1',
    ]);
  });

  it('keeps the address of a launcher even if the status does not contain it', async () => {
    bed.world.addLease('10.0.0.2', claim);
    const annotations = {
      'k8s.v1.cni.cncf.io/networks': '[{"name":"blue","ipam-claim-reference":"vm1.data"}]',
      'k8s.v1.cni.cncf.io/network-status': '[{"name":"vms/blue","ips":["10.0.0.2"]}]',
    };
    bed.world.addPod('launcher', { metadata: { name: 'launcher', namespace: 'vms', annotations } });
    bed.collector.start();
    await bed.until(600);
    expect(held()).to.have.length(2);
    bed.world.remove('pods', 'vms/launcher');
    await bed.until(700);
    expect(held()).to.have.length(1);
  });

  for (const plural of ['claims', 'pods'] as const) {
    it(`releases nothing before ${plural} are listed`, async () => {
      bed.world.remove('ipamclaims', 'vms/vm1.data');
      bed.world[plural].hasSynced = false;
      bed.collector.start();
      await bed.until(300);
      expect(bed.world.requests).to.deep.equal([]);
      bed.world[plural].hasSynced = true;
      await bed.until(400);
      expect(held()).to.deep.equal([]);
    });

    it(`releases nothing if the watch of ${plural} is stale`, async () => {
      bed.world.remove('ipamclaims', 'vms/vm1.data');
      bed.world.deliverAll();
      bed.world[plural].lastProgress = START - 150_000;
      const silence = sinon.stub(bed.world, 'deliverAll');
      bed.collector.start();
      await bed.until(140);
      expect(bed.world.requests).to.deep.equal([]);
      silence.restore();
      await bed.until(300);
      expect(held()).to.deep.equal([]);
    });
  }

  it('releases nothing while the gate is closed, and starts the delay anew when it opens', async () => {
    bed.open = false;
    bed.world.remove('ipamclaims', 'vms/vm1.data');
    bed.collector.start();
    await bed.until(600);
    expect(bed.world.requests).to.deep.equal([]);
    bed.open = true;
    await bed.until(680);
    expect(held()).to.have.length(1);
    await bed.until(730);
    expect(held()).to.deep.equal([]);
  });

  it('reports how many leases look leaked only while it works: a standby replica knows none', async () => {
    const reported = async () =>
      (await bed.metrics.registry.getSingleMetric('holdfast_leases_leak_candidates')!.get()).values;
    expect(await reported()).to.deep.equal([]);
    bed.world.remove('ipamclaims', 'vms/vm1.data');
    bed.collector.start();
    await bed.until(30);
    expect(await bed.metric('leases_leak_candidates')).to.equal(1);
    await bed.collector.stop();
    expect(await reported()).to.deep.equal([]);
  });

  it('goes on with other leases if the check of one fails', async () => {
    bed.world.addLease('10.0.0.3', bed.world.addClaim('vm3.data'));
    for (const name of ['vm1.data', 'vm3.data']) bed.world.remove('ipamclaims', `vms/${name}`);
    const get = bed.world.client.get.bind(bed.world.client);
    sinon.stub(bed.world.client, 'get').callsFake((resource, ref, options) => {
      if (ref.name === 'vm1.data') return Promise.reject(new TypeError('unexpected error'));
      return get(resource, ref, options);
    });
    bed.collector.start();
    await bed.until(200);
    expect(held().map(({ spec }) => spec.address)).to.deep.equal(['10.0.0.1']);
    expect(await bed.metric('leases_kept_total')).to.be.greaterThan(0);
  });

  for (const { nadNamespace, expired } of [
    { nadNamespace: 'vms', expired: ['10.0.0.0', '10.0.0.1'] },
    { nadNamespace: undefined, expired: [] },
  ]) {
    const whose = nadNamespace === undefined ? "an administrator's pool" : 'a pool that is derived from NADs';
    it(`deletes ${expired.length === 0 ? 'no' : 'the oldest'} leases of ${whose} early if too many are released`, async () => {
      await bed.collector.stop();
      const pool = { name: 'blue', network: 'blue', cooldownMs: 3_600_000, stickyMs: 0, nadNamespace };
      bed = new Bed({ pool: () => pool, stateOf: () => ({}), poolsOf: () => [pool] });
      const addresses = Array.from({ length: MAX_RELEASED_LEASES + 2 }, (_, n) => `10.0.${n >> 8}.${n & 255}`);
      for (const [n, address] of addresses.entries()) {
        const { spec, ...lease } = bed.world.addLease(address, claim);
        bed.world.put('addressleases', { ...lease, spec: { ...spec, releasedAt: new Date(START + n).toISOString() } });
      }
      bed.world.deliverAll();
      bed.collector.start();
      await bed.until(120);
      const left = new Set(bed.world.leases().map(({ spec }) => spec.address));
      expect(addresses.filter((address) => !left.has(address))).to.deep.equal(expired);
    });
  }

  it('stops during a request, and works again after a restart', async () => {
    bed.world.remove('ipamclaims', 'vms/vm1.data');
    bed.world.deliverAll();
    const asked = new Promise<void>((resolve) => {
      sinon.stub(bed.world.client, 'get').callsFake((_resource, _ref, { signal } = {}) => {
        resolve();
        return new Promise((_answer, reject) => {
          signal?.addEventListener('abort', () => reject(new Error('aborted')));
        });
      });
    });
    bed.collector.start();
    void bed.until(60);
    await asked;
    await bed.collector.stop();
    expect(held()).to.have.length(1);
    sinon.restore();
    bed.collector.start();
    await bed.until(200);
    expect(held()).to.deep.equal([]);
  });

  afterEach(() => sinon.restore());
});

describe('UnseenLeaseCheck', () => {
  /** We made a lease, and no watch has shown it. */
  function made() {
    const world = new LeakWorld();
    const lease = world.addLease('10.0.0.1', world.addClaim('c'));
    world.book.recordWrite(lease);
    return { world, search: new UnseenLeaseCheck(world, 1_000), name: lease.metadata.name };
  }

  it('forgets a lease that was deleted before the watch showed it', async () => {
    const { world, search, name } = made();
    world.remove('addressleases', name);
    world.deliver('addressleases');
    await search.round(0);
    await search.round(999);
    expect(world.book.get(name)).not.to.equal(undefined);
    await search.round(1_000);
    expect(world.book.get(name)).to.equal(undefined);
    expect(world.requests).to.deep.equal([`GET addressleases ${name}`]);
  });

  it('forgets a lease that was replaced by another', async () => {
    const { world, search, name } = made();
    world.remove('addressleases', name);
    world.addLease('10.0.0.1', world.addClaim('d'));
    for (const now of [0, 1_000]) await search.round(now);
    expect(world.book.get(name)).to.equal(undefined);
  });

  it('keeps a lease that exists, and checks it again only after a while', async () => {
    const { world, search, name } = made();
    for (const now of [0, 1_000, 1_500]) await search.round(now);
    expect(world.book.get(name)).not.to.equal(undefined);
    expect(world.requests).to.have.length(1);
  });

  it('does not check leases that the watch has shown', async () => {
    const { world, search } = made();
    world.deliver('addressleases');
    for (const now of [0, 1_000]) await search.round(now);
    expect(world.requests).to.deep.equal([]);
  });

  for (const mood of READ_FAULTS.filter((each) => each !== 'well')) {
    it(`keeps a lease if the API server is ${mood}`, async () => {
      const { world, search, name } = made();
      world.remove('addressleases', name);
      world.readFault = mood;
      for (const now of [0, 1_000]) await search.round(now);
      expect(world.book.get(name)).not.to.equal(undefined);
    });
  }
});
