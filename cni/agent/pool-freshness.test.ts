import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import { type KubeObject, joinKey, objectKey } from '../../api/meta.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import type { ObjectRef, Resource } from '../../kube/resource.js';
import { SelfAdvancingClock } from './testing/agent-world.js';
import { adminPool, cacheOf, holdfastConfig, nad } from '../../test/pool-objects.js';
import type { Attachment } from './attachment.js';
import type { RequestContext } from './request-context.js';
import { CniError } from './cni-error.js';
import { PoolFreshness } from './pool-freshness.js';

const MAX_STALENESS_MS = 30_000;

/** An API server with changed pool and NAD, and an agent whose watches may be behind. */
class World {
  readonly clock = new SelfAdvancingClock();
  readonly reads: string[] = [];
  restarts = 0;
  /** The objects that a restarted watch delivers. */
  deliver: () => void = () => undefined;
  fault: Error | undefined;
  readonly live = new Map<string, KubeObject>();
  readonly pools = this.#watched<AddressPool>([versioned(adminPool('blue'), '10')]);
  readonly networks = this.#watched([versioned(nad('vms/blue', holdfastConfig()), '20')]);
  readonly freshness = new PoolFreshness({
    client: { get: (resource, ref) => this.#get(resource, ref) },
    pools: this.pools,
    networks: this.networks,
    pods: { get: () => undefined },
    clock: this.clock,
    random: () => 0.5,
    maxStalenessMs: MAX_STALENESS_MS,
  });

  constructor() {
    for (const watched of [this.pools, this.networks]) {
      for (const object of watched.cache.list()) this.live.set(objectKey(object), object);
    }
  }

  async confirm(limitMs = 30_000): Promise<boolean | string> {
    const abort = new AbortController();
    const cancel = this.clock.setTimer(limitMs, () => abort.abort());
    const attachment = {
      pod: { metadata: { namespace: 'vms', name: 'p1', uid: 'p1-uid' } },
      selection: { nad: { namespace: 'vms', name: 'blue' } },
    } as Attachment;
    const call: RequestContext = { signal: abort.signal };
    try {
      return await this.freshness.confirm(attachment, 'blue', call);
    } catch (error) {
      return error instanceof CniError ? `${error.code} ${error.message}` : String(error);
    } finally {
      cancel();
    }
  }

  #watched<S extends KubeObject>(objects: S[]) {
    const restartWatch = () => {
      this.restarts++;
      this.deliver();
    };
    return { cache: cacheOf(objects), restartWatch };
  }

  #get({ plural }: Resource, ref: ObjectRef): Promise<never> {
    const key = joinKey(ref.namespace, ref.name);
    this.reads.push(`${plural} ${key}`);
    if (this.fault !== undefined) return Promise.reject(this.fault);
    const found = this.live.get(key);
    return found === undefined ? Promise.reject(notFound(ref.name)) : Promise.resolve(found as never);
  }
}

function notFound(name: string): StatusError {
  return new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: 'not found', details: { name } });
}

function versioned<T extends KubeObject>(object: T, resourceVersion: string): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}

describe('the freshness check of pool and NAD', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });

  it('reads pool and NAD once per --max-staleness, because bookmarks do not prove that the API server is current', async () => {
    for (let i = 0; i < 3; i++) expect(await world.confirm()).to.equal(true);
    expect(world.reads).to.deep.equal(['addresspools blue', 'network-attachment-definitions vms/blue']);
    world.clock.advance(MAX_STALENESS_MS + 1);
    expect(await world.confirm()).to.equal(true);
    expect(world.reads).to.have.length(4);
    expect(world.restarts).to.equal(0);
  });

  it('restarts the watch and has the pool chosen again, without another read, if the pool has changed', async () => {
    const edited = versioned(adminPool('blue', { cidr: '10.1.0.0/24' }), '11');
    world.live.set('blue', edited);
    world.deliver = () => world.pools.cache.set(edited);
    expect(await world.confirm()).to.equal(false);
    expect(world.restarts).to.equal(1);
    expect(await world.confirm()).to.equal(true);
    expect(world.reads.filter((read) => read === 'addresspools blue')).to.have.length(1);
  });

  it('does not restart a watch that delivers the change at once', async () => {
    const edited = versioned(adminPool('blue', { cidr: '10.1.0.0/24' }), '11');
    world.live.set('blue', edited);
    world.clock.onStep = () => void world.pools.cache.set(edited);
    expect(await world.confirm()).to.equal(false);
    expect(world.restarts).to.equal(0);
  });

  it('has the pool chosen again if the NAD has changed', async () => {
    const edited = versioned(nad('vms/blue', holdfastConfig({}, 'green')), '21');
    world.live.set('vms/blue', edited);
    world.deliver = () => world.networks.cache.set(edited);
    expect(await world.confirm()).to.equal(false);
  });

  it('has the pool chosen again if the pool was deleted', async () => {
    world.live.delete('blue');
    world.deliver = () => world.pools.cache.delete('blue');
    expect(await world.confirm()).to.equal(false);
  });

  it('fails with code 11 if the watch does not deliver the change in time', async () => {
    world.live.set('blue', versioned(adminPool('blue'), '11'));
    expect(await world.confirm(5_000)).to.match(
      /^11 AddressPool blue in the cache of this agent is stale; timeout: the kubelet retries/,
    );
    expect(world.restarts).to.equal(1);
  });

  it('fails while the API server cannot be reached and the last read is too old', async () => {
    await world.confirm();
    world.fault = new TransportError('deadline', 'no complete response within 3000 ms');
    expect(await world.confirm()).to.equal(true);
    world.clock.advance(MAX_STALENESS_MS + 1);
    expect(await world.confirm()).to.match(/no complete response/);
  });

  it('accepts a cached pool that is newer than the read', async () => {
    world.live.set('blue', versioned(adminPool('blue'), '9'));
    expect(await world.confirm()).to.equal(true);
  });
});
