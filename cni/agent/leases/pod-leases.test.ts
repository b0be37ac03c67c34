import { expect } from 'chai';
import { compiledPool } from '../../../test/objects/lease-objects.js';
import { LeaseAgentWorld, NODE, OTHER, callOf } from '../testing/model/lease-agent-world.js';
import { Client } from '../../../kube/client.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import { formatAddress } from '../../../addressing/address/address.js';
import { REUSE_MS } from '../../../addressing/lease/lease-times.js';
import { MAX_ALLOCATION_ATTEMPTS, WATCHED_ATTEMPTS } from './free-address-search.js';

/** The open addresses are 10.0.0.2 to 10.0.0.6. */
const SMALL = compiledPool({ subnets: [{ cidr: '10.0.0.0/29', gateway: '10.0.0.1' }] });
const DUAL = compiledPool({ subnets: [{ cidr: '10.0.0.0/29' }, { cidr: 'fd00::/126', gateway: 'fd00::1' }] });
const COOLDOWN_MS = 60_000;

describe('the address of a pod', () => {
  let scene: LeaseAgentWorld;

  beforeEach(() => {
    scene = new LeaseAgentWorld(SMALL);
  });

  it('costs one create, and comes with prefix length and gateway of its subnet', async () => {
    const grant = await scene.grant();
    expect(grant).to.have.length(1);
    const address = formatAddress(grant[0]!.address);
    expect(grant[0]).to.deep.include({ prefixLength: 29, gateway: { family: 4, value: 0x0a000001n } });
    expect(scene.requests()).to.deep.equal([`POST blue.${address.replaceAll('.', '-')}`]);
    expect(scene.lease(address)?.spec).to.deep.equal({
      address,
      addressSpace: 'blue',
      pool: 'blue',
      owner: { kind: 'Pod', namespace: 'apps', name: 'web', uid: 'web-uid' },
      node: 'n1',
      containerID: 'web-c1',
      interface: 'net1',
    });
  });

  it('costs one create if the other leases are watched, even for the last free address', async () => {
    for (const last of [2, 3, 4]) await scene.leaseTo(OTHER, `10.0.0.${last}`);
    const first = await scene.add({ pod: 'first' });
    scene.watch();
    scene.requests();
    const [second] = await scene.add({ pod: 'second' });
    expect([...first, second].sort()).to.deep.equal(['10.0.0.5', '10.0.0.6']);
    expect(scene.requests()).to.have.length(1);
  });

  it('is the same for the same interface of the same sandbox, after a live read', async () => {
    const first = await scene.add();
    scene.requests();
    expect(await scene.add()).to.deep.equal(first);
    expect(scene.requests()).to.deep.equal([`GET blue.${first[0]?.replaceAll('.', '-')}`]);
  });

  it('is another one if an administrator has deleted the lease meanwhile', async () => {
    const [first = ''] = await scene.add();
    scene.cluster.server.tracker.remove(ADDRESS_LEASES, { name: `blue.${first.replaceAll('.', '-')}` });
    const [again = ''] = await scene.add();
    expect(scene.held).to.deep.equal([again]);
  });

  it('differs for two interfaces of a pod on one network', async () => {
    const one = await scene.add({ interface: 'net1' });
    const two = await scene.add({ interface: 'net2' });
    expect(one).not.to.deep.equal(two);
    await scene.del({ interface: 'net1' });
    expect(scene.held).to.deep.equal(two);
  });

  it("moves to the pod's new sandbox, and a late DEL of the old one does not release it", async () => {
    const first = await scene.add({ container: 'c1', mac: '02:00:00:00:00:01' });
    expect(await scene.add({ container: 'c2' })).to.deep.equal(first);
    await scene.del({ container: 'c1' });
    expect(scene.held).to.deep.equal(first);
    expect(scene.lease(first[0]!)?.spec).to.include({ containerID: 'c2' }).and.not.to.have.property('mac');
    await scene.del({ container: 'c2' });
    expect(scene.held).to.deep.equal([]);
  });

  it('is that of a lease that others created for a pod that runs', async () => {
    const owner = { kind: 'Pod', namespace: 'apps', name: 'web', uid: 'web-uid' } as const;
    const place = { node: NODE, containerID: 'c0', interface: 'net1' };
    await scene.leaseTo(owner, '10.0.0.5', scene.pool, place);
    expect(await scene.add({ container: 'c1', phase: 'Running' })).to.deep.equal(['10.0.0.5']);
    scene.requests();
    await scene.add({ pod: 'new', phase: 'Pending' });
    expect(scene.requests().filter((text) => text.startsWith('GET'))).to.deep.equal([]);
  });

  it('is allocated to the same pod again after a DEL, without a cool-down', async () => {
    scene = new LeaseAgentWorld(compiledPool({ subnets: [{ cidr: '10.0.0.4/30', ranges: ['10.0.0.5'] }] }));
    const first = await scene.add({ container: 'c1' });
    await scene.del({ container: 'c1' });
    expect(await scene.add({ container: 'c2' })).to.deep.equal(first);
    await scene.del({ container: 'c1' });
    expect(scene.held).to.deep.equal(first);
  });

  it('is another one in the new sandbox if the pool has lost the address since, held or released', async () => {
    const moved = compiledPool({ subnets: [{ cidr: '10.0.0.8/29' }] });
    await scene.add({ pod: 'held', container: 'c1' });
    await scene.add({ pod: 'released', container: 'c1' });
    await scene.del({ pod: 'released', container: 'c1' });
    for (const pod of ['held', 'released'])
      expect((await scene.add({ pod, container: 'c2' }, moved))[0], pod).to.match(/^10\.0\.0\.(9|1\d)$/);
  });

  it('is not allocated to another pod of the same name', async () => {
    const first = await scene.add({ uid: 'one' });
    await scene.del();
    expect(await scene.add({ uid: 'two' })).not.to.deep.equal(first);
  });

  it('is that of a lease that a pod of the node had, after its cool-down and before ipam deletes it', async () => {
    scene = new LeaseAgentWorld(compiledPool({ cidr: '10.0.0.0/24' }));
    const first = await scene.add({ pod: 'first' });
    await scene.del({ pod: 'first' });
    await scene.pass(COOLDOWN_MS - 1);
    expect(await scene.add({ pod: 'early' })).not.to.deep.equal(first);
    await scene.pass(1);
    scene.requests();
    expect(await scene.add({ pod: 'second' })).to.deep.equal(first);
    expect(scene.requests()).to.deep.equal([`PATCH blue.${first[0]?.replaceAll('.', '-')}`]);
    await scene.del({ pod: 'second' });
    await scene.pass(COOLDOWN_MS + REUSE_MS);
    expect(await scene.add({ pod: 'late' })).not.to.deep.equal(first);
  });

  it('is picked at random before the first list of leases and meanwhile, and then waits for the list', async () => {
    scene = new LeaseAgentWorld(compiledPool({ cidr: '10.0.0.0/24' }));
    for (let last = 1; last < 254; last++) await scene.leaseTo(OTHER, `10.0.0.${last}`);
    const granted = scene.add();
    await scene.turn();
    expect(scene.requests()).to.have.length(MAX_ALLOCATION_ATTEMPTS - WATCHED_ATTEMPTS);
    scene.follow();
    expect(await granted).to.deep.equal(['10.0.0.254']);
    expect(scene.requests()).to.deep.equal(['POST blue.10-0-0-254']);
  });

  it('is never one that another pool of the address space has leased', async () => {
    const other = compiledPool({ addressSpace: 'blue', cidr: '10.0.0.0/29' }, 'other');
    scene = new LeaseAgentWorld(SMALL, other);
    for (const last of [2, 3, 4, 5]) await scene.leaseTo(OTHER, `10.0.0.${last}`, other);
    await scene.add({ pod: 'first', requested: ['10.0.0.6'] });
    scene.watch();
    scene.requests();
    expect(await scene.refused()).to.include('11 pool blue is full');
    expect(scene.requests()).to.deep.equal([]);
  });

  it('is not picked twice by two parallel requests', async () => {
    const granted = await Promise.all([1, 2, 3, 4, 5].map((n) => scene.add({ pod: `p${n}` })));
    expect(new Set(granted.flat()).size).to.equal(5);
    expect(scene.requests()).to.have.length(5);
  });

  it('is never a quarantined one', async () => {
    const client = new Client(scene.cluster.server);
    const quarantine = { since: '2030-01-01T00:00:00Z', until: '2030-01-01T01:00:00Z', mac: '02:00:00:00:00:99' };
    for (const last of [2, 3, 4, 5]) {
      const spec = { address: `10.0.0.${last}`, addressSpace: 'blue', pool: 'blue', quarantine };
      await client.create(ADDRESS_LEASES, { metadata: { name: `blue.10-0-0-${last}` }, spec });
    }
    expect(await scene.add()).to.deep.equal(['10.0.0.6']);
    scene.watch();
    expect(await scene.refused({ pod: 'second' })).to.include('11 pool blue is full');
  });

  describe('in a full pool', () => {
    async function fullScene(): Promise<LeaseAgentWorld> {
      for (const last of [2, 3, 4, 5, 6]) await scene.leaseTo(OTHER, `10.0.0.${last}`);
      const waiting = scene.refused();
      await scene.turn();
      scene.follow();
      expect(await waiting).to.match(
        /^11 pool blue is full: 5 of 5 leased: the kubelet retries until an address is free/,
      );
      scene.requests();
      return scene;
    }

    it('is refused without a request once all leases are known', async () => {
      const scene = await fullScene();
      await scene.refused();
      expect(scene.requests()).to.deep.equal([]);
    });

    it('is the one released first of those that have cooled down', async () => {
      const scene = await fullScene();
      await scene.free('10.0.0.4');
      await scene.pass(1);
      await scene.free('10.0.0.3');
      scene.follow();
      expect(await scene.refused()).to.include('3 of 5 leased, 2 cooling down');
      await scene.pass(COOLDOWN_MS - 2);
      expect(await scene.refused()).to.include('2 cooling down');
      await scene.pass(2);
      expect(await scene.add()).to.deep.equal(['10.0.0.4']);
      expect(scene.lease('10.0.0.4')?.spec).to.include({ node: 'n1' }).and.not.to.have.property('releasedAt');
      expect(scene.requests()).to.have.length(1);
    });

    it('is the next one that has cooled down if another owner was faster', async () => {
      const scene = await fullScene();
      for (const address of ['10.0.0.4', '10.0.0.3']) await scene.free(address);
      scene.follow();
      await scene.pass(COOLDOWN_MS);
      scene.cluster.server.tracker.remove(ADDRESS_LEASES, { name: 'blue.10-0-0-4' });
      await scene.leaseTo({ ...OTHER, uid: 'claim-2' }, '10.0.0.4');
      expect(await scene.add()).to.deep.equal(['10.0.0.3']);
    });
  });

  describe('that is requested', () => {
    it('is leased, even if it may only be leased on request', async () => {
      scene = new LeaseAgentWorld(compiledPool({ subnets: [{ cidr: '10.0.0.0/29', reserved: ['10.0.0.6'] }] }));
      expect(await scene.add({ requested: ['10.0.0.6'] })).to.deep.equal(['10.0.0.6']);
    });

    it('is refused with key and reason if the pool does not lease it', async () => {
      const refusalOf = (address: string) => scene.refused({ requested: [address] });
      expect(await refusalOf('10.9.0.1')).to.equal(
        '7 ips: 10.9.0.1 is not in pool blue (10.0.0.0/29): request one of 10.0.0.2-10.0.0.6',
      );
      expect(await refusalOf('10.0.0.1')).to.include('7 ips: 10.0.0.1 is the gateway of pool blue');
      expect(await refusalOf('fd00::1')).to.include('do not request one, the pool has no IPv6 addresses');
      expect(scene.requests()).to.deep.equal([]);
    });

    it('is refused with code 11 while another owner holds it, or it cools down', async () => {
      await scene.leaseTo(OTHER, '10.0.0.4');
      expect(await scene.refused({ requested: ['10.0.0.4'] })).to.include(
        '11 ips: 10.0.0.4 is allocated to an owner in another namespace (AddressLease blue.10-0-0-4)',
      );
      await scene.free('10.0.0.4');
      expect(await scene.refused({ requested: ['10.0.0.4'] })).to.include('11 ips: 10.0.0.4 cools down until 2026');
      await scene.pass(COOLDOWN_MS);
      expect(await scene.add({ requested: ['10.0.0.4'] })).to.deep.equal(['10.0.0.4']);
    });

    it('is leased even if the pod has another one from its last sandbox', async () => {
      const [first = ''] = await scene.add({ container: 'c1' });
      const wanted = first === '10.0.0.5' ? '10.0.0.6' : '10.0.0.5';
      expect(await scene.add({ container: 'c2', requested: [wanted] })).to.deep.equal([wanted]);
      await scene.del({ container: 'c1' });
      expect(scene.held).to.deep.equal([wanted]);
    });
  });

  describe('of two families', () => {
    it('is one of each family, IPv4 first, with one create each', async () => {
      scene = new LeaseAgentWorld(DUAL);
      const grant = await scene.grant();
      expect(grant.map(({ address }) => address.family)).to.deep.equal([4, 6]);
      expect(grant[1]).to.deep.include({ prefixLength: 126 });
      expect(scene.requests()).to.have.length(2);
    });

    it('is refused if one family is full, and the other lease is released', async () => {
      scene = new LeaseAgentWorld(DUAL);
      for (const last of [2, 3]) await scene.leaseTo(OTHER, `fd00::${last}`);
      const waiting = scene.refused();
      await scene.turn();
      scene.follow();
      expect(await waiting).to.include('11 pool blue is full for IPv6: 2 of 2 leased');
      expect(scene.held).to.deep.equal(['fd00::2', 'fd00::3']);
    });

    it('completes an allocation that an earlier process of the agent has begun', async () => {
      scene = new LeaseAgentWorld(DUAL);
      const call = new AbortController();
      scene.agent.api.before = ({ body }) => {
        const { address } = (body as { spec: { address: string } }).spec;
        return address.includes(':') ? new Promise(() => undefined) : undefined;
      };
      void scene.grant({}, { call: callOf(call.signal) });
      await scene.turn();
      const begun = scene.held;
      scene.start().catchUp();
      expect(begun).to.have.length(1);
      expect((await scene.add())[0]).to.equal(begun[0]);
      expect(scene.held).to.have.length(2);
    });
  });

  it('is counted in the metrics', async () => {
    await scene.add();
    await scene.add({ pod: 'p2' });
    await scene.del();
    expect(await scene.agent.metric('holdfast_agent_leases_held')).to.equal(1);
    expect(await scene.agent.metric('holdfast_agent_lease_writes_total')).to.equal(3);
  });
});
