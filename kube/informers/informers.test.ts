import { expect } from 'chai';
import { Client } from '../client.js';
import { systemClock } from '../clock.js';
import { silentLogger } from '../log.js';
import { silentMetrics } from '../metrics.js';
import { NAMESPACES, PODS } from '../resources.js';
import type { ApiRequest, StreamRequest, Transport } from '../transport/transport.js';
import { type WatchSpec, InformerRegistry } from './informers.js';

/** Serves one empty list of every kind, and watches that stay silent. */
class EmptyServer {
  readonly lists: string[] = [];
  /** Open ones. */
  watches = 0;

  request(request: ApiRequest): Promise<unknown> {
    this.lists.push(request.path);
    return Promise.resolve({ metadata: { resourceVersion: '1' }, items: [] });
  }

  async *stream({ signal }: StreamRequest): AsyncGenerator<unknown, void, undefined> {
    this.watches += 1;
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    this.watches -= 1;
    yield* [];
  }
}

const WATCHED_PODS: WatchSpec<(typeof PODS)['_type'] & object> = { resource: PODS };

describe('InformerRegistry', () => {
  const server = new EmptyServer();
  const make = () =>
    new InformerRegistry({
      client: new Client(server as unknown as Transport),
      log: silentLogger,
      metrics: silentMetrics,
      clock: systemClock,
      random: Math.random,
    });

  beforeEach(() => server.lists.splice(0));

  it('returns the same informer for the same constant', () => {
    const registry = make();
    expect(registry.get(WATCHED_PODS)).to.equal(registry.get(WATCHED_PODS));
  });

  it('returns separate caches for different constants of one kind', () => {
    const registry = make();
    expect(registry.get(WATCHED_PODS)).not.to.equal(registry.get({ resource: PODS, namespace: 'a' }));
  });

  it('starts each informer once', async () => {
    const registry = make();
    registry.get(WATCHED_PODS);
    registry.start();
    registry.get({ resource: NAMESPACES });
    registry.start();
    await registry.synced();
    expect(server.lists).to.deep.equal(['/api/v1/pods', '/api/v1/namespaces']);
    await registry.stop();
  });

  it('watches while somebody needs it, and lists again after that', async () => {
    const registry = make();
    let isNeeded = false;
    const spec = { resource: PODS };
    const informer = registry.getWhile(spec, () => isNeeded);
    const synced: boolean[] = [];
    informer.onSynced(() => synced.push(informer.hasSynced));
    registry.start();
    await registry.synced();
    expect([registry.missing, server.lists]).to.deep.equal([[], []]);
    for (const round of [1, 2]) {
      isNeeded = true;
      registry.update();
      expect(registry.missing).to.deep.equal(['pods']);
      await registry.synced();
      expect([registry.missing, server.lists.length]).to.deep.equal([[], round]);
      while (server.watches === 0) await new Promise(setImmediate);
      isNeeded = false;
      registry.update();
      expect([informer.hasSynced, registry.missing]).to.deep.equal([false, []]);
      while (server.watches > 0) await new Promise(setImmediate);
    }
    expect(synced).to.deep.equal([true, true]);
    // one component needs it always
    registry.get(spec);
    registry.update();
    await registry.synced();
    expect(informer.hasSynced).to.equal(true);
    await registry.stop();
  });

  it('names the kinds that are not listed yet', async () => {
    const registry = make();
    registry.get(WATCHED_PODS);
    expect(registry.missing).to.deep.equal(['pods']);
    registry.start();
    await registry.synced();
    expect(registry.missing).to.deep.equal([]);
    await registry.stop();
  });

  it('reports the progress of no watch that ended before it began', async () => {
    const reported = new Set<unknown>();
    const watching = (_plural: string, progressedAt: unknown) => {
      reported.add(progressedAt);
      return () => reported.delete(progressedAt);
    };
    const client = new Client(server as unknown as Transport);
    const options = { client, log: silentLogger, clock: systemClock, random: Math.random };
    const registry = new InformerRegistry({ ...options, metrics: { ...silentMetrics, watching } });
    let isNeeded = true;
    registry.getWhile({ resource: PODS }, () => isNeeded);
    registry.start();
    await registry.synced();
    // each start waits for the end of the last watch
    for (let change = 1; change <= 5; change++) {
      isNeeded = !isNeeded;
      registry.update();
    }
    await new Promise(setImmediate);
    await registry.stop();
    expect(reported.size).to.equal(0);
  });
});
