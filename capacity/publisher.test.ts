import { expect } from 'chai';
import type { KubeObject } from '../api/meta.js';
import { silentLogger } from '../kube/log.js';
import { StatusError, TransportError } from '../kube/errors.js';
import { compiledPool, leaseOf } from '../test/objects/lease-objects.js';
import { ManualClock } from '../test/manual-clock.js';
import type { PoolGiven } from '../test/objects/pool-objects.js';
import { toNodeRecord } from './node-record.js';
import type { PodRecord } from './pod-record.js';
import { Publisher } from './publisher.js';
import { Inventory, readInventoryEntry } from './inventory.js';

const BLUE = 'ipam.holdfast.dev/blue';
const SETTLE_MS = 1_000;

type Counts = Record<string, string | null>;

interface NodePatch {
  metadata: { uid?: string };
  status: { capacity: Counts; allocatable: Counts };
}

/** An API server with nodes, which a publisher sees as they are. */
class World {
  readonly clock = new ManualClock(1_000_000);
  readonly nodes = new Map<string, { capacity: Counts; allocatable: Counts; labels: Record<string, string> }>();
  readonly writes: string[] = [];
  /** Of the nodes that were written to, in that order. */
  readonly uids: unknown[] = [];
  readonly term = new AbortController();
  failure: Error | undefined;
  /** During each write. */
  meanwhile: () => void = () => undefined;
  #version = 100;
  pods: PodRecord[] = [];
  readonly inventory = new Inventory();
  publisher = this.#publisher();

  constructor(...names: string[]) {
    for (const name of names) this.nodes.set(name, { capacity: { cpu: '4' }, allocatable: { cpu: '4' }, labels: {} });
  }

  restart(): void {
    this.publisher = this.#publisher();
  }

