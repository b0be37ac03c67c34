import { setImmediate } from 'node:timers/promises';
import { expect } from 'chai';
import { Client } from '../kube/client.js';
import { systemClock } from '../kube/clock.js';
import { InformerRegistry } from '../kube/informers/informers.js';
import { silentLogger } from '../kube/log.js';
import { NODES, SECRETS } from '../kube/resources.js';
import { MemoryTransport } from '../kube/testing/memory-transport.js';
import type { Component } from './context.js';
import { type ElectedContext, createElectedComponent } from './elected-component.js';
import { Metrics } from './metrics.js';
import sinon from 'sinon';
import { ControllerLoop, type Sync } from '../kube/controller-loop.js';
import { TransportError } from '../kube/errors.js';
import { LEASES } from '../kube/leader-election.js';
import { FAKED } from '../kube/testing/fake-time.js';
import type { ApiRequest, ClientTransport } from '../kube/transport/transport.js';
import { WorkQueue } from '../kube/workqueue.js';

describe('an elected component', () => {
  const kube = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'vms', uid: 'u' } };
  let steps: string[];
  let api: MemoryTransport;
  let informers: InformerRegistry;
  let component: Component;
  let elected: ElectedContext;
  let begin: Promise<void>;
  let problem: string | undefined;
  let finishWork: () => void;

  beforeEach(() => {
    steps = [];
    problem = undefined;
    api = new MemoryTransport();
    const metrics = new Metrics();
    const shared = { client: new Client(api), clock: systemClock, random: () => 0, log: silentLogger };
    informers = new InformerRegistry({ ...shared, metrics: metrics.kube });
    const config = { leaderElect: true, namespace: 'holdfast' };
    const context = { ...shared, informers, metrics };
    const finished = new Promise<void>((resolve) => (finishWork = resolve));
    begin = new Promise((resolve) => {
      component = createElectedComponent({ name: 'ipam', context, config, identity: 'a' }, (given) => {
        elected = given;
        return {
          start: () => Promise.resolve(void steps.push('start')),
          ready: () => problem,
          startWork: () => resolve(void steps.push('work')),
          stopWork: () => finished.then(() => void steps.push('end')),
          stop: async (ended) => {
            steps.push('stop');
            await ended;
            steps.push('ended');
          },
        };
      });
    });
  });

  it('is ready when its caches are filled and its work is, and works as the holder of its Lease', async () => {
    informers.get({ resource: NODES });
    expect(component.ready?.()).to.contain('nodes');
    await component.start();
    await begin;
    expect(component.ready?.()).to.equal(undefined);
    problem = 'not listening';
    expect(component.ready?.()).to.equal('not listening');
    expect(steps).to.deep.equal(['start', 'work']);
    const lease = api.requests.find(({ method, path }) => method === 'POST' && path.includes('/leases'));
    expect(lease?.body).to.have.nested.property('metadata.name', 'holdfast-ipam');
    finishWork();
    await component.stop();
    await informers.stop();
  });

  it('tells its work at once that it stops, waits for the end of the term, and then writes the last events', async () => {
    await component.start();
    await begin;
    const stopped = component.stop();
    await setImmediate();
    expect(steps).to.deep.equal(['start', 'work', 'stop']);
    elected.events.event(kube, 'Normal', 'Stopped', 'the last event');
    finishWork();
    await stopped;
    expect(steps.slice(3)).to.deep.equal(['end', 'ended']);
    const event = api.requests.find(({ method, path }) => method === 'POST' && path.includes('/events'));
    expect(event?.body).to.have.nested.property('source.component', 'holdfast-ipam');
  });
});

/** The API server as one replica sees it. While it is slow, renewals of the Lease get no answer in time. */
class SlowApiServer implements ClientTransport {
  isSlow = false;
  readMs = 0;
  writeMs = 0;
  readonly #api: MemoryTransport;

  constructor(api: MemoryTransport) {
    this.#api = api;
  }

  async request(request: ApiRequest): Promise<unknown> {
    if (this.isSlow) await this.#delay(request);
    if (request.signal?.aborted) throw new TransportError('aborted', 'aborted by the caller');
    return this.#api.request(request);
  }

  async #delay({ path, method, deadlineMs, signal }: ApiRequest): Promise<void> {
    if (!path.includes(LEASES.group)) return systemClock.sleep(method === 'GET' ? this.readMs : this.writeMs, signal);
    await systemClock.sleep(deadlineMs ?? 15_000, signal);
    throw new TransportError('deadline', 'no complete response');
  }

  stream = (...args: Parameters<ClientTransport['stream']>) => this.#api.stream(...args);
  close = () => Promise.resolve();
}

