import { expect } from 'chai';
import sinon from 'sinon';
import type { AddressLeaseSpec, LeaseOwner } from '../../../api/address-lease.js';
import { LeaseAgentWorld, OTHER } from '../testing/model/lease-agent-world.js';
import { compiledPool } from '../../../test/objects/lease-objects.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { parseAddress } from '../../../addressing/address/address.js';
import { Client } from '../../../kube/client.js';
import { StatusError } from '../../../kube/errors.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import { SpaceCandidates } from './space-candidates.js';

const MAC = '02:00:00:00:00:01';
const OTHER_MAC = '02:00:00:00:00:02';
const COOLDOWN_MS = 60_000;
const STICKY_MS = 3_600_000;
const SUBNETS = [{ cidr: '10.0.0.0/29', gateway: '10.0.0.1' }];
/** The open addresses are 10.0.0.2 to 10.0.0.6. */
const STICKY = compiledPool({ subnets: SUBNETS, stickyMAC: { ttl: '1h' } });
const PLAIN = compiledPool({ subnets: SUBNETS });
const DUAL = compiledPool({ subnets: [...SUBNETS, { cidr: 'fd00::/125' }], stickyMAC: { ttl: '1h' } });
const POD: LeaseOwner = { kind: 'Pod', namespace: 'apps', name: 'old', uid: 'old-uid' };
const LOOK = `GET spec.mac=${MAC},spec.pool=blue,spec.addressSpace=blue`;

/** Creates a lease of another owner. */
async function leased(scene: LeaseAgentWorld, address: string, more: Partial<AddressLeaseSpec> = {}): Promise<void> {
  const spec = { address, addressSpace: 'blue', pool: 'blue', mac: MAC, ...more };
  const metadata = { name: leaseName(spec.addressSpace, parseAddress(address)) };
  await new Client(scene.cluster.server).create(ADDRESS_LEASES, { metadata, spec });
}

const released = (scene: LeaseAgentWorld, msAgo = 1, more: Partial<AddressLeaseSpec> = {}) => ({
  owner: POD,
  releasedAt: new Date(scene.clock.wall() - msAgo).toISOString(),
  ...more,
});

