import { expect } from 'chai';
import sinon from 'sinon';
import { POOL_FINALIZER, RESPONDERS_NAMESPACE } from '../../api/names.js';
import { StatusError } from '../../kube/errors.js';
import { adminPool, claimOf, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';

const CIDR = '10.9.0.0/24';
const WITH_SUBNET = nad('vms/blue', holdfastConfig({ subnets: [{ cidr: CIDR }] }));
const NETWORK = 'vms/blue';

describe('a derived pool', () => {
  let world: PoolsWorld;

  beforeEach(() => {
    world = new PoolsWorld();
    world.putNads(WITH_SUBNET);
  });

  it('is created from the NAD with a finalizer, and serves its users', async () => {
    await world.settle();
    const pool = world.pools.get('blue.vms');
    expect(pool?.spec).to.deep.equal({ network: 'blue', subnets: [{ cidr: CIDR }], namespaces: ['vms'] });
    expect(pool?.metadata.finalizers).to.deep.equal([POOL_FINALIZER]);
    expect(pool?.metadata.labels).to.deep.equal({ 'ipam.holdfast.dev/nad-namespace': 'vms' });
    expect(world.directory.resolve(claimOf('vms/c', 'vms/blue'))).to.have.property('kind', 'served');
    expect(world.condition('blue.vms', 'Ready')).to.equal('True Serving: Serves network blue');
    expect(world.condition('blue.vms', 'NetworksAgree')).to.equal('True NetworksAgree: NAD vms/blue defines the pool');
    expect(world.writes).to.deep.equal(['create blue.vms', 'status blue.vms']);
    expect(world.events).to.deep.equal([]);
  });

  it('follows an edit of the NAD, and drops settings that the NAD has lost', async () => {
    world.putNads(nad('vms/blue', holdfastConfig({ subnets: [{ cidr: CIDR }], cooldownSeconds: 60 })));
    await world.settle();
    world.putNads(nad('vms/blue', holdfastConfig({ range: '10.9.0.0/16' })));
    await world.settle();
    const spec = { network: 'blue', subnets: [{ cidr: '10.9.0.0/16' }], namespaces: ['vms'] };
    expect(world.pools.get('blue.vms')?.spec).to.deep.equal(spec);
  });

  it('counts its leases once for all edits of the NAD within a second', async () => {
    await world.settle();
    world.clock.advanceTo(world.clock.now() + 60_000);
    world.lease('blue.vms', '10.9.0.5', 'vms/c1');
    const [counts, atOnce] = (['prepare', 'of'] as const).map((method) => sinon.spy(world.usage, method));
    for (let edit = 1; edit <= 5; edit++) {
      world.putNads(nad('vms/blue', holdfastConfig({ subnets: [{ cidr: CIDR }], cooldownSeconds: 60 + edit })));
      for (const key of [NETWORK, 'blue.vms']) await world.sync(key);
    }
    expect(world.pools.get('blue.vms')?.spec.cooldownSeconds).to.equal(65);
    expect([counts?.callCount, atOnce?.callCount]).to.deep.equal([1, 1]);
  });

  it('is restored to what the NAD says after a user has edited it', async () => {
    await world.settle();
    const pool = world.pools.get('blue.vms')!;
    world.putPool({ ...pool, spec: { ...pool.spec, namespaces: ['others'] } });
    await world.settle();
    expect(world.pools.get('blue.vms')?.spec).to.deep.equal(pool.spec);
  });

  it('stays if its NADs are not seen because the API server does not serve NADs', async () => {
    await world.settle();
    world.areNadsServed = false;
    world.dropNad(NETWORK);
    await world.settle();
    expect(world.pools.get('blue.vms')).not.to.equal(undefined);
    world.areNadsServed = true;
    world.directory.changed();
    await world.settle();
    expect(world.pools.get('blue.vms')?.metadata.deletionTimestamp).not.to.equal(undefined);
  });

  it('keeps its spec while addresses are leased that the NAD has lost, and follows when they are free', async () => {
    await world.settle();
    world.lease('blue.vms', '10.9.0.200', 'vms/c');
    world.putNads(nad('vms/blue', holdfastConfig({ subnets: [{ cidr: '10.9.0.0/25' }] })));
    await world.settle();
    expect(world.pools.get('blue.vms')?.spec.subnets).to.deep.equal([{ cidr: CIDR }]);
    const said = /LeasedOutside: NAD vms\/blue no longer contains .*10\.9\.0\.200 \(IPAMClaim vms\/c\)/;
    expect(world.condition('blue.vms', 'NetworksAgree')).to.match(said);
    expect(world.events.join('\n')).to.match(
      /NetworkAttachmentDefinition blue NetworkAttachmentsDisagree: .*10\.9\.0\.200/,
    );

    world.release('10.9.0.200');
    await world.settle();
    expect(world.pools.get('blue.vms')?.spec.subnets).to.deep.equal([{ cidr: '10.9.0.0/25' }]);
    expect(world.condition('blue.vms', 'NetworksAgree')).to.match(/^True/);
  });

  it('does not name owners in other namespaces in events on the NAD', async () => {
    world.putNads(nad('vms/blue', holdfastConfig({ subnets: [{ cidr: CIDR }], namespaces: ['*'] })));
    await world.settle();
    world.lease('blue.vms', '10.9.0.200', 'others/secret');
    world.lease('blue.vms', '10.9.0.201', 'vms/own');
    world.putNads(nad('vms/blue', holdfastConfig({ subnets: [{ cidr: '10.9.0.0/25' }], namespaces: ['*'] })));
    await world.settle();
    const said = world.events.filter((event) => event.startsWith('NetworkAttachmentDefinition')).join('\n');
    expect(said).to.include('10.9.0.200 (in another namespace), 10.9.0.201 (IPAMClaim vms/own)');
    expect(said).to.not.match(/others|secret/);
    expect(world.condition('blue.vms', 'NetworksAgree'), 'which administrators read').to.include('others/secret');
  });

  it("does not change an administrator's pool that has its name, and reports it", async () => {
    const theirs = world.putPool(adminPool('blue.vms', { network: 'red' }));
    await world.settle();
    expect(world.pools.get('blue.vms')?.spec).to.deep.equal(theirs.spec);
    expect(world.events.join('\n')).to.match(
      /AddressPool blue\.vms is not derived from NADs of namespace vms .* rename/,
    );
  });

  it('is reported as missing on a NAD without subnets until an administrator creates a pool', async () => {
    world.putNads(nad('vms/blue', holdfastConfig()));
    await world.settle();
    expect(world.events).to.deep.equal([
      'NetworkAttachmentDefinition blue AddressPoolMissing: No AddressPool serves network blue in namespace vms: create one, or add subnets to the ipam object of the NAD',
    ]);
    const other = new PoolsWorld();
    other.putNads(nad('vms/blue', holdfastConfig()));
    other.putPool(adminPool('p'));
    await other.settle();
    expect(other.events).to.deep.equal([]);
  });

  it('stays after its NAD while its addresses are leased, and is deleted afterwards', async () => {
    await world.settle();
    world.lease('blue.vms', '10.9.0.5', 'vms/c');
    world.dropNad('vms/blue');
    await world.settle();
    expect(world.condition('blue.vms', 'NetworksAgree')).to.match(/^False NetworkGone/);
    expect(world.directory.resolve(claimOf('vms/c', 'vms/blue'))).to.have.property('kind', 'served');

    world.release('10.9.0.5');
    await world.sync(NETWORK);
    await world.settle();
    expect(world.directory.stateOf('blue.vms')).to.have.property('kind', 'closing');
    world.clock.advanceTo(world.clock.now() + 190_000);
    await world.settle();
    expect(world.pools.get('blue.vms')).to.equal(undefined);
    expect(world.writes.slice(-3)).to.deep.equal(['delete blue.vms', 'status blue.vms', 'metadata blue.vms']);
  });

  it('stays unchanged while its NAD is invalid', async () => {
    await world.settle();
    world.putNads(nad('vms/blue', holdfastConfig({ subnet: CIDR })));
    await world.settle();
    expect(world.pools.get('blue.vms')?.spec.subnets).to.deep.equal([{ cidr: CIDR }]);
    expect(world.condition('blue.vms', 'NetworksAgree')).to.match(/^False NetworkInvalid/);
    expect(world.events.join('\n')).to.match(/NetworkAttachmentInvalid: spec\.config\.ipam\.subnet is unknown/);
  });

  it('is neither created, changed nor deleted while the feature gate is closed', async () => {
    world.isGateOpen = false;
    await world.settle();
    expect(world.writes).to.deep.equal([]);
    world.isGateOpen = true;
    await world.settle();
    world.isGateOpen = false;
    world.dropNad('vms/blue');
    await world.sync(NETWORK);
    expect(world.pools.get('blue.vms')?.metadata.deletionTimestamp).to.equal(undefined);
  });

  for (const rejection of ['400 BadRequest', '422 Invalid'])
    it(`reports in the API server's words, on the NAD, that its pool is rejected with ${rejection}`, async () => {
      const [status, reason = ''] = rejection.split(' ');
      world.failure = new StatusError({ request: 'POST', status: Number(status), reason, message: 'no label' });
      expect(await world.sync(NETWORK).catch((thrown: unknown) => thrown)).to.be.instanceOf(StatusError);
      const message = `The API server rejected AddressPool blue.vms: POST: ${rejection}: no label`;
      expect(world.events).to.deep.equal([`NetworkAttachmentDefinition blue AddressPoolInvalid: ${message}`]);
    });

  it('reports on a NAD once, by each leader', async () => {
    world.putNads(nad('vms/younger', holdfastConfig({ subnets: [{ cidr: '10.8.0.0/24' }] }), 2));
    for (let i = 0; i < 3; i++) await world.sync(NETWORK);
    expect(world.events.filter((event) => event.includes('younger'))).to.have.lengthOf(1);
    await world.elect()(NETWORK);
    expect(world.events.filter((event) => event.includes('younger'))).to.have.lengthOf(2);
  });
});

describe('a pool of an administrator', () => {
  let world: PoolsWorld;

  beforeEach(() => {
    world = new PoolsWorld();
  });

  it('reports its counts', async () => {
    const subnet = {
      cidr: '10.0.0.0/28',
      gateway: '10.0.0.1',
      exclude: ['10.0.0.2'],
      reserved: ['10.0.0.3', '10.0.0.4'],
    };
    world.putPool(adminPool('p', { subnets: [subnet] }));
    for (const [address, claim] of [
      ['10.0.0.3', 'vms/asked'],
      ['10.0.0.8', 'vms/running'],
      ['10.0.0.9', 'vms/stopped'],
      ['10.0.0.10', 'vms/gone'],
      ['10.0.0.11', `${RESPONDERS_NAMESPACE}/holdfast-responder-0123abcd-0`],
    ] as const) {
      world.lease('p', address, claim);
    }
    world.running.add('vms/running').add('vms/asked');
    world.release('10.0.0.10');
    await world.settle();
    const { conditions: _conditions, ...counts } = world.pools.get('p')!.status!;
    // of 16 addresses: network, broadcast, gateway and an excluded one cannot be leased
    const ipv4 = { capacity: 12, leased: 4, cooling: 1, free: 6, reserved: 1 };
    expect(counts).to.deep.equal({ ...ipv4, heldByStopped: 1, ipv4 });
  });

  it('limits counts to the largest exact JSON number', async () => {
    world.putPool(adminPool('p', { cidr: 'fd00::/64' }));
    await world.settle();
    expect(world.pools.get('p')?.status).to.include({
      capacity: Number.MAX_SAFE_INTEGER,
      free: Number.MAX_SAFE_INTEGER,
    });
  });

  it('stays while addresses are held, reports their owners, and is deleted when they only cool down', async () => {
    world.putPool(adminPool('p'));
    await world.settle();
    for (let i = 10; i < 18; i++) world.lease('p', `10.0.0.${i}`, `vms/c${i}`);
    world.deletePool('p');
    await world.settle();
    expect(world.condition('p', 'Ready')).to.match(/^False Deleting/);
    expect(world.condition('p', 'DeletionBlocked')).to.match(
      /^True Leased: .*10\.0\.0\.10 \(IPAMClaim vms\/c10\), .*10\.0\.0\.14 \(IPAMClaim vms\/c14\) and 3 more$/,
    );
    expect(world.events.filter((event) => event.includes('AddressPoolInUse'))).to.have.lengthOf(1);

    for (let i = 10; i < 18; i++) world.release(`10.0.0.${i}`);
    await world.settle();
    expect(world.pools.get('p')).to.equal(undefined);
  });

  it('stays while the API server has a lease that the cache does not show', async () => {
    world.putPool(adminPool('p'));
    await world.settle();
    world.lease('p', '10.0.0.9', 'vms/c');
    const [lease] = [...world.leases.values()];
    world.book.forget(lease!.metadata.name, lease!.metadata.uid!);
    world.deletePool('p');
    expect(await world.sync('p')).to.have.property('retry');
    expect(world.pools.get('p')).to.not.equal(undefined);
  });

  it('keeps serving owners of addresses outside its spec, and names them', async () => {
    world.putPool(adminPool('p'));
    world.lease('p', '10.0.0.200', 'vms/c');
    await world.settle();
    world.putPool({ ...world.pools.get('p')!, spec: { network: 'blue', subnets: [{ cidr: '10.0.0.0/25' }] } });
    await world.settle();
    expect(world.condition('p', 'Ready')).to.match(/^True LeasedOutside: .*10\.0\.0\.200 \(IPAMClaim vms\/c\)/);
    expect(world.pools.get('p')?.status).to.include({ leased: 1, free: 126, capacity: 127 });
    expect(world.events.join()).to.match(/AddressPool p AddressPoolInvalid: .*10\.0\.0\.200/);
    world.release('10.0.0.200');
    await world.settle();
    expect(world.condition('p', 'Ready')).to.match(/^True Serving/);
  });

  it('reports why it serves no workloads', async () => {
    world.putPool(adminPool('older'));
    world.putPool(adminPool('younger', { born: 2 }));
    world.putPool(adminPool('bad', { network: 'red', cidr: '10.0.0.1/24' }));
    await world.settle();
    expect(world.condition('younger', 'Conflict')).to.match(/^True OlderPool: .*older AddressPool older/);
    expect(world.condition('younger', 'Ready')).to.match(/^False Conflict/);
    expect(world.condition('older', 'Conflict')).to.match(/^False/);
    expect(world.condition('bad', 'Ready')).to.match(
      /^False InvalidSpec: AddressPool bad is invalid: spec\.subnets\[0\]\.cidr/,
    );
    expect(world.events.map((event) => event.split(':')[0])).to.have.members([
      'AddressPool younger AddressPoolConflict',
      'AddressPool bad AddressPoolInvalid',
    ]);
  });

  it('keeps the transition time of an unchanged condition', async () => {
    world.putPool(adminPool('p'));
    await world.settle();
    const since = world.pools.get('p')!.status!.conditions![0]!.lastTransitionTime;
    world.clock.advanceTo(world.clock.now() + 3_600_000);
    world.lease('p', '10.0.0.5', 'vms/c');
    await world.settle();
    expect(world.pools.get('p')!.status!.conditions![0]!.lastTransitionTime).to.equal(since);
  });

  it('is forgotten when it is gone', async () => {
    expect(await world.sync('p')).to.equal(undefined);
    expect(world.writes).to.deep.equal([]);
  });
});
