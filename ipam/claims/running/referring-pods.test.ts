import { expect } from 'chai';
import { NETWORKS_ANNOTATION } from '../../../api/names.js';
import type { Pod } from '../../../api/pod.js';
import { CLAIM_INDEXES } from '../../../cluster/watch-specs.js';
import { Cache } from '../../../kube/informers/cache.js';
import { Client } from '../../../kube/client.js';
import { Informer } from '../../../kube/informers/informer.js';
import { silentLogger } from '../../../kube/log.js';
import { NAMESPACES, PODS } from '../../../kube/resources.js';
import { MemoryTransport } from '../../../kube/testing/memory-transport.js';
import { LAUNCHER_LABELS, VMI_OWNER } from '../../../test/objects/launcher-pods.js';
import { claim, launcher } from '../../../test/objects/workload-objects.js';
import { CLAIM_PODS, ClaimPods } from './claim-pods.js';
import { MAX_REFERRING_NAMESPACES, REFERRING_NAMESPACES, ReferringPods } from './referring-pods.js';

const ALLOWED = { 'ipam.holdfast.dev/claim-references': 'allowed' };
const MINE = {
  metadata: { name: 'mine', namespace: 'vms', uid: 'mine-uid' },
  spec: { network: 'blue', interface: '' },
};
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Pods on an API server, as ipam watches them. */
class PodWorld {
  readonly api = new MemoryTransport();
  readonly warnings: string[] = [];
  /** Claims whose pods changed. */
  readonly woken: string[] = [];
  readonly claims = new Cache(CLAIM_INDEXES);
  readonly #client = new Client(this.api);
  readonly launchers = new Informer(this.#client, PODS, CLAIM_PODS);
  readonly namespaces = new Informer(this.#client, NAMESPACES, REFERRING_NAMESPACES);
  readonly referring = new ReferringPods({
    launchers: this.launchers,
    namespaces: this.namespaces,
    watch: ({ resource, ...options }) => new Informer(this.#client, resource, options),
    log: { ...silentLogger, warn: (_fields: object, message: string) => void this.warnings.push(message) },
  });
  readonly pods = new ClaimPods(this.referring, this.claims);

  constructor() {
    this.claims.set(claim());
    this.pods.onChange((key) => void this.woken.push(key));
  }

  async start(): Promise<void> {
    this.launchers.start();
    this.namespaces.start();
    await Promise.all([this.launchers.synced(), this.namespaces.synced()]);
    await this.settle();
  }

  /** Until all events have arrived: the server answers in a few turns of the event loop. */
  async settle(turns = 60): Promise<void> {
    for (let left = turns; left > 0; left--) await turn();
  }

  async stop(): Promise<void> {
    await Promise.all([this.referring.stop(), this.launchers.stop(), this.namespaces.stop()]);
  }

  put(name: string, more: Partial<Pod['metadata']> = {}): void {
    this.api.tracker.put(PODS, { metadata: { name, namespace: 'vms', ...more }, status: { phase: 'Running' } });
  }

  refer(name: string, namespace = 'vms'): void {
    const networks = JSON.stringify([{ name: 'blue', 'ipam-claim-reference': 'mine' }]);
    this.put(name, { namespace, annotations: { [NETWORKS_ANNOTATION]: networks } });
  }

  namespace(name: string, labels: Record<string, string>): void {
    this.api.tracker.put(NAMESPACES, { metadata: { name, labels } });
  }

  usersOf(of = MINE as ReturnType<typeof claim>): string[] {
    return this.pods.podsOf(of).map(({ metadata }) => metadata.name);
  }
}

describe('the pods that ipam watches', () => {
  let world: PodWorld;
  beforeEach(() => (world = new PodWorld()));
  afterEach(() => world.stop());

  it('are the launchers of all namespaces, and no ordinary pods', async () => {
    world.api.tracker.put(PODS, launcher([]));
    world.refer('web');
    await world.start();
    expect(world.usersOf(claim())).to.have.length(1);
    expect(world.usersOf()).to.deep.equal([]);
    expect(world.launchers.cache.list()).to.have.length(1);
  });

  it('include all pods of a namespace that allows references, also those that are older than its label', async () => {
    world.refer('old');
    await world.start();
    world.namespace('vms', ALLOWED);
    await world.settle();
    expect(world.usersOf()).to.deep.equal(['old']);
    world.refer('new');
    world.refer('elsewhere', 'other');
    await world.settle();
    expect(world.usersOf()).to.have.members(['old', 'new']);
    expect(world.woken).to.include('vms/mine');
  });

  it('are forgotten when the namespace loses its label, and their claims are synced', async () => {
    world.namespace('vms', ALLOWED);
    world.refer('web');
    await world.start();
    expect(world.usersOf()).to.deep.equal(['web']);
    world.woken.length = 0;
    world.namespace('vms', {});
    await world.settle();
    expect(world.usersOf()).to.deep.equal([]);
    expect(world.woken).to.deep.equal(['vms/mine']);
    world.namespace('vms', ALLOWED);
    await world.settle();
    expect(world.usersOf()).to.deep.equal(['web']);
  });

  it('have no claim if a tenant gives them the label of launchers, and wake none', async () => {
    await world.start();
    world.woken.length = 0;
    for (let n = 0; n < 200; n++) world.put(`forged-${n}`, { labels: LAUNCHER_LABELS });
    await world.settle();
    for (let n = 0; n < 200; n++) world.put(`forged-${n}`, { labels: {} });
    await world.settle();
    expect(world.woken).to.deep.equal([]);
    expect(world.launchers.cache.list()).to.deep.equal([]);
  });

  it('keep nothing but the identity of a pod with a forged label', async () => {
    world.put('forged', { labels: LAUNCHER_LABELS, annotations: { big: 'x'.repeat(1000) } });
    await world.start();
    const [forged] = world.launchers.cache.list();
    expect(Object.keys(forged ?? {})).to.have.members(['metadata', 'isTerminal', 'claims']);
    expect(Object.keys(forged?.metadata ?? {})).to.have.members(['name', 'namespace', 'uid', 'resourceVersion']);
  });

  it('lack a pod of a VMI without the label: only admission keeps it', async () => {
    world.put('bare', { ownerReferences: [VMI_OWNER] });
    await world.start();
    expect(world.usersOf(claim())).to.deep.equal([]);
  });

  it('are those of a bounded number of namespaces, the oldest first', async () => {
    for (let n = 0; n <= MAX_REFERRING_NAMESPACES; n++) {
      const metadata = { name: `a${n}`, labels: ALLOWED, creationTimestamp: `2026-01-01T00:00:00Z` };
      world.api.tracker.put(NAMESPACES, { metadata });
    }
    const old = { name: 'vms', labels: ALLOWED, creationTimestamp: '2025-01-01T00:00:00Z' };
    world.api.tracker.put(NAMESPACES, { metadata: old });
    world.refer('web');
    await world.start();
    await world.settle(2_000);
    expect(world.usersOf()).to.deep.equal(['web']);
    expect(world.warnings).to.have.length(1);
    expect(world.api.watching('pods')).to.equal(MAX_REFERRING_NAMESPACES + 1);
  });
});