describe('a sticky address', () => {
  let scene: LeaseAgentWorld;

  beforeEach(() => {
    scene = new LeaseAgentWorld(STICKY);
  });

  it('is allocated on another node at once, with one list request', async () => {
    const first = await scene.add({ mac: MAC });
    await scene.del();
    scene.start('n2');
    scene.agent.catchUp();
    expect(await scene.add({ pod: 'web', uid: 'again', mac: MAC })).to.deep.equal(first);
    expect(scene.requests()).to.deep.equal([LOOK, `PATCH ${leaseName('blue', parseAddress(first[0]!))}`]);
    expect(scene.lease(first[0]!)?.spec)
      .to.deep.include({ node: 'n2', mac: MAC })
      .and.not.to.have.property('releasedAt');
  });

  it("is allocated on the same node, even if the API server's cache is stale", async () => {
    const first = await scene.add({ mac: MAC });
    await scene.del();
    scene.requests();
    expect(await scene.add({ uid: 'again', mac: MAC })).to.deep.equal(first);
    expect(scene.requests()).to.deep.equal([LOOK, `PATCH ${leaseName('blue', parseAddress(first[0]!))}`]);
  });

  it('is found without a list request if the leases of the address space are watched', async () => {
    await leased(scene, '10.0.0.6', released(scene));
    scene.watch();
    scene.requests();
    expect(await scene.add({ mac: MAC })).to.deep.equal(['10.0.0.6']);
    expect(scene.requests()).to.deep.equal(['PATCH blue.10-0-0-6']);
  });

  it('is allocated although another pod of the node tried it while the watch of the leases began', async () => {
    await leased(scene, '10.0.0.2', released(scene));
    scene.agent.api.before = () => {
      scene.follow();
      scene.fail();
      return undefined;
    };
    expect(await scene.add({ pod: 'first' })).not.to.include('10.0.0.2');
    expect(scene.requests()).to.include('POST blue.10-0-0-2');
    expect(await scene.add({ mac: MAC })).to.deep.equal(['10.0.0.2']);
  });

  it('is found with one list request for both families', async () => {
    scene = new LeaseAgentWorld(DUAL);
    await leased(scene, '10.0.0.6', released(scene));
    await leased(scene, 'fd00::6', released(scene));
    expect(await scene.add({ mac: MAC })).to.deep.equal(['10.0.0.6', 'fd00::6']);
    expect(scene.requests().filter((text) => text.startsWith('GET'))).to.deep.equal([LOOK]);
  });

  it('is the reserved one first, then the one released last', async () => {
    await leased(scene, '10.0.0.4', released(scene, 10));
    await leased(scene, '10.0.0.5', released(scene, 5));
    const got = [];
    for (const pod of ['a', 'b']) got.push(...(await scene.add({ pod, mac: MAC })));
    expect(got).to.deep.equal(['10.0.0.5', '10.0.0.4']);
    await scene.del({ pod: 'a' });
    await leased(scene, '10.0.0.6');
    expect(await scene.add({ pod: 'c', mac: MAC })).to.deep.equal(['10.0.0.6']);
  });

  it("is that of the pod's own namespace, even if pods of another one had the MAC address since", async () => {
    await leased(scene, '10.0.0.5', released(scene, 2 * COOLDOWN_MS));
    await leased(scene, '10.0.0.6', released(scene, COOLDOWN_MS, { owner: { ...POD, namespace: 'others' } }));
    expect(await scene.add({ mac: MAC })).to.deep.equal(['10.0.0.5']);
  });

  const others: { name: string; pool?: typeof STICKY; given: (scene: LeaseAgentWorld) => Partial<AddressLeaseSpec> }[] =
    [
      { name: 'it has another MAC address', given: (scene) => released(scene, 1, { mac: OTHER_MAC }) },
      { name: 'another pod holds it', given: () => ({ owner: POD }) },
      { name: 'the pool is not sticky', pool: PLAIN, given: (scene) => released(scene) },
      {
        name: 'it cools down after a pod of another namespace',
        given: (scene) => released(scene, 1, { owner: { ...POD, namespace: 'others' } }),
      },
      {
        name: 'it cools down after a claim',
        pool: compiledPool({ subnets: SUBNETS, stickyMAC: { ttl: '1h', retain: true } }),
        given: (scene) => released(scene, 1, { owner: OTHER }),
      },
      { name: 'the pool is not sticky for claims', given: (scene) => released(scene, COOLDOWN_MS, { owner: OTHER }) },
      { name: 'it belongs to another pool', given: (scene) => released(scene, 1, { pool: 'red' }) },
      {
        name: 'the pool does not lease it any more',
        pool: compiledPool({ subnets: [{ ...SUBNETS[0]!, exclude: ['10.0.0.6'] }], stickyMAC: { ttl: '1h' } }),
        given: (scene) => released(scene),
      },
    ];
  for (const { name, pool = STICKY, given } of others) {
    it(`is not allocated if ${name}`, async () => {
      scene = new LeaseAgentWorld(pool);
      await leased(scene, '10.0.0.6', given(scene));
      expect(await scene.add({ mac: MAC })).not.to.include('10.0.0.6');
      expect(scene.held).to.have.length(given(scene).releasedAt === undefined ? 2 : 1);
    });
  }

  it('is not used if the pod requests another address', async () => {
    await leased(scene, '10.0.0.6', released(scene));
    expect(await scene.add({ mac: MAC, requested: ['10.0.0.3'] })).to.deep.equal(['10.0.0.3']);
    expect(scene.requests()).to.deep.equal(['POST blue.10-0-0-3']);
  });

  it('is not searched if the pod requests no MAC address, or the feature gate is off', async () => {
    await leased(scene, '10.0.0.6', released(scene));
    await scene.add();
    scene.stickyMAC = false;
    scene.start();
    scene.agent.catchUp();
    expect(await scene.add({ pod: 'other', mac: MAC })).not.to.include('10.0.0.6');
    expect(scene.requests().filter((text) => text.includes('spec.mac'))).to.deep.equal([]);
  });

  it('is read again if its lease has changed, and replaced if another owner holds it', async () => {
    const first = await scene.add({ mac: MAC });
    await scene.del();
    const name = leaseName('blue', parseAddress(first[0]!));
    const admin = new Client(scene.cluster.server);
    await admin.patch(ADDRESS_LEASES, { name }, { type: 'merge', body: { metadata: { labels: { mine: 'yes' } } } });
    expect(await scene.add({ uid: 'again', mac: MAC })).to.deep.equal(first);
    await scene.del();
    const taken = { owner: { ...POD, uid: 'faster' }, releasedAt: null };
    await admin.patch(ADDRESS_LEASES, { name }, { type: 'merge', body: { spec: taken } });
    const [second] = await scene.add({ uid: 'late', mac: MAC });
    expect(second).not.to.equal(first[0]);
    expect(scene.held).to.have.members([first[0], second]);
  });

  it('is waited for while the API server cannot list the sticky leases', async () => {
    const error = new StatusError({ request: 'GET', status: 503, reason: 'ServiceUnavailable', message: 'later' });
    scene.fail({ error, applied: false });
    expect(await scene.refused({ mac: MAC })).to.match(/^11 cannot allocate an address of pool blue.*later/);
    expect(scene.held).to.deep.equal([]);
  });
});

