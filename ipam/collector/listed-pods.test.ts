import { expect } from 'chai';
import type { Pod } from '../../api/pod.js';
import { readLease } from '../../addressing/lease/lease.js';
import { LeakSearch } from './leak-search.js';
import { ListedPods, MAX_NODES_PER_ROUND } from './listed-pods.js';
import { LeakWorld } from './testing/leak-world.js';

const AFTER_MS = 60_000;
const on = (nodeName: string): Partial<Pod> => ({ spec: { nodeName } });
const clockOf = (world: LeakWorld) => ({ now: () => world.now, wall: () => world.now });

/** Pods with a lease each, one on each node. */
function worldWithNodes(count: number): LeakWorld {
  const world = new LeakWorld();
  for (let n = 0; n < count; n++) {
    world.nodes.cache.set(`node${n}`, { metadata: { name: `node${n}` } });
    world.addLease(`10.0.${n >> 8}.${n & 255}`, world.addPod(`p${n}`, on(`node${n}`)));
  }
  world.deliverAll();
  return world;
}

/** Rounds of a search, 30 s apart. */
async function rounds(world: LeakWorld, count: number, search: LeakSearch): Promise<void> {
  for (let round = 0; round < count; round++) {
    await search.round();
    world.now += 30_000;
    world.deliverAll();
  }
}

const searchIn = (world: LeakWorld) =>
  new LeakSearch({ ...world.deps, clock: clockOf(world), collectAfterMs: AFTER_MS });
const listsIn = (world: LeakWorld) => world.requests.filter((request) => request === 'LIST pods').length;
const readsIn = (world: LeakWorld) => world.requests.filter((request) => request.startsWith('GET pods'));

