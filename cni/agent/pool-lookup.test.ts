import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import { type KubeObject, joinKey, objectKey } from '../../api/meta.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import type { ObjectRef, Resource } from '../../kube/resource.js';
import { TestInformer } from '../../kube/testing/test-informer.js';
import { apiError } from '../../test/api-errors.js';
import { ManualClock } from '../../test/manual-clock.js';
import { type PoolGiven, adminPool, holdfastConfig, nadDefinition } from '../../test/objects/pool-objects.js';
import { PoolLookup } from './pool-lookup.js';

const MAX_STALENESS_MS = 30_000;
const SUBNETS = { subnets: [{ cidr: '10.9.0.0/24' }] };
const NAD = 'network-attachment-definitions vms/blue';
const DERIVED = 'addresspools blue.vms';
const USER = { namespace: 'vms', network: 'blue', nad: 'vms/blue' };

/** An API server, and an agent with a watch of administrators' pools that may be behind. */
class World {
  readonly clock = new ManualClock(Date.UTC(2026, 0, 1));
  readonly reads: string[] = [];
  fault: Error | undefined;
  /** Called before an answer. */
  before: () => void = () => undefined;
  /** By `<plural> <key>`. */
  readonly live = new Map<string, KubeObject>();
  readonly watched = new TestInformer<AddressPool>();
  readonly lookup = new PoolLookup({
    client: { get: (resource, ref) => this.#get(resource, ref) },
    clock: this.clock,
    adminPools: this.watched,
    maxStalenessMs: MAX_STALENESS_MS,
  });

  constructor() {
    this.put('network-attachment-definitions', nadDefinition('vms/blue', holdfastConfig(SUBNETS)));
  }

  put<T extends KubeObject>(plural: string, object: T, resourceVersion = '10'): T {
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion } };
    this.live.set(`${plural} ${objectKey(object)}`, stored);
    return stored;
  }

  putDerived(resourceVersion = '10', given: PoolGiven = {}): void {
    this.put('addresspools', adminPool('blue.vms', { nadNamespace: 'vms', ...given }), resourceVersion);
  }

  /** @returns the pool as the watch would show it */
  putAdmin(resourceVersion = '10', given: PoolGiven = {}): AddressPool {
    return this.put('addresspools', adminPool('blue', given), resourceVersion);
  }

  /** As an ADD of a pod without a claim does. @returns the name of its pool, or why it has none */
  async choose(): Promise<string> {
    for (;;) {
      const found = await this.lookup.resolve(USER, this.call);
      if (found.kind !== 'served') return found.message;
      if (await this.lookup.confirm(found.pool, this.call)) return found.pool.name;
    }
  }

  later(ms = MAX_STALENESS_MS + 1): void {
    this.clock.advanceTo(this.clock.now() + ms);
  }

  /** Returns the reads since the last call. */
  taken(): string[] {
    return this.reads.splice(0).sort();
  }

  readonly call = { signal: new AbortController().signal };

  #get({ plural }: Resource, { namespace, name }: ObjectRef): Promise<never> {
    const id = `${plural} ${joinKey(namespace, name)}`;
    this.reads.push(id);
    const found = this.live.get(id);
    this.before();
    if (this.fault !== undefined) return Promise.reject(this.fault);
    return found === undefined
      ? Promise.reject(apiError(404, 'NotFound', 'not found', name))
      : Promise.resolve(found as never);
  }
}