describe('a reserved address', () => {
  it('is allocated to its MAC address in any pool, again and again, and stays reserved', async () => {
    const scene = new LeaseAgentWorld(PLAIN);
    await leased(scene, '10.0.0.6');
    expect(await scene.add({ mac: MAC })).to.deep.equal(['10.0.0.6']);
    expect(scene.lease('10.0.0.6')?.spec).to.include({ reserved: true, mac: MAC });
    await scene.del();
    expect(await scene.add({ uid: 'again', mac: MAC })).to.deep.equal(['10.0.0.6']);
  });

  it('is preferred to a lease that the node has released for the same MAC address', async () => {
    const scene = new LeaseAgentWorld(STICKY);
    await scene.leaseTo(OTHER, '10.0.0.6');
    const [first] = await scene.add({ mac: MAC });
    await scene.del();
    const last = first === '10.0.0.5' ? '10.0.0.4' : '10.0.0.5';
    await leased(scene, last);
    expect(await scene.add({ uid: 'again', mac: MAC })).to.deep.equal([last]);
  });

  for (const isFollowed of [false, true]) {
    it(`is waited for while another owner has it, even if others are free; leases ${isFollowed ? 'are' : 'are not'} watched`, async () => {
      const scene = new LeaseAgentWorld(PLAIN);
      await leased(scene, '10.0.0.6', { owner: { ...POD, namespace: 'others' }, reserved: true });
      if (isFollowed) scene.watch();
      expect(await scene.refused({ mac: MAC })).to.equal(
        `11 mac: 10.0.0.6 is allocated to an owner in another namespace (AddressLease blue.10-0-0-6), and is reserved for MAC address ${MAC}: the kubelet retries until it is free`,
      );
    });
  }

  it('is never allocated to another MAC address, even if the pool is full and the lease released', async () => {
    const scene = new LeaseAgentWorld(PLAIN);
    for (const last of [2, 3, 4, 5]) await scene.leaseTo(OTHER, `10.0.0.${last}`);
    await leased(scene, '10.0.0.6', released(scene, 10 * COOLDOWN_MS, { reserved: true }));
    const refused = scene.refused({ mac: OTHER_MAC });
    await scene.turn();
    scene.follow();
    expect(await refused).to.match(/^11 pool blue is full: 5 of 5 leased: /);
    expect(await scene.refused({ requested: ['10.0.0.6'] })).to.match(/10\.0\.0\.6 is reserved by AddressLease/);
    expect(await scene.add({ mac: MAC })).to.deep.equal(['10.0.0.6']);
  });
});

describe('sticky addresses in a pool that fills up', () => {
  /** .2 is free, .3 was released without a MAC address, and .6, .5, .4 with one, in this order. */
  async function filling(): Promise<LeaseAgentWorld> {
    const scene = new LeaseAgentWorld(STICKY);
    await leased(scene, '10.0.0.3', released(scene, COOLDOWN_MS, { mac: undefined! }));
    for (const last of [4, 5, 6]) await leased(scene, `10.0.0.${last}`, released(scene, last * COOLDOWN_MS));
    scene.watch();
    const [first] = await scene.add({ pod: 'one' });
    expect(first).to.equal('10.0.0.2');
    return scene;
  }

  it('are allocated to other pods last, the oldest first, and only after their cool-down', async () => {
    const scene = await filling();
    const got = [];
    for (const pod of ['two', 'three', 'four', 'five']) got.push(...(await scene.add({ pod, mac: OTHER_MAC })));
    expect(got).to.deep.equal(['10.0.0.3', '10.0.0.6', '10.0.0.5', '10.0.0.4']);
    await scene.del({ pod: 'two' });
    scene.agent.catchUp();
    scene.follow();
    expect(await scene.refused({ pod: 'six' })).to.match(/^11 pool blue is full/);
    await scene.pass(COOLDOWN_MS);
    expect(await scene.add({ pod: 'six' })).to.deep.equal(['10.0.0.3']);
  });

  it('are searched once per ADD, even if other owners are faster again and again', async () => {
    const scene = await filling();
    const admin = new Client(scene.cluster.server);
    for (const last of [3, 6, 5]) {
      const body = { spec: { owner: { ...POD, uid: 'faster' }, releasedAt: null } };
      await admin.patch(ADDRESS_LEASES, { name: `blue.10-0-0-${last}` }, { type: 'merge', body });
    }
    scene.requests();
    const looks = sinon.spy(SpaceCandidates.prototype, 'releasedOf');
    try {
      expect(await scene.add({ pod: 'two' })).to.deep.equal(['10.0.0.4']);
      expect(looks.callCount).to.equal(1);
    } finally {
      looks.restore();
    }
    expect(new Set(scene.requests())).to.have.length(4);
  });

  it('are not allocated to other pods before their sticky time ends while other addresses are free', async () => {
    const scene = await filling();
    await scene.add({ pod: 'two' });
    await scene.del({ pod: 'one' });
    scene.follow();
    await scene.pass(COOLDOWN_MS);
    expect(await scene.add({ pod: 'three' }), 'it has cooled down and has no MAC address').to.deep.equal(['10.0.0.2']);
    expect(STICKY_MS).to.be.greaterThan(7 * COOLDOWN_MS);
    expect(await scene.add({ pod: 'four', mac: MAC })).to.deep.equal(['10.0.0.4']);
  });
});
