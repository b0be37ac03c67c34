import { expect } from 'chai';
import { type KubeObject, objectKey } from '../../api/meta.js';
import type { Pod } from '../../api/pod.js';
import { CLAIM_INDEXES } from '../../cluster/watch-specs.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import { Cache } from '../../kube/informers/cache.js';
import { Client } from '../../kube/client.js';
import { isConflict } from '../../kube/errors.js';
import type { WatchSpec } from '../../kube/informers/informers.js';
import { IPAM_CLAIMS, PODS, POD_DISRUPTION_BUDGETS, STATEFUL_SETS } from '../../kube/resources.js';
import type { GuestConfig } from '../../process/config/guest-config.js';
import { apiError } from '../../test/api-errors.js';
import { MemoryTransport } from '../../kube/testing/memory-transport.js';
import { adminPool, cacheOf, nad } from '../../test/objects/pool-objects.js';
import type { GuestViews } from '../views.js';
import { ResponderReconciler } from './reconciler.js';

const NAMESPACE = 'holdfast-responders';
const PLURAL = /ipamclaims|statefulsets|poddisruptionbudgets|pods/;
const KINDS = [IPAM_CLAIMS, STATEFUL_SETS, POD_DISRUPTION_BUDGETS];
const GUEST = { attachment: 'blue', dhcp: {} };

/** The reconciler on an API server in memory, with pool blue. */
class Bench {
  readonly api = new MemoryTransport();
  readonly caches = new Map<string, Cache<KubeObject>>();
  readonly pools = cacheOf([adminPool('blue', { guest: GUEST })]);
  readonly events: string[] = [];
  wanted: readonly string[] = [];
  readonly poolsChanged: () => void;
  readonly #sync;

  constructor(config: Partial<GuestConfig> = { responderImage: 'holdfast:1' }) {
    const networks = cacheOf([nad(`${NAMESPACE}/blue`, { name: 'blue', type: 'bridge' })]);
    const directory = new PoolDirectory({ pools: this.pools, networks });
    this.poolsChanged = () => directory.changed();
    const claims = new Cache(CLAIM_INDEXES);
    this.caches.set('ipamclaims', claims as unknown as Cache<KubeObject>);
    const views = {
      watched: { pools: { cache: this.pools }, networks: { cache: networks }, claims: { cache: claims } },
      directory,
    };
    const informers = {
      get: ({ resource }: WatchSpec<KubeObject>) => {
        const cache = new Cache<KubeObject>();
        this.caches.set(resource.plural, cache);
        return { cache };
      },
    };
    const reconciler = new ResponderReconciler({
      // only the caches are used here
      views: views as unknown as GuestViews,
      informers: informers as never,
      client: new Client(this.api),
      config: {
        namespace: 'holdfast-system',
        maxResponderPools: 32,
        maxStalenessMs: 500,
        logLevel: 'info',
        responderTemplate: {},
        ...config,
      } as GuestConfig,
      clock: { now: () => 0 },
      metrics: { respondersWanted: (pools) => void (this.wanted = pools) },
      events: { event: (_subject, _type, reason, message) => this.events.push(`${reason}: ${message}`) },
    });
    this.#sync = reconciler.createSync();
  }

  /** Shows what the API server has, pods apart. */
  updateCaches(): void {
    for (const resource of KINDS) {
      const cache = this.caches.get(resource.plural);
      for (const key of cache?.keys() ?? []) cache?.delete(key);
      for (const object of this.api.tracker.list(resource)) cache?.set(object);
    }
  }

  async sync(): Promise<void> {
    await this.#sync('responders', new AbortController().signal);
  }

  /** `<method> <plural>` of each request. */
  requests(): string[] {
    return this.api.requests.map(({ method, path }) => `${method} ${PLURAL.exec(path)?.[0] ?? path}`);
  }

  set(): KubeObject | undefined {
    return this.api.tracker.list(STATEFUL_SETS)[0];
  }
}

