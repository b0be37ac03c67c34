import { expect } from 'chai';
import type { Pod } from '../../api/pod.js';
import { LeakWorld, READ_FAULTS } from './testing/leak-world.js';
import { STATIC_UID, mirrorPod } from '../../test/objects/mirror-pod.js';
import { LeakSearch, readLiveOwner } from './leak-search.js';
import type { LeaseOwner } from '../../api/address-lease.js';

const clockOf = (world: LeakWorld) => ({ now: () => world.now, wall: () => world.now });

describe('LeakSearch of a pod’s lease in a pool that does not exist', () => {
  const STATUS = 'k8s.v1.cni.cncf.io/network-status';

  /** The next round checks the lease. */
  async function withCandidate(pod: Partial<Pod>) {
    const world = new LeakWorld();
    world.pools.clear();
    world.addLease('10.0.0.2', world.addPod('p', { status: { phase: 'Running' }, ...pod }));
    world.deliverAll();
    const search = new LeakSearch({ ...world.deps, clock: clockOf(world), collectAfterMs: 60_000 });
    await search.round();
    world.now += 60_000;
    return { world, search };
  }

  const reporting = (ips: string) => {
    const annotations = { [STATUS]: `[{"name":"vms/blue","ips":${ips}}]` };
    return { metadata: { name: 'p', namespace: 'vms', annotations } };
  };
  type Row = [string, { pod?: Partial<Pod>; change?: (world: LeakWorld) => void; isReleased?: boolean }];
  const rows: Row[] = [
    ['is released if the pod runs without the address', { isReleased: true }],
    ['is released if the pod reports other addresses', { pod: reporting('["10.0.0.3"]'), isReleased: true }],
    ['is kept if the pod reports the address', { pod: reporting('["10.0.0.2"]') }],
    ['is kept if the pod has it as its own address', { pod: { status: { phase: 'Running', podIP: '10.0.0.2' } } }],
    ['is kept if the report of the pod is invalid', { pod: reporting('["10.0.0"]') }],
    [
      'is kept if the report of the pod cannot be read',
      { pod: { metadata: { name: 'p', namespace: 'vms', annotations: { [STATUS]: '[{' } } } },
    ],
    ['is kept while the pod starts', { pod: { status: { phase: 'Pending' } } }],
    [
      'is kept if the API server knows the pool',
      { change: (world) => void world.put('addresspools', { metadata: { name: 'blue' } }) },
    ],
    ['is kept if the directory knows the pool by now', { change: (world) => void world.pools.add('blue') }],
    ...(['silent', 'forbidden', 'unserved', 'misnamed'] as const).map((mood): Row => [
      `is kept if the API server is ${mood}`,
      { change: (world) => void (world.readFault = mood) },
    ]),
  ];
  for (const [name, { pod = {}, change, isReleased = false }] of rows) {
    it(name, async () => {
      const { world, search } = await withCandidate(pod);
      change?.(world);
      await search.round();
      expect(world.collected).to.deep.equal(isReleased ? ['no-pool blue.10-0-0-2'] : []);
    });
  }
});

describe('LeakSearch while a cache is stale', () => {
  it('reports no number of candidates, because it does not know them', async () => {
    const world = new LeakWorld();
    world.addLease('10.0.0.1', { metadata: { namespace: 'vms', name: 'gone', uid: 'gone' } });
    world.deliverAll();
    const counts: (number | undefined)[] = [];
    const report = { ...world.report, candidates: (n: number) => counts.push(n), clear: () => counts.push(undefined) };
    const search = new LeakSearch({ ...world.deps, report, clock: clockOf(world), collectAfterMs: 60_000 });
    await search.round();
    world.claims.hasSynced = false;
    await search.round();
    expect(counts).to.deep.equal([1, undefined]);
  });
});

function setStatus(world: LeakWorld, ips: string[]): void {
  world.put('ipamclaims', { ...world.claim('vms/c')!, status: { ips } });
}

