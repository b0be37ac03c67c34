import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import type { Client } from '../../kube/client.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { silentLogger } from '../../kube/log.js';
import { apiError } from '../../test/api-errors.js';
import { ManualClock } from '../../test/manual-clock.js';
import { mergePatch } from '../../test/merge-patch.js';
import { adminPool, cacheOf } from '../../test/objects/pool-objects.js';
import { ServedNetworksWriter, listServedNetworks } from './served-networks.js';

const derived = (network: string, nadNamespace: string) =>
  adminPool(`${network}.${nadNamespace}`, { network, nadNamespace });

describe('the list of networks for the policy', () => {
  it('names the pools of administrators by network, with the namespaces that they serve', () => {
    const pools = [adminPool('b', { namespaces: ['x', 'y'] }), adminPool('a'), adminPool('c', { network: 'red' })];
    expect(listServedNetworks(pools)).to.deep.equal({
      ...{ complete: 'true', 'network.blue': 'blue/a/ *\nblue/b/ x y', 'network.red': 'red/c/ *' },
    });
  });

  it('names the namespace of responders for a pool whose guests get addresses by DHCP', () => {
    const guest = { attachment: 'blue', dhcp: {} };
    const list = listServedNetworks([adminPool('a', { namespaces: ['x'], guest })]);
    expect(list['network.blue']).to.equal('blue/a/ x holdfast-responders');
  });

  it('names derived pools by the namespace of their NADs', () => {
    const list = listServedNetworks([derived('red', 'vms'), derived('blue', 'vms'), derived('blue', 'lab')]);
    expect(list).to.deep.equal({
      ...{ complete: 'true', 'namespace.vms': 'blue/blue.vms\nred/red.vms', 'namespace.lab': 'blue/blue.lab' },
    });
  });

  it('has keys that the API server accepts, whatever the name of a network', () => {
    const networks = ['n'.repeat(253), `${'n'.repeat(252)}m`, 'A_b.c-d'];
    const list = listServedNetworks(networks.map((network, index) => adminPool(`p${index}`, { network })));
    for (const key of Object.keys(list)) expect(key).to.match(/^[-._a-zA-Z0-9]{1,253}$/);
    expect(list[`network.${'n'.repeat(200)}`]?.split('\n')).to.have.length(2);
  });

  it('protects all networks of the namespaces with the most pools if it would be too long', () => {
    const many = Array.from({ length: 50 }, (_, index) => derived(`n${index}`, 'crowded'));
    const list = listServedNetworks([...many, derived('blue', 'vms'), adminPool('a')], 100);
    expect(list).to.deep.equal({
      ...{ complete: 'true', 'namespace.crowded': '*', 'namespace.vms': 'blue/blue.vms', 'network.blue': 'blue/a/ *' },
    });
  });
});

/** A ConfigMap with optimistic locking. */
class StoredList {
  data: Record<string, string> = {};
  writes = 0;
  failure: Error | undefined;
  #version = 1;
  #tellWritten: (() => void) | undefined;

  readonly client = {
    get: () => Promise.resolve({ metadata: { resourceVersion: String(this.#version) }, data: { ...this.data } }),
    patch: (_kind: unknown, _ref: unknown, { body }: { body: PatchBody }) => this.#patch(body),
  } as unknown as Pick<Client, 'get' | 'patch'>;

  nextWrite(): Promise<void> {
    return new Promise((resolve) => (this.#tellWritten = resolve));
  }

  async #patch({ metadata, data }: PatchBody): Promise<void> {
    await Promise.resolve();
    const { failure } = this;
    this.failure = undefined;
    if (failure !== undefined) throw failure;
    expect(metadata.resourceVersion).to.equal(String(this.#version++));
    this.writes++;
    mergePatch(this.data, data);
    this.#tellWritten?.();
  }
}

interface PatchBody {
  metadata: { resourceVersion: string };
  data: Record<string, string | null>;
}

describe('the writer of the list of networks', () => {
  let clock: ManualClock;
  let stored: StoredList;
  let tell: (change: ObjectChange<AddressPool>) => void;
  let writer: ServedNetworksWriter;
  const cache = cacheOf<AddressPool>([]);
  let logged: string[];

  beforeEach(async () => {
    clock = new ManualClock(0);
    stored = new StoredList();
    logged = [];
    const log = { ...silentLogger, error: (_fields: object, message: string) => void logged.push(message) };
    for (const key of cache.keys()) cache.delete(key);
    const pools = { cache, onChange: (handler: typeof tell) => void (tell = handler) };
    const config = { namespace: 'holdfast-system' };
    writer = new ServedNetworksWriter({ client: stored.client, config, pools, clock, log });
    writer.start();
    await clock.untilAlarmsSet();
  });

  afterEach(() => writer.stop());

  const afterMs = (ms: number): Promise<void> => clock.stepThrough(clock.now() + ms);

  function put(object: AddressPool): void {
    const before = cache.set(object);
    tell(before === undefined ? { type: 'added', object } : { type: 'changed', object, before });
  }

  it('says that the list is complete, also without pools', () => {
    expect(stored.data).to.deep.equal({ complete: 'true' });
  });

  it('writes the first pool after a second of quiet at once', async () => {
    await afterMs(1_000);
    const written = stored.nextWrite();
    put(adminPool('a'));
    await written;
    expect(stored.data).to.have.property('network.blue');
    expect(clock.now()).to.equal(1_000);
  });

  it('writes pools that come and go within a second, all at once', async () => {
    for (const name of ['a', 'b', 'c']) put(adminPool(name, { network: name }));
    await afterMs(1_000);
    expect(stored.data).to.include({ 'network.a': 'a/a/ *', 'network.c': 'c/c/ *' });
    expect(stored.writes).to.equal(2);
    const gone = cache.delete('a')!;
    tell({ type: 'removed', object: gone });
    await afterMs(1_000);
    expect(stored.data).not.to.have.property('network.a');
    expect(stored.writes).to.equal(3);
  });

  it('reads and writes nothing when the status of a pool changes', async () => {
    put(adminPool('a'));
    await afterMs(1_000);
    stored.data = {};
    put({
      ...adminPool('a'),
      status: { capacity: 254, leased: 7, heldByStopped: 0, cooling: 0, free: 247, reserved: 0 },
    });
    await afterMs(5_000);
    expect(stored.data).to.deep.equal({});
  });

  it('repairs the list within 30 s after somebody else has changed it', async () => {
    stored.data = { 'network.other': 'other/other/ *' };
    await afterMs(31_000);
    expect(stored.data).to.deep.equal({ complete: 'true' });
  });

  it('logs a failure once while it lasts, although it tries again each second', async () => {
    put(adminPool('a'));
    const failing = async (message: string) => {
      stored.failure = new Error(message);
      await afterMs(1_000);
    };
    for (const message of ['no answer', 'no answer', 'forbidden']) await failing(message);
    await afterMs(1_000);
    expect(stored.data).to.have.property('network.blue');
    put(adminPool('b'));
    await failing('forbidden');
    expect(logged.map((message) => message.replace(/.*: /, ''))).to.deep.equal(['no answer', 'forbidden', 'forbidden']);
  });

  it('tries again after a conflict', async () => {
    put(adminPool('a'));
    stored.failure = apiError(409, 'Conflict', 'Conflict', 'list');
    await afterMs(1_000);
    expect(stored.data).not.to.have.property('network.blue');
    await afterMs(1_000);
    expect(stored.data).to.have.property('network.blue');
  });
});