describe('the reconciler of responders', () => {
  it('creates claims, StatefulSet and disruption budget', async () => {
    const bench = new Bench();
    await bench.sync();
    expect(bench.requests()).to.deep.equal([
      'POST ipamclaims',
      'POST ipamclaims',
      'POST statefulsets',
      'POST poddisruptionbudgets',
    ]);
    const text = JSON.stringify(bench.set());
    expect(text).to.include('"image":"holdfast:1"');
    expect(bench.wanted).to.deep.equal(['blue']);
    expect(text, 'less would never count as current').to.include('--max-staleness=10000ms');
  });

  it('does the rest if one request fails, and then fails with its error', async () => {
    const bench = new Bench();
    bench.api.before = ({ path }) => {
      if (path.endsWith('/statefulsets')) throw new TypeError('exceeded quota');
    };
    const error: unknown = await bench.sync().catch((reason: unknown) => reason);
    expect(String(error)).to.include('exceeded quota');
    expect(bench.requests()).to.include('POST poddisruptionbudgets');
  });

  it('says on the pool why the API server refuses its responders', async () => {
    const bench = new Bench();
    bench.api.before = ({ path }) => {
      if (path.endsWith('/statefulsets'))
        throw apiError(403, 'Forbidden', 'an image that is not in responderImages', 'x');
    };
    await bench.sync().catch(() => undefined);
    expect(bench.events).to.have.length(1);
    expect(bench.events[0]).to.match(
      /^ResponderRefused: The API server refuses the responders of AddressPool \S+: .*not in responderImages/,
    );
  });

  it('continues if objects exist that the caches do not show yet', async () => {
    const bench = new Bench();
    await bench.sync();
    await bench.sync();
    expect(bench.requests()).to.have.length(8);
  });

  it('replaces the template of a StatefulSet that was written otherwise', async () => {
    const bench = new Bench();
    await bench.sync();
    const set = bench.set();
    if (set === undefined) throw new Error('no set');
    set.metadata.uid = 'set-uid';
    bench.caches.get('statefulsets')?.set({ metadata: { ...set.metadata, annotations: {} } });
    bench.api.requests.length = 0;
    await bench.sync();
    expect(bench.requests()).to.include('PATCH statefulsets');
    expect(bench.set()).to.deep.include({ spec: (set as unknown as { spec: object }).spec });
  });

  it('deletes the objects of a pool that is gone', async () => {
    const bench = new Bench();
    await bench.sync();
    bench.updateCaches();
    bench.pools.delete('blue');
    bench.api.requests.length = 0;
    bench.poolsChanged();
    await bench.sync();
    expect(bench.requests()).to.deep.equal(['DELETE statefulsets', 'DELETE poddisruptionbudgets']);
    expect(bench.wanted).to.deep.equal([]);
  });

  it('ends the responders of a pool that is being deleted: the StatefulSet, then each claim when its pod is gone', async () => {
    const bench = new Bench();
    await bench.sync();
    bench.updateCaches();
    const last = { metadata: { name: `${bench.set()?.metadata.name ?? ''}-1`, namespace: NAMESPACE } };
    bench.caches.get('pods')?.set(last);
    bench.pools.set(adminPool('blue', { guest: GUEST, deleting: true }));
    bench.poolsChanged();
    const requests: string[][] = [];
    for (let round = 0; round < 3; round++) {
      bench.api.requests.length = 0;
      await bench.sync();
      requests.push(bench.requests());
      bench.updateCaches();
      if (round === 1) bench.caches.get('pods')?.delete(objectKey(last));
    }
    expect(requests).to.deep.equal([
      ['DELETE statefulsets', 'DELETE poddisruptionbudgets'],
      ['DELETE ipamclaims'],
      ['DELETE ipamclaims'],
    ]);
  });

  it('keeps a claim that a pod has come to use since the caches were filled, and tries again', async () => {
    const bench = new Bench();
    await bench.sync();
    bench.updateCaches();
    bench.caches.get('statefulsets')?.delete(`${NAMESPACE}/${bench.set()?.metadata.name ?? ''}`);
    bench.pools.delete('blue');
    bench.poolsChanged();
    const [claim] = bench.api.tracker.list(IPAM_CLAIMS);
    bench.api.tracker.change(IPAM_CLAIMS, claim!.metadata, (copy) => {
      copy.status = { ownerPod: { name: claim!.metadata.name } };
    });
    const error: unknown = await bench.sync().catch((reason: unknown) => reason);
    expect(isConflict(error), String(error)).to.equal(true);
    expect(bench.api.tracker.list(IPAM_CLAIMS).map(objectKey)).to.deep.equal([objectKey(claim!)]);
  });

  it('uses the image and the pull secrets of its own pod, in which a sidecar may come first', async () => {
    const bench = new Bench({ podName: 'guest-1' });
    const spec = {
      containers: [
        { name: 'istio-proxy', image: 'istio:1' },
        { name: 'guest', image: 'holdfast:2', imagePullPolicy: 'Always' },
      ],
      serviceAccountName: 'holdfast-guest',
      // OpenShift gives each account one of its own, in its namespace only
      imagePullSecrets: [{ name: 'holdfast-guest-dockercfg-x2b9k' }, { name: 'pull' }],
    };
    const pod = { metadata: { name: 'guest-1', namespace: 'holdfast-system' }, spec };
    bench.api.tracker.put(PODS, pod as Pod);
    await bench.sync();
    const text = JSON.stringify(bench.set());
    expect(text).to.include('"image":"holdfast:2","imagePullPolicy":"Always"');
    expect(text).to.include('"imagePullSecrets":[{"name":"pull"}]');
  });

  for (const [name, config] of [
    ['has no pod', {}],
    ['cannot find its pod', { podName: 'guest-1' }],
  ] as const) {
    it(`says on the pool which flag is missing if it ${name}, and still ends responders`, async () => {
      const bench = new Bench(config);
      bench.caches.get('statefulsets')?.set({ metadata: { name: 'holdfast-responder-0', namespace: NAMESPACE } });
      await bench.sync();
      expect(bench.requests().filter((request) => !request.startsWith('GET'))).to.deep.equal(['DELETE statefulsets']);
      expect(bench.events).to.deep.equal([
        'ResponderImageUnknown: No responders run for AddressPool blue: the image of responders is unknown: ' +
          'set the flag --responder-image of guest, or POD_NAME to the name of its pod',
      ]);
    });
  }

  it('asks for nothing in a cluster without responders', async () => {
    const bench = new Bench({});
    bench.pools.delete('blue');
    await bench.sync();
    expect(bench.requests()).to.deep.equal([]);
  });
});