  /** @param specs of the pools that are published */
  round(...specs: [string, PoolGiven][]): Promise<boolean> {
    const pools = specs.map(([name, spec]) => compiledPool({ publishCapacity: true, network: name, ...spec }, name));
    const nodes = [...this.nodes].map(([name, { capacity, allocatable, labels }]) =>
      toNodeRecord({
        metadata: { name, uid: `${name}-uid`, resourceVersion: String(this.#version), labels },
        status: { capacity, allocatable },
      } as KubeObject),
    );
    const { pods, inventory, clock } = this;
    const now = clock.now();
    return this.publisher.publish({
      pools,
      nodes,
      pods,
      inventory,
      blocksOf: () => [],
      now,
      maxStalenessMs: 0,
      attachedBefore: 0,
    });
  }

  /** All that the pool blue has is leased. */
  exhaust(): void {
    for (let host = 1; host <= 6; host++) this.inventory.add(readInventoryEntry(leaseOf(`10.0.0.${host}`, 1)));
  }

  /** Rounds until nothing more is written. */
  async calm(...specs: [string, PoolGiven][]): Promise<void> {
    for (let rounds = 0; rounds < 20; rounds++) {
      this.clock.advanceTo(this.clock.now() + SETTLE_MS);
      await this.round(...specs);
    }
  }

  shown(key = BLUE): (string | null | undefined)[] {
    return [...this.nodes.values()].map(({ allocatable }) => allocatable[key]);
  }

  #publisher(): Publisher {
    return new Publisher({
      client: { patch: (_resource, { name }, patch) => this.#patch(name, patch) as never },
      clock: this.clock,
      log: silentLogger,
      metrics: { observed: () => undefined, written: () => undefined },
      settleMs: SETTLE_MS,
      offerTimeoutMs: 10_000,
      signal: this.term.signal,
    });
  }

  #patch(name: string, patch: unknown): Promise<KubeObject> {
    this.writes.push(name);
    if (this.failure !== undefined) return Promise.reject(this.failure);
    const { metadata, status } = (patch as { body: NodePatch }).body;
    this.uids.push(metadata.uid);
    this.meanwhile();
    const node = this.nodes.get(name);
    for (const field of ['capacity', 'allocatable'] as const) {
      for (const [key, count] of Object.entries(status[field])) {
        if (count === null) delete node?.[field][key];
        else if (node !== undefined) node[field][key] = count;
      }
    }
    this.#version++;
    return Promise.resolve({ metadata: { name, resourceVersion: String(this.#version) } });
  }
}

describe('the publisher of free addresses', () => {
  it('divides the free addresses among nodes, and then writes nothing', async () => {
    const world = new World('n1', 'n2');
    await world.calm(['blue', {}]);
    expect(world.shown()).to.deep.equal(['3', '3']);
    expect(world.nodes.get('n1')?.capacity).to.deep.equal({ cpu: '4', [BLUE]: '3' });
    world.writes.length = 0;
    await world.calm(['blue', {}]);
    expect(world.writes).to.deep.equal([]);
  });

  it('writes all pools of a node at once', async () => {
    const world = new World('n1');
    await world.round(['blue', {}], ['green', {}]);
    expect(world.writes).to.deep.equal(['n1']);
  });

  it('raises no value before the settle time after its start', async () => {
    const world = new World('n1', 'n2');
    expect(await world.round(['blue', {}])).to.equal(true);
    expect(world.shown()).to.deep.equal(['0', '0']);
    world.clock.advanceTo(world.clock.now() + SETTLE_MS);
    await world.round(['blue', {}]);
    expect(world.shown()).to.deep.equal(['3', '3']);
  });

  it('keeps the shown values after a restart', async () => {
    const world = new World('n1', 'n2');
    await world.calm(['blue', {}]);
    world.restart();
    world.writes.length = 0;
    await world.calm(['blue', {}]);
    expect([world.shown(), world.writes]).to.deep.equal([['3', '3'], []]);
  });

  it('restores values that other software removed or changed', async () => {
    const world = new World('n1', 'n2');
    await world.calm(['blue', {}]);
    delete world.nodes.get('n1')?.capacity[BLUE];
    delete world.nodes.get('n1')?.allocatable[BLUE];
    await world.calm(['blue', {}]);
    expect(world.shown()).to.deep.equal(['3', '3']);
    world.nodes.get('n1')!.capacity[BLUE] = '0';
    await world.calm(['blue', {}]);
    expect(world.nodes.get('n1')?.capacity[BLUE]).to.equal('3');
    world.nodes.get('n2')!.capacity[BLUE] = world.nodes.get('n2')!.allocatable[BLUE] = '500';
    await world.calm(['blue', {}]);
    expect(world.shown().reduce((sum, count) => sum + Number(count), 0)).to.be.at.most(6);
  });

  it('writes the planned value over a value of other software', async () => {
    const world = new World('n1');
    await world.calm(['blue', {}]);
    world.exhaust();
    world.nodes.get('n1')!.capacity[BLUE] = '99';
    await world.round(['blue', {}]);
    expect(world.nodes.get('n1')).to.deep.include({ capacity: { cpu: '4', [BLUE]: '0' } });
    expect(world.shown()).to.deep.equal(['0']);
  });

  it('removes keys of deleted pools, and on nodes without the network', async () => {
    const world = new World('n1', 'n2');
    await world.calm(['blue', {}]);
    world.nodes.get('n1')!.labels = { zone: 'a' };
    await world.calm(['blue', { nodeSelector: { zone: 'a' } }]);
    expect(world.shown()).to.deep.equal(['6', undefined]);
    await world.calm();
    expect(world.shown()).to.deep.equal([undefined, undefined]);
    expect(world.nodes.get('n1')?.capacity).to.deep.equal({ cpu: '4' });
  });

  it('writes all other nodes if one write fails, and throws its error', async () => {
    const world = new World('n1', 'n2');
    await world.calm(['blue', {}]);
    world.failure = new StatusError({ status: 500, reason: 'InternalError', message: 'no' } as never);
    let thrown: unknown;
    await world.round().catch((error: unknown) => (thrown = error));
    expect(thrown).to.be.an('error');
    expect(world.writes.slice(-2).sort()).to.deep.equal(['n1', 'n2']);
    expect(world.shown()).to.deep.equal(['3', '3']);
    world.failure = undefined;
    await world.calm();
    expect(world.shown()).to.deep.equal([undefined, undefined]);
  });

  const silences = [
    { name: 'that never reached the API server', error: new TransportError('unsent', 'refused') },
    { name: 'that had no answer', error: new TransportError('broken', 'reset') },
  ];
  for (const { name, error } of silences) {
    it(`repeats a write ${name} in the next round`, async () => {
      const world = new World('n1', 'n2');
      await world.calm(['blue', {}]);
      world.exhaust();
      world.failure = error;
      await world.round(['blue', {}]).catch(() => undefined);
      expect(world.shown()).to.deep.equal(['3', '3']);
      world.failure = undefined;
      await world.round(['blue', {}]);
      expect(world.shown()).to.deep.equal(['0', '0']);
    });
  }

  it('does not write a new node of the same name', async () => {
    const world = new World('n1');
    await world.round(['blue', {}]);
    expect(world.uids).to.deep.equal(['n1-uid']);
  });

  it('writes nothing after its leadership ends during a round', async () => {
    const nodes = Array.from({ length: 20 }, (_, index) => `n${index}`);
    const world = new World(...nodes);
    world.meanwhile = () => world.term.abort();
    await world.round(['blue', {}]);
    expect(world.writes).to.deep.equal(['n0']);
  });

  it('examines a pending pod even if many pods of other namespaces wait', async () => {
    const world = new World('n1', 'n2');
    const [, n2] = world.nodes.values();
    n2!.labels = { zone: 'b' };
    for (const host of [1, 2, 3, 4, 5]) world.inventory.add(readInventoryEntry(leaseOf(`10.0.0.${host}`, 1)));
    const podIn = (namespace: string, requested: number, zone?: string): PodRecord => ({
      uid: namespace,
      namespace,
      requests: new Map([[BLUE, requested]]),
      isLeaving: false,
      constraints: {
        nodeSelector: zone === undefined ? {} : { zone },
        tolerations: [{ key: namespace, operator: 'Exists', value: '', effect: '' }],
      },
    });
    world.pods = [...Array.from({ length: 500 }, (_, index) => podIn(`ns-${index}`, 2)), podIn('late', 1, 'b')];
    await world.calm(['blue', {}]);
    for (let rounds = 0; rounds < 30 && world.shown()[1] !== '1'; rounds++) {
      world.clock.advanceTo(world.clock.now() + 60_000);
      await world.round(['blue', {}]);
    }
    expect(world.shown()).to.deep.equal(['0', '1']);
  });

  describe('with pods that a tenant has bound to nodes', () => {
    const BLUE_OF_TEAM: [string, PoolGiven] = ['blue', { cidr: '10.0.0.0/29', namespaces: ['team-a'] }];
    const boundPod = (namespace: string, node: string): PodRecord => {
      return { uid: 'pod-1', namespace, node, requests: new Map([[BLUE, 1e6]]), isLeaving: false };
    };

    it('shows no more for a pod than it can have networks, however much it requests', async () => {
      const world = new World('n1', 'n2');
      world.pods = [boundPod('team-b', 'n1')];
      await world.calm(BLUE_OF_TEAM);
      expect(world.shown()).to.deep.equal(['67', '3']);
    });

    it('sets no addresses aside for pods on nodes that do not exist', async () => {
      const world = new World('n1', 'n2');
      world.pods = [boundPod('team-a', 'gone')];
      await world.calm(BLUE_OF_TEAM);
      expect(world.shown()).to.deep.equal(['3', '3']);
    });
  });

  it('shows at most MAX_SHARE addresses of a large network', async () => {
    const world = new World('n1');
    await world.calm(['blue', { subnets: [{ cidr: 'fd00::/64' }] }]);
    expect(world.shown()).to.deep.equal(['10000']);
  });
});
