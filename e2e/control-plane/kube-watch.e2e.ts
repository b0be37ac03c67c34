import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { Client } from '../../kube/client.js';
import { type Clock, systemClock } from '../../kube/clock.js';
import { loadCredentials } from '../../kube/transport/credentials.js';
import { Informer, type InformerOptions } from '../../kube/informers/informer.js';
import { silentMetrics } from '../../kube/metrics.js';
import { type Resource, clusterResource, namespacedResource } from '../../kube/resource.js';
import { CONFIG_MAPS, NAMESPACES } from '../../kube/resources.js';
import { type StreamRequest, Transport, type ClientTransport } from '../../kube/transport/transport.js';
import { type ControlPlane, startControlPlane } from '../../bed/control-plane/control-plane.js';
import { TcpRelay } from '../../bed/faults/tcp-relay.js';
import { until, untilValue } from '../../bed/processes/wait.js';

type ConfigMap = KubeObject & { data?: Record<string, string> };

interface Definition extends KubeObject {
  spec: object;
}

const CRDS = clusterResource<Definition>(
  'apiextensions.k8s.io/v1',
  'customresourcedefinitions',
  'CustomResourceDefinition',
);
const THINGS = namespacedResource('test.dev/v1', 'things', 'Thing');
const NAMESPACE = 'kube-watch';

/** Delays watches until they are released. */
class Gate implements ClientTransport {
  readonly #wire: ClientTransport;
  #closed: Promise<void> | undefined;
  #open: () => void = () => undefined;
  /** Watches that wait. */
  waiting = 0;

  constructor(wire: ClientTransport) {
    this.#wire = wire;
  }

  shut(): void {
    this.#closed = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  open(): void {
    this.#closed = undefined;
    this.#open();
  }

  request(request: Parameters<ClientTransport['request']>[0]): Promise<unknown> {
    return this.#wire.request(request);
  }

  async *stream(request: StreamRequest): AsyncGenerator<unknown, void, undefined> {
    this.waiting++;
    await this.#closed;
    this.waiting--;
    yield* this.#wire.stream(request);
  }

  close(): Promise<void> {
    return this.#wire.close();
  }
}

