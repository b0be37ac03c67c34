import { expect } from 'chai';
import type { PoolSubnet } from '../../api/address-pool.js';
import { adminPool, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';

const CIDR = '10.9.0.0/24';
const RENUMBERED: PoolSubnet[] = [{ cidr: CIDR, draining: [CIDR] }, { cidr: '10.8.0.0/24' }];

describe('the draining ranges of a pool that replaces another one', () => {
  let world: PoolsWorld;

  beforeEach(async () => {
    world = new PoolsWorld();
    world.putNads(nad('vms/blue', holdfastConfig({ subnets: [{ cidr: CIDR }] })));
    await world.settle();
    world.lease('blue.vms', '10.9.0.5', 'vms/c');
  });

  async function replace(given: { namespaces?: string[]; addressSpace?: string } = {}): Promise<void> {
    const pool = adminPool('blue', given);
    world.putPool({ ...pool, spec: { ...pool.spec, subnets: RENUMBERED } });
    await world.settle();
  }

  it('are in use while VMs have addresses of them that the other pool leased', async () => {
    await replace();
    expect(world.condition('blue', 'Draining')).to.match(
      /^True AddressesInUse: 1 address .* in use: 10\.9\.0\.5 \(IPAMClaim vms\/c\)\. VMs get/,
    );
    expect(world.pools.get('blue')?.status).to.include({ draining: 1, leased: 0 });
    world.release('10.9.0.5');
    await world.settle();
    expect(world.condition('blue', 'Draining')).to.match(/^False Drained/);
    expect(world.pools.get('blue')?.status).to.include({ draining: 0 });
  });

  it('are in use while VMs have addresses that an administrator’s pool for other namespaces leased', async () => {
    await replace({ namespaces: ['vms'] });
    world.putPool(adminPool('other', { namespaces: ['lab'], cidr: CIDR }));
    world.lease('other', '10.9.0.6', 'vms/d');
    await world.settle();
    expect(world.condition('blue', 'Draining')).to.match(/^True AddressesInUse: 2 addresses/);
  });

  it('are drained when the addresses that are left have users that it does not serve', async () => {
    await replace({ namespaces: ['lab'] });
    expect(world.condition('blue', 'Draining')).to.match(/^False Drained/);
  });

  it('are drained when the addresses that are left are in another address space', async () => {
    await replace({ addressSpace: 'lan' });
    expect(world.condition('blue', 'Draining')).to.match(/^False Drained/);
  });
});
