import { expect } from 'chai';
import { adminPool, claimOf, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';
import { compiledPool, leaseOf } from '../../test/objects/lease-objects.js';
import { readLease } from '../../addressing/lease/lease.js';
import { countsOf, usesOf } from './status.js';
import { drainingCondition, probingCondition } from './pool-conditions.js';
import { PoolUsage } from './usage.js';
import { LeaseBook } from '../leases/lease-book.js';
import { quarantineLease } from '../../addressing/lease/lease-quarantine.js';
import { mergePatch } from '../../test/merge-patch.js';

const SUBNETS = { subnets: [{ cidr: '10.9.0.0/24' }] };
const EVERYBODYS = adminPool('admins');
const SHARED = adminPool('admins', { namespaces: ['vms', 'labs'] });

describe("a derived pool beside an administrator's pool", () => {
  let world: PoolsWorld;

  beforeEach(async () => {
    world = new PoolsWorld();
    world.putNads(nad('vms/blue', holdfastConfig(SUBNETS)));
    await world.settle();
  });

  /** The pool that serves a workload through the NAD. */
  function poolOf(namespace: string): string {
    const found = world.directory.resolve(claimOf(`${namespace}/c`, 'vms/blue'));
    return found.kind === 'served' ? found.pool.name : found.kind;
  }

  it("reports that it serves no workloads if the administrator's pool serves all, and names that pool", async () => {
    world.putPool(EVERYBODYS);
    await world.settle();
    expect([poolOf('vms'), poolOf('others')]).to.deep.equal(['admins', 'admins']);
    const why =
      /AddressPool blue\.vms serves no workloads: AddressPool admins, which an administrator created for network blue,/;
    expect(world.condition('blue.vms', 'Ready'))
      .to.match(/^False Conflict: /)
      .and.to.match(why);
    expect(world.condition('blue.vms', 'Conflict'))
      .to.match(/^True AdminPool: /)
      .and.to.match(why);
    expect(world.condition('admins', 'Ready')).to.equal('True Serving: Serves network blue');
    expect(world.condition('admins', 'Conflict')).to.match(/^False NoConflict/);
    expect(world.events.map((event) => event.split(':')[0])).to.deep.equal([
      'AddressPool blue.vms AddressPoolConflict',
    ]);
  });

  it("reports the namespaces that it still serves if the administrator's pool serves only some", async () => {
    world.putNads(nad('vms/blue', holdfastConfig({ ...SUBNETS, namespaces: ['*'] })));
    world.putPool(SHARED);
    await world.settle();
    expect([poolOf('vms'), poolOf('others')]).to.deep.equal(['admins', 'blue.vms']);
    expect(world.condition('blue.vms', 'Ready')).to.equal('True Serving: Serves network blue for other namespaces');
    expect(world.condition('blue.vms', 'Conflict')).to.match(
      /^True AdminPool: .* serves no workloads of namespace vms: .*AddressPool admins/,
    );
  });

  it("serves all of its users if the administrator's pool is for other namespaces", async () => {
    world.putPool(adminPool('admins', { namespaces: ['labs'] }));
    await world.settle();
    expect(poolOf('vms')).to.equal('blue.vms');
    expect(world.condition('blue.vms', 'Ready')).to.equal('True Serving: Serves network blue');
    expect(world.condition('blue.vms', 'Conflict')).to.match(/^False NoConflict/);
  });

  it("serves no workloads even if the administrator's pool cannot serve", async () => {
    world.putPool(adminPool('admins', { cidr: '10.0.0.1/24' }));
    await world.settle();
    expect(poolOf('vms')).to.equal('unserved');
    expect(world.condition('blue.vms', 'Conflict')).to.match(/^True AdminPool: .*AddressPool admins/);
  });

  it("names the serving one of several administrators' pools", async () => {
    world.putPool(adminPool('bad', { cidr: '10.0.0.1/24' }));
    world.putPool(adminPool('good', { born: 2 }));
    await world.settle();
    expect(poolOf('vms')).to.equal('good');
    expect(world.condition('blue.vms', 'Conflict')).to.match(/AddressPool good, which an administrator created/);
  });

  it("keeps its leases, and serves again once the administrator's pool is deleted", async () => {
    world.lease('blue.vms', '10.9.0.5', 'vms/c');
    world.putPool(EVERYBODYS);
    await world.settle();
    expect(world.pools.get('blue.vms')?.status).to.include({ leased: 1 });
    world.lease('admins', '10.0.0.5', 'vms/d');
    world.deletePool('admins');
    await world.settle();
    expect(world.condition('admins', 'Ready')).to.match(/^False Deleting/);
    expect(poolOf('vms')).to.equal('blue.vms');
    expect(world.condition('blue.vms', 'Ready')).to.equal('True Serving: Serves network blue');
    expect(world.condition('blue.vms', 'Conflict')).to.match(/^False NoConflict/);
  });
});

describe('the draining ranges of a pool', () => {
  const pool = (draining?: string[]) =>
    compiledPool({ subnets: [{ cidr: '10.0.0.0/28', ...(draining && { draining }) }] });

  function see(draining: string[] | undefined, leases: Parameters<typeof leaseOf>[]) {
    const book = new LeaseBook();
    for (const [index, [address, version, options]] of leases.entries()) {
      book.recordWrite(leaseOf(address, version, { uid: `l${index}`, ...options }));
    }
    const compiled = pool(draining);
    const usage = new PoolUsage(book, () => true).of('blue', compiled);
    const condition = drainingCondition(compiled, usage, (name) => book.get(name));
    return {
      condition,
      counts: countsOf(
        compiled,
        usage,
        usesOf(compiled, usage, (family) => (family === 4 ? 10n : 0n)),
      ),
    };
  }

  it('have no condition and no count if there are none', () => {
    const { condition, counts } = see(undefined, [['10.0.0.2', 1]]);
    expect(condition).to.equal(undefined);
    expect(counts).not.to.have.property('draining');
  });

  it('are listed with the owners of their addresses, without released ones', () => {
    const { condition, counts } = see(
      ['10.0.0.2-10.0.0.7'],
      [
        ['10.0.0.2', 1, { name: 'vm1.data' }],
        ['10.0.0.3', 2, { releasedAt: 1 }],
        ['10.0.0.8', 3],
      ],
    );
    expect(condition).to.deep.include({ status: 'True', reason: 'AddressesInUse' });
    expect(condition?.message).to.match(
      /^1 address of the draining ranges is in use: 10\.0\.0\.2 \(IPAMClaim a\/vm1\.data\)\. VMs/,
    );
    expect(counts).to.include({ draining: 1, leased: 2, cooling: 1, free: 10, reserved: 0, capacity: 13 });
  });

  it('can be removed when none of their addresses is leased', () => {
    const { condition, counts } = see(['10.0.0.0/28'], [['10.0.0.3', 2, { releasedAt: 1 }]]);
    expect(condition).to.include({ status: 'False', reason: 'Drained' });
    expect(counts.draining).to.equal(0);
  });

  it('are not open, and their addresses stay leasable', () => {
    const [subnet] = pool(['10.0.0.2', '10.0.0.4-10.0.0.5', '10.0.0.8/29']).subnets;
    expect(subnet?.open.ranges.map(({ first, last }) => [first & 15n, last & 15n])).to.deep.equal([
      [1n, 1n],
      [3n, 3n],
      [6n, 7n],
    ]);
    expect(subnet?.leasable.size).to.equal(14n);
    expect(readLease(leaseOf('10.0.0.2', 1)).address.value).to.satisfy(
      (value: bigint) => !subnet?.requestable.has(value),
    );
  });
});

const HOST = '02:00:00:00:00:0a';

describe('the condition ProbingStopped of a pool', () => {
  function conditionOf(quarantined: [address: string, mac: string][], probe = true) {
    const book = new LeaseBook();
    for (const [index, [address, mac]] of quarantined.entries()) {
      const lease = leaseOf(address, 1, { uid: `l${index}` });
      mergePatch(lease, quarantineLease(readLease(lease), mac, Date.UTC(2026, 0, 1)).body);
      book.recordWrite(lease);
    }
    const guest = { attachment: 'blue', dhcp: {}, probe };
    return probingCondition(compiledPool({ subnets: [{ cidr: '10.0.0.0/27' }], guest }), book.quarantined('blue'));
  }

  it('is absent while addresses are probed', () => {
    expect(
      conditionOf([
        ['10.0.0.2', HOST],
        ['10.0.0.3', HOST],
      ]),
    ).to.equal(undefined);
  });

  it('names the host that answers for many addresses', () => {
    expect(conditionOf([2, 3, 4].map((last) => [`10.0.0.${last}`, HOST]))).to.deep.equal({
      type: 'ProbingStopped',
      status: 'True',
      reason: 'ProxyARP',
      message: `The host with MAC address ${HOST} answers for 10.0.0.2, 10.0.0.3, 10.0.0.4: it is a proxy, or an attacker. New addresses are not probed until one of these leases expires or is deleted`,
    });
  });

  it('names some of the hosts that have addresses of a pool in which no more may be quarantined', () => {
    const quarantined = [2, 3, 4].map((last): [string, string] => [`10.0.0.${last}`, `02:00:00:00:00:0${last}`]);
    expect(conditionOf(quarantined)).to.include({ status: 'True', reason: 'QuarantineFull' });
    expect(conditionOf(quarantined)?.message).to.match(
      /^No more addresses may be quarantined\. Other hosts have 10\.0\.0\.2 \(02:00:00:00:00:02\), .*: give them other/,
    );
  });

  it('is absent if the pool does not probe any more', () => {
    expect(
      conditionOf(
        [2, 3, 4].map((last) => [`10.0.0.${last}`, HOST]),
        false,
      ),
    ).to.equal(undefined);
  });

  it('appears with a warning, and disappears when a quarantined lease has expired', async () => {
    const world = new PoolsWorld();
    const guest = { attachment: 'blue', dhcp: {}, probe: true };
    const spec = { network: 'blue', subnets: [{ cidr: '10.0.0.0/27' }], guest };
    world.putPool({ metadata: { name: 'blue' }, spec });
    for (const last of [2, 3, 4]) {
      world.lease('blue', `10.0.0.${last}`, 'vms/vm1');
      world.quarantine(`10.0.0.${last}`);
    }
    await world.settle();
    expect(world.condition('blue', 'ProbingStopped')).to.match(/^True ProxyARP: The host with MAC address/);
    expect(world.events.filter((event) => event.includes('ProbingStopped'))).to.have.lengthOf(1);
    world.expire('10.0.0.2');
    await world.settle();
    expect(world.condition('blue', 'ProbingStopped')).to.equal('none');
  });
});