describe('the search for leaked leases of pods', () => {
  it('lists no pods if no pod has a lease', async () => {
    const world = new LeakWorld();
    world.addLease('10.0.0.1', world.addClaim('c', ['10.0.0.1/24']));
    world.deliverAll();
    await rounds(world, 4, searchIn(world));
    expect(world.requests).to.deep.equal([]);
  });

  it('reads no pod live while all of them exist', async () => {
    const world = worldWithNodes(5);
    await rounds(world, 6, searchIn(world));
    expect(readsIn(world)).to.deep.equal([]);
    expect(world.collected).to.deep.equal([]);
  });

  it('releases the lease of a pod of a node that is gone in 90 s, whatever the number of nodes', async () => {
    const world = worldWithNodes(3 * MAX_NODES_PER_ROUND);
    const search = searchIn(world);
    await rounds(world, 4, search);
    world.remove('pods', 'vms/p700');
    world.nodes.cache.delete('node700');
    await rounds(world, 3, search);
    expect(world.collected).to.deep.equal(['orphan blue.10-0-2-188']);
  });

  it('releases that of a node without an agent too, when the turn of the node has come', async () => {
    const world = worldWithNodes(3 * MAX_NODES_PER_ROUND);
    const search = searchIn(world);
    await rounds(world, 4, search);
    world.remove('pods', 'vms/p700');
    await rounds(world, 3 + 2, search);
    expect(world.collected).to.deep.equal(['orphan blue.10-0-2-188']);
  });

  describe('of a node with an agent', () => {
    const labels = { 'app.kubernetes.io/component': 'agent' };
    /** A pod with a lease was deleted by force, and another pod may be an agent. */
    function worldWithAgent(namespace: string, more: object = { labels }): LeakWorld {
      const world = worldWithNodes(1);
      world.addPod('a', { ...on('node0'), metadata: { name: 'a', namespace, ...more } });
      world.remove('pods', 'vms/p0');
      return world;
    }

    it('releases nothing, because containers of a pod that was deleted by force may run', async () => {
      const world = worldWithAgent('holdfast-agents');
      await rounds(world, 6, searchIn(world));
      expect(world.collected).to.deep.equal([]);
      expect(readsIn(world)).to.deep.equal([]);
      world.remove('pods', 'holdfast-agents/a');
      await rounds(world, 4, searchIn(world));
      expect(world.collected).to.deep.equal(['orphan blue.10-0-0-0']);
    });

    it('releases a lease whose pool does not exist', async () => {
      const world = worldWithAgent('holdfast-agents');
      world.pools.clear();
      await rounds(world, 4, searchIn(world));
      expect(world.collected).to.deep.equal(['no-pool blue.10-0-0-0']);
    });

    for (const [title, world] of [
      ['a pod of a tenant has its label', () => worldWithAgent('vms')],
      ['another pod is in its namespace', () => worldWithAgent('holdfast-agents', {})],
    ] as const)
      it(`does not assume one if ${title}`, async () => {
        const there = world();
        await rounds(there, 4, searchIn(there));
        expect(there.collected).to.deep.equal(['orphan blue.10-0-0-0']);
      });
  });

  it('releases that of a pod without a node by live reads alone', async () => {
    const world = new LeakWorld();
    world.addLease('10.0.0.1', world.addPod('gone', { spec: {} }));
    world.addLease('10.0.0.2', world.addPod('lives', { spec: {} }));
    world.remove('pods', 'vms/gone');
    world.deliverAll();
    await rounds(world, 4, searchIn(world));
    expect(world.collected).to.deep.equal(['orphan blue.10-0-0-1']);
    expect(listsIn(world)).to.equal(0);
  });

  it('lists a bounded number of nodes in a round', async () => {
    const world = worldWithNodes(2 * MAX_NODES_PER_ROUND);
    const search = searchIn(world);
    await search.round();
    expect(listsIn(world)).to.equal(MAX_NODES_PER_ROUND);
    // all nodes are gone, and their pods are not deleted yet
    world.nodes.cache.clear();
    await search.round();
    expect(listsIn(world)).to.equal(2 * MAX_NODES_PER_ROUND);
    expect(world.collected).to.deep.equal([]);
  });

  it('comes to each node in turn while a tenant deletes pods by force on most of them', async () => {
    const world = worldWithNodes(2 * MAX_NODES_PER_ROUND);
    const search = searchIn(world);
    // their leases look leaked, and are changed before they are checked
    const rush = () => {
      for (let n = 0; n < 400; n++) {
        world.remove('pods', `vms/p${n}`);
        world.put('addressleases', world.lease(`blue.10-0-${n >> 8}-${n & 255}`)!);
      }
    };
    world.remove('pods', 'vms/p450');
    for (let round = 0; round < 14; round++) {
      rush();
      await rounds(world, 1, search);
    }
    expect(world.collected).to.include('orphan blue.10-0-1-194');
  });

  for (const mood of ['silent', 'forbidden', 'overloaded', 'proxied'] as const) {
    it(`releases nothing if the pods of a node cannot be listed because the API server is ${mood}`, async () => {
      const world = worldWithNodes(1);
      const search = searchIn(world);
      world.readFault = mood;
      await rounds(world, 6, search);
      expect(world.collected).to.deep.equal([]);
      expect(readsIn(world)).to.deep.equal([]);
    });
  }

  it('keeps the lease of a pod that an old list lacks', async () => {
    const world = worldWithNodes(1);
    const { client } = world;
    const old = { listAs: () => Promise.resolve({ items: [], resourceVersion: '1' }) };
    const mixed = Object.assign(Object.create(client) as typeof client, old);
    const search = new LeakSearch({ ...world.deps, client: mixed, clock: clockOf(world), collectAfterMs: AFTER_MS });
    await rounds(world, 6, search);
    expect(readsIn(world)).to.not.deep.equal([]);
    expect(world.collected).to.deep.equal([]);
  });
});

describe('ListedPods', () => {
  it('knows nothing of a node that it has not listed', async () => {
    const world = new LeakWorld();
    const pods = new ListedPods({ ...world.deps, clock: clockOf(world) });
    const pod = world.addPod('p');
    expect(pods.find('vms/p', 'n1')).to.equal('unknown');
    await pods.round([readLease(world.addLease('10.0.0.1', pod))], new Set());
    expect(pods.find('vms/p', 'n1')).to.deep.equal({ metadata: { uid: pod.metadata.uid } });
    expect(pods.find('vms/other', 'n1')).to.equal(undefined);
    expect(pods.find('vms/p', 'n2')).to.equal('unknown');
    expect(pods.find('vms/p', undefined)).to.equal(undefined);
  });
});
