import { expect } from 'chai';
import { holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';

const CIDR = '10.9.0.0/24';
const TERMS = { network: 'blue', subnets: [{ cidr: CIDR }], namespaces: ['vms'] };

describe('a derived pool whose NAD has lost settings', () => {
  const maps: { name: string; before: object; after: object }[] = [
    { name: 'the old node labels', before: { nodeSelector: { a: '1' } }, after: { nodeSelector: { b: '2' } } },
    {
      name: 'the block size of one family',
      before: { blockSize: { ipv4: 27, ipv6: 120 } },
      after: { blockSize: { ipv4: 27 } },
    },
    {
      name: 'whether addresses of deleted VMs stay reserved',
      before: { stickyMAC: { ttl: '1h', retain: true } },
      after: { stickyMAC: { ttl: '1h' } },
    },
    { name: 'all node labels', before: { nodeSelector: { a: '1' } }, after: {} },
    { name: 'the block size', before: { blockSize: { ipv4: 27 } }, after: {} },
    { name: 'that its capacity is published', before: { publishCapacity: true }, after: {} },
  ];
  for (const { name, before, after } of maps) {
    it(`drops ${name}`, async () => {
      const world = new PoolsWorld();
      world.capacityNamespaces.push('vms');
      const subnets = [{ cidr: CIDR }];
      world.putNads(nad('vms/blue', holdfastConfig({ subnets, ...before })));
      await world.settle();
      expect(world.pools.get('blue.vms')?.spec).to.deep.equal({ ...TERMS, ...before });
      world.putNads(nad('vms/blue', holdfastConfig({ subnets, ...after })));
      await world.settle();
      expect(world.pools.get('blue.vms')?.spec).to.deep.equal({ ...TERMS, ...after });
    });
  }
});