/** Reflectors with a real API server that is killed, paused and loses its history. It has no watch cache. */
describe('The informers of the Kubernetes client', () => {
  let plane: ControlPlane;
  let client: Client;
  let running: Informer<KubeObject>[] = [];
  let ends: string[];

  before(async () => {
    // With a watch cache, the server would answer from history that etcd has compacted.
    plane = await startControlPlane({ apiServerFlags: ['--watch-cache=false'] });
    client = plane.client;
    await client.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  });
  after(() => plane.stop());
  beforeEach(() => {
    ends = [];
  });
  afterEach(async () => {
    await Promise.all(running.map((informer) => informer.stop()));
    running = [];
  });

  async function follow<T extends KubeObject>(
    resource: Resource<T>,
    options: InformerOptions<T> = {},
    by = client,
  ): Promise<Informer<T>> {
    const metrics = { ...silentMetrics, watchEnded: (_plural: string, why: string) => void ends.push(why) };
    const informer = new Informer(by, resource, { namespace: NAMESPACE, metrics, ...options });
    running.push(informer as unknown as Informer<KubeObject>);
    informer.start();
    await informer.synced();
    return informer;
  }

  async function write(name: string, data: Record<string, string> = {}): Promise<ConfigMap> {
    const ref = { namespace: NAMESPACE, name };
    if ((await client.find(CONFIG_MAPS, ref)) === undefined) return client.create(CONFIG_MAPS, { metadata: ref, data });
    return client.patch(CONFIG_MAPS, ref, { type: 'merge', body: { data } });
  }

  async function remove(name: string): Promise<void> {
    await client.delete(CONFIG_MAPS, { namespace: NAMESPACE, name });
  }

  /** Resolves when the watch delivers events, because before that only the list has arrived. */
  async function seeWatch(informer: Informer<ConfigMap>): Promise<void> {
    await write('seen-by-watch', { at: String(Date.now()) });
    const { data } = await client.get(CONFIG_MAPS, { namespace: NAMESPACE, name: 'seen-by-watch' });
    await untilValue(
      'the watch to deliver',
      () => informer.cache.get(`${NAMESPACE}/seen-by-watch`)?.data?.at,
      (at) => at === data?.at,
    );
  }

  function names(informer: Informer<ConfigMap>): string[] {
    return informer.cache.list().map((object) => object.metadata.name);
  }

  it('deliver creations, changes and deletions of objects', async () => {
    const informer = await follow(CONFIG_MAPS);
    const changes: string[] = [];
    await write('one', { a: '1' });
    await until('the new object', () => informer.cache.get(`${NAMESPACE}/one`));
    informer.onChange(({ type, object }) => changes.push(`${type} ${object.metadata.name} ${object.data?.a ?? ''}`));
    await write('one', { a: '2' });
    await remove('one');
    await until('the deletion', () => informer.cache.get(`${NAMESPACE}/one`) === undefined);
    expect(changes).to.deep.equal(['added one 1', 'changed one 2', 'removed one 2']);
  });

  it('resume soon after the API server was killed and started again', async () => {
    const pauses: number[] = [];
    const sleep: Clock['sleep'] = (ms, signal) => {
      pauses.push(ms);
      return systemClock.sleep(ms, signal);
    };
    const informer = await follow(CONFIG_MAPS, { clock: { ...systemClock, sleep } });
    await seeWatch(informer);
    await plane.apiServer.kill();
    await until('the end of the watch', () => ends.length > 0);
    await plane.apiServer.start();
    await write('after-restart');
    await until('the object that was made after the restart', () => informer.cache.get(`${NAMESPACE}/after-restart`));
    // longer ones are of the list that is repeated now and then
    const retries = pauses.filter((ms) => ms < 60_000);
    expect(retries).not.to.be.empty;
    expect(Math.max(...retries), 'longest wait between two attempts').to.be.below(6_000);
    expect(ends).to.include('broken');
    expect(ends, 'no history was lost').to.not.include('410');
    await remove('after-restart');
  });

  it('list again when the missed history is compacted, and deliver the deletions', async () => {
    await Promise.all([write('stays'), write('goes'), write('changes', { a: '1' })]);
    const gate = new Gate(client.transport);
    const informer = await follow(CONFIG_MAPS, {}, new Client(gate));
    const changes: string[] = [];
    informer.onChange(({ type, object }) => changes.push(`${type} ${object.metadata.name}`));
    changes.length = 0;
    gate.shut();
    await plane.apiServer.kill();
    await until('the next watch to wait', () => gate.waiting > 0);
    await plane.apiServer.start();
    await remove('goes');
    await write('changes', { a: '2' });
    await write('comes');
    await plane.etcd.compact();
    gate.open();
    await until('the new object', () => informer.cache.get(`${NAMESPACE}/comes`));
    expect(ends).to.include('410');
    expect(changes.sort()).to.deep.equal(['added comes', 'changed changes', 'removed goes']);
    await write('later');
    await untilValue(
      'the watch to go on',
      () => names(informer),
      (found) => found.includes('later'),
    );
  });

  it('restart a list whose continue token expires between two pages', async () => {
    const total = (await client.list(CONFIG_MAPS)).items.length;
    let pages = 0;
    const forgetful: ClientTransport = {
      stream: (request) => client.transport.stream(request),
      close: () => client.transport.close(),
      request: async (request) => {
        const page = await client.transport.request(request);
        // etcd keeps the latest revision, so another write makes the page's revision old.
        if (++pages === 1) {
          await write('stays', { again: String(pages) });
          await plane.etcd.compact();
        }
        return page;
      },
    };
    const list = await new Client(forgetful).list(CONFIG_MAPS, { pageSize: 1 });
    expect(list.items).to.have.length(total);
    expect(pages, 'a page of the list that was broken off, and all of the next').to.equal(total + 1);
  });

  it('detect a hanging server, and resume afterwards', async () => {
    const informer = await follow(CONFIG_MAPS, { idleMs: 1_000 });
    await seeWatch(informer);
    await plane.apiServer.pause();
    try {
      await until('the silence to be noticed', () => ends.includes('idle'));
    } finally {
      plane.apiServer.resume();
    }
    await write('after-hang');
    await until('the object that was made after the hang', () => informer.cache.get(`${NAMESPACE}/after-hang`));
  });

  it('resume behind a proxy that keeps dead connections open', async () => {
    const proxy = await TcpRelay.open(() => Number(new URL(plane.server).port));
    const admin = await loadCredentials({ kubeconfig: plane.kubeconfig });
    const transport = new Transport({
      server: proxy.url,
      tls: () => admin.tls(),
      headers: () => admin.headers(),
      refresh: () => admin.refresh(),
    });
    try {
      const informer = await follow(CONFIG_MAPS, { idleMs: 1_000 }, new Client(transport));
      await seeWatch(informer);
      ends.length = 0;
      proxy.pause();
      await write('behind-proxy');
      await until('the object behind the proxy', () => informer.cache.get(`${NAMESPACE}/behind-proxy`));
      expect(ends).to.include('idle');
    } finally {
      // an open server would keep the process running
      proxy.close();
      await transport.close();
    }
  });

  it('follow an optional kind whose CRD is created and deleted later', async () => {
    const informer = await follow(THINGS, { optional: true });
    expect(informer.cache.size).to.equal(0);
    await client.create(CRDS, definition());
    const thing = { metadata: { namespace: NAMESPACE, name: 'thing' } };
    await until('the kind to be served', () => client.create(THINGS, thing));
    await until('the first object', () => informer.cache.size === 1);
    await client.delete(CRDS, { name: 'things.test.dev' });
    await until('the objects to be gone', () => informer.cache.size === 0, { timeoutMs: 60_000 });
  });

  function definition(): Definition {
    const schema = { openAPIV3Schema: { type: 'object' } };
    return {
      metadata: { name: 'things.test.dev' },
      spec: {
        group: 'test.dev',
        scope: 'Namespaced',
        names: { plural: 'things', singular: 'thing', kind: 'Thing' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    };
  }
});