describe('the lookup of pools', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });

  it('reads the NAD and its derived pool once per --max-staleness, and nothing else', async () => {
    world.putDerived();
    for (let i = 0; i < 3; i++) expect(await world.choose()).to.equal('blue.vms');
    expect(world.taken()).to.deep.equal([DERIVED, NAD]);
    world.later(MAX_STALENESS_MS);
    expect(await world.choose()).to.equal('blue.vms');
    expect(world.taken()).to.deep.equal([]);
    world.later(1);
    expect(await world.choose()).to.equal('blue.vms');
    expect(world.taken()).to.deep.equal([DERIVED, NAD]);
  });

  it("reads the NAD and an administrator's pool once per --max-staleness, because bookmarks prove nothing", async () => {
    world.watched.set(world.putAdmin());
    for (let i = 0; i < 3; i++) expect(await world.choose()).to.equal('blue');
    expect(world.taken()).to.deep.equal(['addresspools blue', NAD]);
    world.later();
    expect(await world.choose()).to.equal('blue');
    expect(world.taken()).to.deep.equal(['addresspools blue', NAD]);
    expect(world.watched.restarts).to.equal(0);
  });

  it('sees a changed NAD and a changed pool within --max-staleness', async () => {
    world.putDerived();
    await world.choose();
    const [before] = world.lookup.directory.poolsOf('blue');
    world.put('network-attachment-definitions', nadDefinition('vms/blue', { ...holdfastConfig(), ipam: {} }), '11');
    world.putDerived('11', { cidr: '10.1.0.0/24' });
    expect(await world.choose()).to.equal('blue.vms');
    world.later();
    expect(await world.choose()).to.match(/NAD vms.blue has no IPAM/);
    expect(world.lookup.directory.poolsOf('blue')[0]).not.to.equal(before);
  });

  it('reads a pool that refuses again at most once a second', async () => {
    world.putDerived();
    await world.choose();
    const pool = world.lookup.directory.pool('blue.vms')!;
    world.taken();
    world.putDerived('11', { cidr: '10.0.0.0/23' });
    world.later(1_000);
    expect(await world.lookup.confirm(pool, world.call, 1_000)).to.equal(true);
    world.later(1);
    expect(await world.lookup.confirm(pool, world.call, 1_000)).to.equal(false);
    expect(world.taken()).to.deep.equal([DERIVED]);
  });

  it('keeps the same pool if only its status has changed', async () => {
    world.putDerived();
    await world.choose();
    const before = world.lookup.directory.pool('blue.vms');
    const status = { capacity: 1, leased: 1, heldByStopped: 0, cooling: 0, free: 0, reserved: 0 };
    world.put('addresspools', { ...adminPool('blue.vms', { nadNamespace: 'vms' }), status }, '11');
    world.later();
    await world.choose();
    expect(world.lookup.directory.pool('blue.vms')).to.equal(before);
    expect(world.lookup.writtenPool('blue.vms')?.status).to.deep.equal(status);
  });

  it('finds a NAD and a pool that did not exist when they were read before', async () => {
    world.live.clear();
    expect(await world.choose()).to.include('NAD vms/blue does not exist');
    expect(world.taken()).to.deep.equal([DERIVED, NAD]);
    world.later(1);
    world.put('network-attachment-definitions', nadDefinition('vms/blue', holdfastConfig(SUBNETS)));
    expect(await world.choose()).to.match(/no AddressPool serves network blue for namespace vms yet/);
    world.later(1);
    world.putDerived();
    expect(await world.choose()).to.equal('blue.vms');
  });

  it("prefers an administrator's pool from the moment that the watch shows it, and the derived one when it is gone", async () => {
    world.putDerived();
    expect(await world.choose()).to.equal('blue.vms');
    world.watched.set(world.putAdmin('11'));
    expect(await world.choose()).to.equal('blue');
    world.live.delete('addresspools blue');
    world.watched.delete('blue');
    expect(await world.choose()).to.equal('blue.vms');
  });

  it("uses an administrator's pool that has the name of the former derived one", async () => {
    world.putDerived();
    expect(await world.choose()).to.equal('blue.vms');
    world.watched.set(world.put('addresspools', adminPool('blue.vms', { cidr: '10.7.0.0/24' }), '12'));
    expect(await world.choose()).to.equal('blue.vms');
    expect(world.lookup.directory.poolsOf('blue').map(({ nadNamespace }) => nadNamespace)).to.deep.equal([undefined]);
  });

  describe('with a watch that is behind', () => {
    beforeEach(() => {
      world.watched.set(world.putAdmin('10'));
    });

    it('chooses again with the version that was read, and restarts the watch', async () => {
      await world.lookup.resolve(USER, world.call);
      const pool = world.lookup.directory.pool('blue')!;
      world.putAdmin('11', { cidr: '10.1.0.0/24' });
      expect(await world.lookup.confirm(pool, world.call)).to.equal(false);
      expect(world.watched.restarts).to.equal(1);
      expect(await world.choose()).to.equal('blue');
      expect(world.taken().filter((read) => read === 'addresspools blue')).to.have.length(1);
    });

    it('does not go back to an older version, and reads a newer one again', async () => {
      world.putAdmin('12', { cidr: '10.2.0.0/24' });
      await world.choose();
      world.watched.set({ ...adminPool('blue', { cidr: '10.1.0.0/24' }), ...versioned('blue', '11') });
      const cidr = () => world.lookup.writtenPool('blue')?.spec.subnets[0]?.cidr;
      expect(cidr()).to.equal('10.2.0.0/24');
      world.taken();
      world.watched.set(world.putAdmin('13', { cidr: '10.3.0.0/24' }));
      expect(cidr()).to.equal('10.3.0.0/24');
      await world.choose();
      expect(world.taken()).to.deep.equal(['addresspools blue']);
    });

    it('does not use a pool that is gone', async () => {
      world.live.delete('addresspools blue');
      world.putDerived();
      expect(await world.choose()).to.equal('blue.vms');
      expect(world.watched.restarts).to.be.greaterThan(0);
      world.watched.delete('blue');
      expect(await world.choose()).to.equal('blue.vms');
    });

    it('does not forget a pool that was created after the read', async () => {
      world.live.delete('addresspools blue');
      world.before = () => {
        world.before = () => undefined;
        world.watched.set(world.putAdmin('14'));
      };
      await world.lookup.confirm(world.lookup.directory.pool('blue')!, world.call);
      expect(world.lookup.writtenPool('blue')?.metadata.resourceVersion).to.equal('14');
    });
  });

  it('uses the NAD and the pool of a restored backup, whose versions are older', async () => {
    world.putDerived('30', { subnets: [{ cidr: '10.8.0.0/24' }] });
    world.put('network-attachment-definitions', nadDefinition('vms/blue', holdfastConfig(SUBNETS)), '30');
    await world.choose();
    world.putDerived('20');
    const before = nadDefinition('vms/blue', holdfastConfig({ subnets: [{ cidr: '10.7.0.0/24' }] }));
    world.put('network-attachment-definitions', before, '20');
    world.later();
    await world.choose();
    expect(world.lookup.writtenPool('blue.vms')?.metadata.resourceVersion).to.equal('20');
    expect(world.lookup.nad('vms/blue')?.metadata.resourceVersion).to.equal('20');
  });

  it('forgets NADs and derived pools that no ADD has needed for a while, but no pool that the watch shows', async () => {
    world.putDerived();
    await world.choose();
    world.watched.set(world.putAdmin('11', { network: 'green' }));
    const read = world.clock.now();
    world.lookup.evictBefore(read);
    expect(world.lookup.directory.poolsOf('blue')).to.have.length(1);
    world.lookup.evictBefore(read + 1);
    expect(world.lookup.directory.poolsOf('blue')).to.deep.equal([]);
    expect(world.lookup.directory.nadsOf('vms', 'blue')).to.deep.equal([]);
    expect(world.lookup.directory.poolsOf('green')).to.have.length(1);
  });

  it('answers from earlier reads for --max-staleness while the API server is away, and then fails with code 11', async () => {
    world.putDerived();
    await world.choose();
    world.fault = new TransportError('deadline', 'no complete response within 3000 ms');
    world.later(MAX_STALENESS_MS);
    expect(await world.choose()).to.equal('blue.vms');
    world.later(1);
    const failure: unknown = await world.choose().catch((error: unknown) => error);
    expect(failure).to.include({ code: 11 });
    expect((failure as Error).message).to.include('no complete response');
    expect(world.lookup.nad('vms/blue')).to.equal(undefined);
  });

  it('finds the NAD although reading it took longer than --max-staleness', async () => {
    const began = world.clock.now();
    world.before = () => world.later();
    expect(await world.lookup.load(USER, world.call)).to.have.nested.property('metadata.name', 'blue');
    expect(world.lookup.nad('vms/blue', began)).to.have.nested.property('metadata.name', 'blue');
  });

  it('does not take a kind that is not served for a NAD that does not exist', async () => {
    world.fault = new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: 'no such kind' });
    expect(await world.choose().catch((error: unknown) => error)).to.include({ code: 11 });
  });
});

function versioned(name: string, resourceVersion: string) {
  return { metadata: { ...adminPool(name).metadata, resourceVersion } };
}
