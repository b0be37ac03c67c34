import { expect } from 'chai';
import type { Client } from '../../kube/client.js';
import { LeakSearch } from './leak-search.js';
import { MAX_NODES_PER_ROUND } from './listed-pods.js';
import { LeakWorld } from './testing/leak-world.js';

/** The defaults. */
const AFTER_MS = 60_000;
const ROUND_MS = 30_000;
/** Nodes that exist. */
const LIVE = 1_000;

const MAX_URGENT = 200;
/** The bound of decision 91: each of two lists waits until all nodes that are urgent were listed. */
const roundsFor = (urgent: number) => Math.max(3, 2 * Math.ceil(urgent / MAX_URGENT) + 1);

/** How many leases a round checks. */
const MAX_CHECKS = 500;

/** Nodes with a pod each, which has leases: pod `p1` on `node1`. */
class Cluster {
  readonly world = new LeakWorld();
  readonly #search: LeakSearch;

  constructor() {
    const { world } = this;
    const clock = { now: () => world.now, wall: () => world.now };
    // by name, because the API server in memory compares the node of each pod
    const listAs: Client['listAs'] = (_resource, transform, options) => {
      const pod = world.objects.pods.get(`vms/${options?.fieldSelector?.replace('spec.nodeName=node', 'p')}`);
      return Promise.resolve({ items: pod === undefined ? [] : [transform(pod as never)], resourceVersion: '1' });
    };
    const client = Object.assign(Object.create(world.client) as Client, { listAs });
    this.#search = new LeakSearch({ ...world.deps, client, clock, collectAfterMs: AFTER_MS });
    for (let n = 0; n < LIVE; n++) this.addNode(n);
    world.deliverAll();
  }

  addNode(n: number, leases = 1): void {
    const { world } = this;
    const name = `node${n}`;
    world.nodes.cache.set(name, { metadata: { name } });
    const pod = world.addPod(`p${n}`, { spec: { nodeName: name } });
    for (let index = 0; index < leases; index++) world.addLease(addressOf(n, index), pod);
  }

  /** The node is removed. Its pod stays, because of a finalizer or because the garbage collector of pods has not come yet. */
  removeNode(n: number): void {
    this.world.nodes.cache.delete(`node${n}`);
  }

  removePod(n: number): void {
    this.world.remove('pods', `vms/p${n}`);
  }

  async rounds(count: number): Promise<void> {
    const { world } = this;
    for (let round = 0; round < count; round++) {
      world.deliver('addressleases', 'ipamclaims');
      world.pods.lastProgress = world.now;
      await this.#search.round();
      world.now += ROUND_MS;
    }
  }
}

const addressOf = (n: number, index = 0) => `${10 + index}.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
const releaseOf = (n: number) => `orphan blue.${addressOf(n).replaceAll('.', '-')}`;

describe('the search for leaked leases of pods on nodes that are gone', function () {
  this.timeout(120_000);

  for (const gone of [1, 350, 450, 1_000, 2_000, 5_000])
    it(`releases the leases of ${gone} such nodes in ${roundsFor(gone) / 2} minutes`, async () => {
      const cluster = new Cluster();
      await cluster.rounds(LIVE / MAX_NODES_PER_ROUND);
      for (let n = LIVE; n < LIVE + gone; n++) {
        cluster.addNode(n);
        cluster.removeNode(n);
        cluster.removePod(n);
      }
      await cluster.rounds(roundsFor(gone));
      expect(cluster.world.collected).to.have.length(gone);
    });

  it('releases their leases in turns if a round cannot check all that are due', async () => {
    const cluster = new Cluster();
    for (let n = LIVE; n < LIVE + 450; n++) {
      cluster.addNode(n, 10);
      cluster.removeNode(n);
      cluster.removePod(n);
    }
    await cluster.rounds(roundsFor(450) + 4_500 / MAX_CHECKS);
    expect(cluster.world.collected).to.have.length(4_500);
  });

  it('releases their leases if their pool does not exist any more either', async () => {
    const cluster = new Cluster();
    cluster.world.pools.clear();
    for (let n = LIVE; n < LIVE + 450; n++) {
      cluster.addNode(n);
      cluster.removeNode(n);
      cluster.removePod(n);
    }
    await cluster.rounds(roundsFor(450) + 1);
    expect(cluster.world.collected).to.have.length(450);
  });

  for (const pinned of [100, 450, 2_000])
    it(`releases one in ${roundsFor(pinned + 1) / 2} minutes while pods with finalizers stay on ${pinned} others`, async () => {
      const cluster = new Cluster();
      for (let n = LIVE; n <= LIVE + pinned; n++) {
        cluster.addNode(n);
        cluster.removeNode(n);
      }
      const victim = LIVE + pinned;
      cluster.removePod(victim);
      await cluster.rounds(roundsFor(pinned + 1));
      expect(cluster.world.collected).to.deep.equal([releaseOf(victim)]);
    });

  describe('when pods with finalizers have stayed on 2,000 such nodes for an hour', () => {
    const PINNED = 2_000;
    const cluster = new Cluster();

    before(async () => {
      for (let n = LIVE; n < LIVE + PINNED; n++) {
        cluster.addNode(n);
        cluster.removeNode(n);
      }
      await cluster.rounds(120);
      expect(cluster.world.collected).to.deep.equal([]);
    });

    it('releases the lease of a node that is gone now in 90 s', async () => {
      cluster.removeNode(1);
      cluster.removePod(1);
      await cluster.rounds(3);
      expect(cluster.world.collected).to.deep.equal([releaseOf(1)]);
    });

    it('releases that of a pod that outlives its node by a minute 90 s after its end', async () => {
      cluster.removeNode(2);
      await cluster.rounds(2);
      cluster.removePod(2);
      await cluster.rounds(3);
      expect(cluster.world.collected).to.include(releaseOf(2));
    });

    it('releases that of a pod on a node without an agent when the turn of the node has come', async () => {
      cluster.removePod(3);
      // 50 nodes in turns, if the other lists of a round are of urgent nodes
      await cluster.rounds((LIVE + PINNED) / 50 + 3);
      expect(cluster.world.collected).to.include(releaseOf(3));
    });

    it('releases that of one of these pods when it ends at last', async () => {
      cluster.removePod(LIVE);
      await cluster.rounds((LIVE + PINNED) / 50 + 3);
      expect(cluster.world.collected).to.include(releaseOf(LIVE));
    });
  });
});