/** A component that reads a Node and then writes its identity into a Secret, for each key. Neither request is given a signal. */
class Replica {
  readonly component: Component;
  startedAt: number | undefined;
  abortedAt: number | undefined;
  endedAt: number | undefined;
  #queue: WorkQueue | undefined;

  constructor(identity: string, transport: ClientTransport) {
    const shared = { client: new Client(transport), clock: systemClock, random: () => 0.5, log: silentLogger };
    const metrics = new Metrics();
    const informers = new InformerRegistry({ ...shared, metrics: metrics.kube });
    const context = { ...shared, metrics, informers };
    const config = { leaderElect: true, namespace: 'holdfast' };
    this.component = createElectedComponent({ name: 'guest', context, config, identity }, (elected) => {
      let loop: ControllerLoop | undefined;
      const sync: Sync = async (_key: string, signal: AbortSignal) => {
        signal.addEventListener('abort', () => (this.abortedAt = Date.now()));
        await elected.client.get(NODES, { name: 'n' });
        const body = { data: { by: identity } };
        await elected.client.patch(SECRETS, { namespace: 'vms', name: 'data' }, { type: 'merge', body });
      };
      return {
        startWork: () => {
          this.startedAt = Date.now();
          this.#queue = new WorkQueue({ clock: systemClock, random: () => 0.5, workers: 1 });
          const options = { name: 'guest', queue: this.#queue, workers: 1, log: silentLogger, clock: systemClock };
          loop = new ControllerLoop({ ...options, sync: elected.whileLeading(sync) });
          loop.start();
        },
        stopWork: async () => {
          await loop?.stop();
          this.endedAt = Date.now();
        },
      };
    });
  }

  add(): void {
    this.#queue?.add('vms/vm');
  }
}

describe('the work of an elected component whose Lease cannot be renewed', () => {
  let time: sinon.SinonFakeTimers;
  let api: MemoryTransport;
  let slow: SlowApiServer;
  let first: Replica;
  let second: Replica;
  /** When the renewals began to get no answer. */
  let begun: number;

  beforeEach(async () => {
    time = sinon.useFakeTimers({ now: Date.UTC(2030, 0, 1), toFake: FAKED });
    api = new MemoryTransport();
    api.tracker.put(NODES, { metadata: { name: 'n' } });
    api.tracker.put(SECRETS, { metadata: { namespace: 'vms', name: 'data' } });
    slow = new SlowApiServer(api);
    first = new Replica('a', slow);
    second = new Replica('b', api);
    await first.component.start();
    await time.tickAsync(1);
    await second.component.start();
    await time.tickAsync(10_000);
    slow.isSlow = true;
    begun = Date.now();
  });
  afterEach(async () => {
    const stopped = Promise.all([first.component.stop(), second.component.stop()]);
    await time.tickAsync(120_000);
    await stopped;
    time.restore();
  });

  function written(): unknown {
    return api.tracker.get(SECRETS, { namespace: 'vms', name: 'data' }).data?.by;
  }

  it('writes as long as its term lasts', async () => {
    slow.readMs = 7_000;
    first.add();
    await time.tickAsync(8_000);
    expect(written()).to.equal('a');
  });

  it('writes nothing after its term, before its successor leads: a sync that read meanwhile is aborted', async () => {
    slow.readMs = 14_000;
    await time.tickAsync(7_500);
    first.add();
    await time.tickAsync(60_000);
    expect(written()).to.equal(undefined);
    expect(first.abortedAt).to.be.within(begun + 7_500, begun + 10_000);
    expect(second.startedAt).to.be.within(begun + 10_000, begun + 20_000);
  });

  it('aborts a write that waits to be sent', async () => {
    slow.writeMs = 14_000;
    await time.tickAsync(7_500);
    first.add();
    await time.tickAsync(60_000);
    expect(written()).to.equal(undefined);
  });

  it('finishes a running sync when it is stopped during its term', async () => {
    slow.readMs = 1_000;
    first.add();
    await time.tickAsync(500);
    const stopped = first.component.stop();
    await time.tickAsync(1_000);
    expect([written(), first.abortedAt]).to.deep.equal(['a', undefined]);
    await time.tickAsync(10_000);
    await stopped;
  });

  it('writes nothing after its term if it was stopped during the term', async () => {
    slow.readMs = 9_000;
    await time.tickAsync(6_000);
    first.add();
    await time.tickAsync(500);
    const stopped = first.component.stop();
    await time.tickAsync(60_000);
    await stopped;
    expect(written()).to.equal(undefined);
  });
});
