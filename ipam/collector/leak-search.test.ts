import { expect } from 'chai';
import type { Pod } from '../../api/pod.js';
import { LeakWorld } from './testing/leak-world.js';
import { STATIC_UID, mirrorPod } from '../../test/mirror-pod.js';
import { LeakSearch } from './leak-search.js';

const clockOf = (world: LeakWorld) => ({ now: () => world.now, wall: () => world.now });

describe('a lease of a pod, in a pool that does not exist', () => {
  const STATUS = 'k8s.v1.cni.cncf.io/network-status';

  /** The next round makes it a case. */
  async function suspected(pod: Partial<Pod>) {
    const world = new LeakWorld();
    world.pools.clear();
    world.addLease('10.0.0.2', world.addPod('p', { status: { phase: 'Running' }, ...pod }));
    world.deliverAll();
    const search = new LeakSearch({ ...world.deps, clock: clockOf(world), collectAfterMs: 60_000 });
    await search.round();
    world.now += 60_000;
    return { world, search };
  }

  const reporting = (text: string) => ({ metadata: { name: 'p', namespace: 'vms', annotations: { [STATUS]: text } } });
  const rows: { name: string; pod?: Partial<Pod>; change?: (world: LeakWorld) => void; collected: string[] }[] = [
    { name: 'is released if the pod runs without the address', collected: ['no-pool blue.10-0-0-2'] },
    {
      name: 'is released if the pod reports other addresses',
      pod: reporting('[{"name":"vms/blue","ips":["10.0.0.3"]}]'),
      collected: ['no-pool blue.10-0-0-2'],
    },
    {
      name: 'is kept if the pod reports the address',
      pod: reporting('[{"name":"vms/blue","ips":["10.0.0.2"]}]'),
      collected: [],
    },
    {
      name: 'is kept if the pod has it as its own',
      pod: { status: { phase: 'Running', podIP: '10.0.0.2' } },
      collected: [],
    },
    {
      name: 'is kept if what the pod reports cannot be read',
      pod: reporting('[{"name":"vms/blue","ips":["10.0.0"]}]'),
      collected: [],
    },
    { name: 'is kept while the pod starts', pod: { status: { phase: 'Pending' } }, collected: [] },
    {
      name: 'is kept if the API server knows the pool',
      change: (world) => void world.put('addresspools', { metadata: { name: 'blue' } }),
      collected: [],
    },
    { name: 'is kept if the pool is known by now', change: (world) => void world.pools.add('blue'), collected: [] },
    ...(['silent', 'forbidden', 'unserved', 'misnamed'] as const).map((mood) => ({
      name: `is kept if the API server is ${mood}`,
      change: (world: LeakWorld) => void (world.readFault = mood),
      collected: [],
    })),
  ];
  for (const { name, pod = {}, change, collected } of rows) {
    it(name, async () => {
      const { world, search } = await suspected(pod);
      change?.(world);
      await search.round();
      expect(world.collected).to.deep.equal(collected);
    });
  }
});

