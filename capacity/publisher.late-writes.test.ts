import { expect } from 'chai';
import type { KubeObject } from '../api/meta.js';
import { TransportError } from '../kube/errors.js';
import { silentLogger } from '../kube/log.js';
import { compiledPool } from '../test/objects/lease-objects.js';
import { ManualClock } from '../test/manual-clock.js';
import { Inventory } from './inventory.js';
import { toNodeRecord } from './node-record.js';
import { Publisher } from './publisher.js';

const BLUE = 'ipam.holdfast.dev/blue';
const SETTLE_MS = 1_000;
const FREE = 6;

type Counts = Record<string, string | null>;
interface NodePatch {
  metadata: { uid?: string; resourceVersion?: string };
  status: { capacity: Counts; allocatable: Counts };
}

/** An API server with nodes. It can carry out a write long after its caller has given up. */
class Cluster {
  readonly clock = new ManualClock(1_000_000);
  readonly nodes = new Map<string, { version: number; counts: Counts }>();
  late: (() => void) | undefined;
  keepNext = false;
  #version = 100;
  publisher = this.newLeader();

  newLeader(): Publisher {
    return new Publisher({
      client: {
        patch: (_resource, { name }, patch) => this.#patch(name, (patch as { body: NodePatch }).body) as never,
      },
      clock: this.clock,
      log: silentLogger,
      metrics: { observed: () => undefined, written: () => undefined },
      settleMs: SETTLE_MS,
      offerTimeoutMs: 10_000,
      signal: new AbortController().signal,
    });
  }

  addNode(name: string): void {
    this.nodes.set(name, { version: ++this.#version, counts: {} });
  }

  async round(): Promise<void> {
    this.clock.advanceTo(this.clock.now() + 2 * SETTLE_MS);
    const pool = compiledPool({ publishCapacity: true, network: 'blue', cidr: '10.0.0.0/29' }, 'blue');
    const nodes = [...this.nodes].map(([name, { version, counts }]) =>
      toNodeRecord({
        metadata: { name, uid: `${name}-uid`, resourceVersion: String(version), labels: {} },
        status: { capacity: counts, allocatable: counts },
      } as unknown as KubeObject),
    );
    const now = this.clock.now();
    await this.publisher
      .publish({
        pools: [pool],
        nodes,
        pods: [],
        inventory: new Inventory(),
        blocksOf: () => [],
        now,
        maxStalenessMs: 0,
        attachedBefore: 0,
      })
      .catch((error: unknown) => {
        if (!(error instanceof TransportError)) throw error;
      });
  }

  /** The places for pods that schedulers see. */
  get places(): number {
    return [...this.nodes.values()].reduce((sum, { counts }) => sum + Number(counts[BLUE] ?? 0), 0);
  }

  #patch(name: string, { metadata, status }: NodePatch): Promise<KubeObject> {
    const apply = () => {
      const node = this.nodes.get(name);
      if (node === undefined) return;
      if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== String(node.version)) return;
      node.counts = { ...node.counts, ...status.allocatable };
      node.version = ++this.#version;
    };
    if (this.keepNext && Number(status.allocatable[BLUE]) > 0) {
      this.keepNext = false;
      this.late = apply;
      return Promise.reject(new TransportError('deadline', 'no complete response within 15000 ms'));
    }
    apply();
    return Promise.resolve({ metadata: { name, resourceVersion: String(this.nodes.get(name)?.version) } });
  }
}

describe('a write of the free addresses of a node that arrives late', () => {
  it('lets schedulers see no more addresses than are free, after the next write of the node', async () => {
    const cluster = new Cluster();
    cluster.addNode('n1');
    cluster.keepNext = true; // n1 gets all addresses, without an answer
    for (let rounds = 0; rounds < 5 && cluster.late === undefined; rounds++) await cluster.round();
    expect(cluster.late).to.not.equal(undefined);
    cluster.addNode('n2');
    // 40 s: less than the time after which a write counts as lost
    for (let rounds = 0; rounds < 20; rounds++) await cluster.round();
    expect(cluster.places).to.equal(FREE);
    cluster.late?.();
    expect(cluster.places).to.be.at.most(FREE);
  });

  it('lets schedulers see no more addresses than are free, after a change of the leader', async () => {
    const cluster = new Cluster();
    cluster.addNode('n1');
    cluster.keepNext = true;
    for (let rounds = 0; rounds < 5 && cluster.late === undefined; rounds++) await cluster.round();
    expect(cluster.late).to.not.equal(undefined);
    cluster.publisher = cluster.newLeader();
    cluster.addNode('n2');
    for (let rounds = 0; rounds < 20; rounds++) await cluster.round();
    expect(cluster.places).to.equal(FREE);
    cluster.late?.();
    expect(cluster.places).to.be.at.most(FREE);
  });
});
