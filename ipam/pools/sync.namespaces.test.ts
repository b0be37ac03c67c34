import { expect } from 'chai';
import { adminPool, claimOf, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { resolveClaim } from '../claims/shown/claim-resolution.js';
import { PoolsWorld } from './testing/pools-world.js';

const SUBNETS = [{ cidr: '10.9.0.0/24' }];
const blue = (ipam: object = {}, key = 'a/blue') => nad(key, holdfastConfig({ subnets: SUBNETS, ...ipam }));

describe('the namespaces that a derived pool serves', () => {
  let world: PoolsWorld;
  const resolve = (key: string, ips: string[] = []) => {
    return resolveClaim({ ...claimOf(key, 'a/blue'), status: { ips } }, world);
  };

  beforeEach(() => {
    world = new PoolsWorld();
  });

  it('are that of its NAD only, and others are told how to be served', async () => {
    world.putNads(blue());
    await world.settle();
    expect(resolve('a/vm.data')).to.have.property('kind', 'served');
    expect(resolve('b/vm.data')).to.deep.equal({
      kind: 'unserved',
      message:
        'AddressPool blue.a does not serve namespace b: add it to "namespaces" in the ipam object of the NADs of network blue in ' +
        'namespace a, or ask the administrator for an AddressPool',
    });
  });

  it('are those that the NAD names, and its own', async () => {
    world.putNads(blue({ namespaces: ['b'] }));
    await world.settle();
    expect(world.pools.get('blue.a')?.spec.namespaces).to.deep.equal(['b', 'a']);
    expect(['a', 'b', 'c'].map((ns) => resolve(`${ns}/vm.data`).kind)).to.deep.equal(['served', 'served', 'unserved']);
  });

  it('are all if the NAD names "*", or is in a global namespace and names none', async () => {
    world.putNads(blue({ namespaces: ['*'] }), blue({}, 'default/blue'));
    await world.settle();
    expect(world.pools.get('blue.a')?.spec).to.not.have.property('namespaces');
    expect(world.pools.get('blue.default')?.spec).to.not.have.property('namespaces');
    expect(resolve('b/vm.data')).to.have.property('kind', 'served');
  });

  it('are its own if a NAD of a global namespace has an empty list', async () => {
    world.putNads(blue({ namespaces: [] }, 'default/blue'));
    await world.settle();
    expect(world.pools.get('blue.default')?.spec.namespaces).to.deep.equal(['default']);
  });

  it('can be restricted, and claims with addresses keep their pool', async () => {
    world.putNads(blue());
    world.putPool(adminPool('blue.a', { cidr: '10.9.0.0/24', nadNamespace: 'a' }));
    world.lease('blue.a', '10.9.0.5', 'b/vm.data');
    await world.settle();
    expect(world.pools.get('blue.a')?.spec.namespaces).to.deep.equal(['a']);
    expect(resolve('b/vm.data', ['10.9.0.5/24'])).to.have.property('kind', 'served');
    expect(resolve('b/new.data', ['10.9.0.5/24'])).to.have.property('kind', 'unserved');
    expect(world.events).to.deep.equal([
      'NetworkAttachmentDefinition blue NamespacesNotServed: AddressPool blue.a no longer serves namespaces b: their workloads keep ' +
        'their addresses and get no new ones. To serve them, add them to "namespaces" in the ipam object of the NAD',
    ]);
  });

  it('can be restricted even while leased addresses keep the subnets as they are', async () => {
    world.putNads(nad('a/blue', holdfastConfig({ subnets: [{ cidr: '10.9.0.0/25' }] })));
    world.putPool(adminPool('blue.a', { cidr: '10.9.0.0/24', nadNamespace: 'a' }));
    world.lease('blue.a', '10.9.0.200', 'b/vm.data');
    await world.settle();
    expect(world.pools.get('blue.a')?.spec).to.deep.equal({ network: 'blue', subnets: SUBNETS, namespaces: ['a'] });
    expect(world.condition('blue.a', 'NetworksAgree')).to.match(/^False LeasedOutside/);
  });

  it('stay unchanged if the NAD names too many, which an event reports', async () => {
    const names = Array.from({ length: 256 }, (_, index) => `b${index}`);
    world.putNads(blue({ namespaces: names.slice(1) }));
    await world.settle();
    const before = world.pools.get('blue.a')?.spec;
    world.writes.length = 0;
    expect(before?.namespaces).to.have.lengthOf(256);
    world.putNads(blue({ namespaces: names }));
    await world.settle();
    expect(world.pools.get('blue.a')?.spec).to.deep.equal(before);
    expect(world.writes.filter((write) => !write.startsWith('status '))).to.deep.equal([]);
    expect(world.condition('blue.a', 'NetworksAgree')).to.match(/^False NetworkInvalid/);
    expect(world.events.join('\n')).to.include('spec.config.ipam.namespaces names 256 namespaces besides "a"');
  });

  it("leave the pool no users if administrators' pools serve all of them", async () => {
    world.putNads(blue());
    world.putPool(adminPool('p', { namespaces: ['a'] }));
    await world.settle();
    expect(world.condition('blue.a', 'Ready')).to.match(/^False Conflict/);
  });
});

describe('a NAD that requests what its namespace may not have', () => {
  const LAN = { addressSpace: 'lan' };
  const guard = (namespaces?: string[]) =>
    adminPool('guard', { network: 'red', cidr: '10.9.0.0/24', ...LAN, ...(namespaces && { namespaces }) });
  let world: PoolsWorld;

  beforeEach(() => {
    world = new PoolsWorld();
  });

  it("gets no pool in an address space whose administrator's pool does not serve its namespace", async () => {
    world.putPool(guard(['x']));
    world.putNads(blue(LAN));
    await world.settle();
    expect(world.pools.get('blue.a')).to.equal(undefined);
    expect(world.events).to.deep.equal([
      'NetworkAttachmentDefinition blue NetworkAttachmentNotPermitted: NAD a/blue: addressSpace "lan" is an address space of pools ' +
        'that do not serve namespace a: use another address space, or ask the administrator to add a to spec.namespaces of such a pool',
    ]);
    world.putPool(guard(['x', 'a']));
    await world.settle();
    expect(world.pools.get('blue.a')?.spec.addressSpace).to.equal('lan');
  });

  it('keeps an existing pool with its addresses, and the pool reports it', async () => {
    world.putNads(blue(LAN));
    await world.settle();
    world.putPool(guard(['x']));
    world.putNads(nad('a/blue', holdfastConfig({ subnets: [{ cidr: '10.9.0.0/16' }], ...LAN })));
    await world.settle();
    expect(world.pools.get('blue.a')?.spec.subnets).to.deep.equal(SUBNETS);
    expect(world.directory.resolve(claimOf('a/vm.data', 'a/blue'))).to.have.property('kind', 'served');
    expect(world.condition('blue.a', 'NotPermitted')).to.match(
      /^True AdministratorRequired: NAD a\/blue: addressSpace "lan"/,
    );
    expect(world.condition('blue.a', 'NetworksAgree')).to.match(/^False NotPermitted/);
  });

  it('does not lose its pool to a move into such an address space', async () => {
    world.putNads(blue());
    await world.settle();
    world.putPool(guard(['x']));
    world.putNads(blue(LAN));
    await world.settle();
    expect(world.writes).to.not.include('delete blue.a');
    expect(world.pools.get('blue.a')?.spec).to.not.have.property('addressSpace');
  });

  it('keeps released addresses for a week at most, and its pool reports it', async () => {
    world.putNads(blue({ stickyMAC: { ttl: '9000h', retain: true } }));
    await world.settle();
    expect(world.pools.get('blue.a')?.spec.stickyMAC).to.deep.equal({ ttl: '168h', retain: true });
    expect(world.condition('blue.a', 'NotPermitted')).to.match(
      /^True AdministratorRequired: spec\.config\.ipam\.stickyMAC\.ttl is "9000h", but NADs are limited to 168h/,
    );
    world.putNads(blue({ stickyMAC: { ttl: '168h' } }));
    await world.settle();
    expect(world.condition('blue.a', 'NotPermitted')).to.equal('none');
  });

  it('cools addresses down for an hour at most, and its pool reports it', async () => {
    world.putNads(blue({ cooldownSeconds: 86_400 }));
    await world.settle();
    expect(world.pools.get('blue.a')?.spec.cooldownSeconds).to.equal(3_600);
    expect(world.condition('blue.a', 'NotPermitted')).to.match(
      /^True AdministratorRequired: spec\.config\.ipam\.cooldownSeconds is 86400, but NADs are limited to 3600/,
    );
    world.putNads(blue({ cooldownSeconds: 3_600 }));
    await world.settle();
    expect(world.condition('blue.a', 'NotPermitted')).to.equal('none');
  });

  it('publishes no capacity, unless the administrator names its namespace', async () => {
    world.putNads(blue({ publishCapacity: true }));
    await world.settle();
    expect(world.pools.get('blue.a')?.spec).to.not.have.property('publishCapacity');
    expect(world.condition('blue.a', 'NotPermitted')).to.include('spec.config.ipam.publishCapacity has no effect');
    world.capacityNamespaces.push('a');
    await world.settle();
    expect(world.pools.get('blue.a')?.spec.publishCapacity).to.equal(true);
  });
});