describe('what the API server says of a suspect', () => {
  /** A claim with an address that it does not need: `10.0.0.2`. The next round makes it a case. */
  async function suspected() {
    const world = new LeakWorld();
    const claim = world.addClaim('c', ['10.0.0.1/24']);
    for (const last of [1, 2]) world.addLease(`10.0.0.${last}`, claim);
    world.deliverAll();
    const search = new LeakSearch({ ...world.deps, clock: clockOf(world), collectAfterMs: 60_000 });
    await search.round();
    world.now += 60_000;
    return { world, claim, search };
  }

  const rows: { name: string; change: (world: LeakWorld) => void; released: boolean }[] = [
    { name: 'releases it where all is as the caches say', change: () => undefined, released: true },
    {
      name: 'keeps it where the other address was deleted by hand',
      change: (world) => world.remove('addressleases', 'blue.10-0-0-1'),
      released: false,
    },
    {
      name: 'keeps it where the other address is released',
      change: (world) => {
        const lease = world.lease('blue.10-0-0-1')!;
        world.put('addressleases', { ...lease, spec: { ...lease.spec, releasedAt: '2026-01-01T00:00:00Z' } });
      },
      released: false,
    },
    {
      name: 'keeps it where the status names it now',
      change: (world) => void world.put('ipamclaims', { ...world.claim('vms/c')!, status: { ips: ['10.0.0.2/24'] } }),
      released: false,
    },
    {
      name: 'keeps it where the status names none any more',
      change: (world) => void world.put('ipamclaims', { ...world.claim('vms/c')!, status: { ips: [] } }),
      released: false,
    },
    {
      name: 'keeps it where a pod has come up with it',
      change: (world) => {
        const annotations = {
          'k8s.v1.cni.cncf.io/networks': '[{"name":"blue","ipam-claim-reference":"c"}]',
          'k8s.v1.cni.cncf.io/network-status': '[{"name":"vms/blue","ips":["10.0.0.2"]}]',
        };
        world.addPod('user', { metadata: { name: 'user', namespace: 'vms', annotations } });
      },
      released: false,
    },
    {
      name: 'keeps it where the claim is gone: that is another matter',
      change: (world) => world.remove('ipamclaims', 'vms/c'),
      released: false,
    },
    {
      name: 'keeps it where somebody has written to it',
      change: (world) => void world.put('addressleases', world.lease('blue.10-0-0-2')!),
      released: false,
    },
    {
      name: 'keeps it where the server is ill',
      change: (world) => {
        world.readFault = 'overloaded';
      },
      released: false,
    },
  ];
  for (const { name, change, released } of rows) {
    it(name, async () => {
      const { world, search } = await suspected();
      change(world);
      await search.round();
      expect(world.lease('blue.10-0-0-2')?.spec).to.have.property('owner');
      expect(world.lease('blue.10-0-0-2')?.spec.releasedAt !== undefined).to.equal(released);
      expect(world.collected.length).to.equal(released ? 1 : 0);
      expect(world.kept.length).to.equal(released ? 0 : 1);
    });
  }

  it('keeps it where the gate closes while the server is asked', async () => {
    const { world, search } = await suspected();
    world.beforeRequest = () => (world.isGateOpen = false);
    await search.round();
    expect(world.lease('blue.10-0-0-2')?.spec.releasedAt).to.equal(undefined);
    expect(world.requests.filter((request) => request.startsWith('write'))).to.deep.equal([]);
  });

  it('is looked for in slices, between which others have their turn', async () => {
    const world = new LeakWorld();
    const claim = world.addClaim('c');
    for (let index = 0; index < 4_001; index++) world.addLease(`10.0.${index >> 8}.${index & 255}`, claim);
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    let suspects = 0;
    const report = { ...world.report, candidates: (count: number) => void (suspects = count) };
    const clock = clockOf(world);
    const seen: number[] = [];
    const watch = () => {
      seen.push(suspects);
      if (suspects === 0) setImmediate(watch);
    };
    setImmediate(watch);
    await new LeakSearch({ ...world.deps, report, clock, collectAfterMs: 60_000 }).round();
    expect(suspects).to.equal(4_001);
    expect(seen).to.have.lengthOf.at.least(2);
  });

  it('is asked for once in a while only', async () => {
    const { world, search } = await suspected();
    world.readFault = 'overloaded';
    for (let count = 0; count < 4; count++) {
      await search.round();
      world.now += 20_000;
    }
    expect(world.requests).to.have.length(1);
  });
});

describe('the lease of a static pod', () => {
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

  it('is kept when its mirror pod is created again', async () => {
    const collected = await lookAfter((world) => {
      world.remove('pods', 'apps/web');
      world.put('pods', mirrorPod('mirror-2'));
    });
    expect(collected).to.deep.equal([]);
  });

  it('is kept when caches have missed the new mirror pod', async () => {
    const collected = await lookAfter((world) => {
      world.remove('pods', 'apps/web');
      world.deliverAll();
      world.put('pods', mirrorPod('mirror-2'));
      world.deliverAll = () => undefined;
    });
    expect(collected).to.deep.equal([]);
  });

  it('is released when no pod of its name mirrors it any more', async () => {
    const collected = await lookAfter((world) => {
      world.remove('pods', 'apps/web');
      world.put('pods', mirrorPod('u', { name: 'forged' }));
    });
    expect(collected).to.deep.equal(['orphan blue.10-0-0-1']);
  });
});