describe('LeakSearch of a surplus lease', () => {
  /** A claim has the surplus address `10.0.0.2`. The next round checks it. */
  async function withCandidate() {
    const world = new LeakWorld();
    const claim = world.addClaim('c', ['10.0.0.1/24']);
    for (const last of [1, 2]) world.addLease(`10.0.0.${last}`, claim);
    world.deliverAll();
    const search = new LeakSearch({ ...world.deps, clock: clockOf(world), collectAfterMs: 60_000 });
    await search.round();
    world.now += 60_000;
    return { world, claim, search };
  }

  const rows: [string, (world: LeakWorld) => void, boolean?][] = [
    ['releases it if the API server agrees with the caches', () => undefined, true],
    ['keeps it if the other lease was deleted by hand', (world) => world.remove('addressleases', 'blue.10-0-0-1')],
    [
      'keeps it if the other lease is released',
      (world) => {
        const lease = world.lease('blue.10-0-0-1')!;
        world.put('addressleases', { ...lease, spec: { ...lease.spec, releasedAt: '2026-01-01T00:00:00Z' } });
      },
    ],
    ['keeps it if the status contains its address now', (world) => setStatus(world, ['10.0.0.2/24'])],
    ['keeps it if the status contains no address any more', (world) => setStatus(world, [])],
    [
      'keeps it if a pod has started with it',
      (world) => {
        const annotations = {
          'k8s.v1.cni.cncf.io/networks': '[{"name":"blue","ipam-claim-reference":"c"}]',
          'k8s.v1.cni.cncf.io/network-status': '[{"name":"vms/blue","ips":["10.0.0.2"]}]',
        };
        world.addPod('user', { metadata: { name: 'user', namespace: 'vms', annotations } });
      },
    ],
    ['keeps it as surplus if the claim is gone', (world) => world.remove('ipamclaims', 'vms/c')],
    [
      'keeps it if another writer has changed it',
      (world) => void world.put('addressleases', world.lease('blue.10-0-0-2')!),
    ],
    ['keeps it if the API server is overloaded', (world) => void (world.readFault = 'overloaded')],
  ];
  for (const [name, change, released = false] of rows) {
    it(name, async () => {
      const { world, search } = await withCandidate();
      change(world);
      await search.round();
      expect(world.lease('blue.10-0-0-2')?.spec).to.have.property('owner');
      expect(world.lease('blue.10-0-0-2')?.spec.releasedAt !== undefined).to.equal(released);
      expect(world.collected.length).to.equal(released ? 1 : 0);
      expect(world.kept.length).to.equal(released ? 0 : 1);
    });
  }

  it('keeps it if the gate closes during the requests', async () => {
    const { world, search } = await withCandidate();
    world.beforeRequest = () => (world.isGateOpen = false);
    await search.round();
    expect(world.lease('blue.10-0-0-2')?.spec.releasedAt).to.equal(undefined);
    expect(world.requests.filter((request) => request.startsWith('write'))).to.deep.equal([]);
  });

  it('compares leases in slices, so that other work can run in between', async () => {
    const world = new LeakWorld();
    const claim = world.addClaim('c');
    for (let index = 0; index < 200; index++) world.addLease(`10.0.0.${index}`, claim);
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    let candidates = 0;
    const report = { ...world.report, candidates: (count: number) => void (candidates = count) };
    let reads = 0;
    // each look at the clock takes a millisecond
    const clock = { now: () => world.now + reads++, wall: () => world.now };
    const seen: number[] = [];
    const watch = () => {
      seen.push(candidates);
      if (candidates === 0) setImmediate(watch);
    };
    setImmediate(watch);
    await new LeakSearch({ ...world.deps, report, clock, collectAfterMs: 60_000 }).round();
    expect(candidates).to.equal(200);
    expect(seen).to.have.lengthOf.within(8, 12);
  });

  it('asks the API server about it only once in a while', async () => {
    const { world, search } = await withCandidate();
    world.readFault = 'overloaded';
    for (let count = 0; count < 4; count++) {
      await search.round();
      world.now += 20_000;
    }
    expect(world.requests).to.have.length(1);
  });
});

describe('LeakSearch of the lease of a static pod', () => {
  async function lookAfter(change: (world: LeakWorld) => void): Promise<string[]> {
    const world = new LeakWorld();
    world.put('pods', mirrorPod('mirror-1'));
    world.addLease('10.0.0.1', mirrorPod(STATIC_UID));
    world.deliverAll();
    const search = new LeakSearch({ ...world.deps, clock: clockOf(world), collectAfterMs: 60_000 });
    await search.round();
    change(world);
    for (let look = 0; look < 3; look++) {
      world.deliverAll();
      await search.round();
      world.now += 60_000;
    }
    return world.collected;
  }

  it('keeps it when the mirror pod is recreated', async () => {
    const collected = await lookAfter((world) => {
      world.remove('pods', 'apps/web');
      world.put('pods', mirrorPod('mirror-2'));
    });
    expect(collected).to.deep.equal([]);
  });

  it('keeps it when the caches have missed the new mirror pod', async () => {
    const collected = await lookAfter((world) => {
      world.remove('pods', 'apps/web');
      world.deliverAll();
      world.put('pods', mirrorPod('mirror-2'));
      world.deliverAll = () => undefined;
    });
    expect(collected).to.deep.equal([]);
  });

  it('releases it when no pod of its name mirrors it any more', async () => {
    const collected = await lookAfter((world) => {
      world.remove('pods', 'apps/web');
      world.put('pods', mirrorPod('u', { name: 'forged' }));
    });
    expect(collected).to.deep.equal(['orphan blue.10-0-0-1']);
  });
});

describe('readLiveOwner', () => {
  const owner = (uid: string): LeaseOwner => ({ kind: 'IPAMClaim', namespace: 'vms', name: 'c', uid });

  it('finds an existing owner', async () => {
    const world = new LeakWorld();
    const { uid } = world.addClaim('c').metadata;
    expect(await readLiveOwner(world.client, owner(uid!))).to.have.property('kind', 'alive');
  });

  it('reports an owner as gone if the API server does not find it', async () => {
    expect(await readLiveOwner(new LeakWorld().client, owner('u'))).to.deep.equal({ kind: 'gone' });
    const pod: LeaseOwner = { kind: 'Pod', namespace: 'vms', name: 'p', uid: 'u' };
    expect(await readLiveOwner(new LeakWorld().client, pod)).to.deep.equal({ kind: 'gone' });
  });

  it('reports an owner as gone if another object has its name', async () => {
    const world = new LeakWorld();
    world.addClaim('c');
    expect(await readLiveOwner(world.client, owner('earlier'))).to.deep.equal({ kind: 'gone' });
  });

  for (const mood of READ_FAULTS.filter((each) => each !== 'well')) {
    it(`reports an owner as unknown if the API server is ${mood}`, async () => {
      const world = new LeakWorld();
      world.readFault = mood;
      const live = await readLiveOwner(world.client, owner('u'));
      expect(live.kind).to.equal('unknown');
    });
  }

  it('reports an owner as unknown if the answer is not an object of the API server', async () => {
    const client = { get: () => Promise.resolve({ metadata: { name: 'c' } }) };
    const live = await readLiveOwner(client as never, owner('u'));
    expect(live.kind).to.equal('unknown');
  });
});
