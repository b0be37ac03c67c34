import { expect } from 'chai';
import { bridgeAddressProblems } from './bridge-address.js';
import { compiledPool } from '../../test/objects/lease-objects.js';

const GATEWAY = { type: 'bridge', isGateway: true };

function problemsOf(plugin: object, subnet: object = {}): string[] {
  const config = JSON.stringify({ name: 'blue', ...plugin, ipam: { type: 'holdfast' } });
  const subnets = [{ cidr: '10.0.0.0/24', ...subnet }];
  return bridgeAddressProblems({ metadata: { name: 'blue' }, spec: { config } }, compiledPool({ subnets }));
}

describe('the address of a bridge', () => {
  it('is the first one of a subnet without a gateway, which the pool must not allocate', () => {
    const words = 'gives 10.0.0.1 to the bridge of each node, and the pool allocates it to others';
    const remedy = 'write it as the gateway of subnet 10.0.0.0/24';
    expect(problemsOf(GATEWAY)).to.deep.equal([`spec.config.isGateway ${words}: ${remedy}`]);
    const [byDefault] = problemsOf({ type: 'cnv-bridge', isGateway: false, isDefaultGateway: true });
    expect(byDefault).to.equal(`spec.config.isDefaultGateway ${words}: ${remedy}`);
    expect(problemsOf(GATEWAY, { cidr: 'fd00::/64' }).join()).to.include('gives fd00::1 to');
  });

  it('is that of the pool, or no address of the pool', () => {
    const unused = [
      { gateway: '10.0.0.9' },
      { ranges: ['10.0.0.9'] },
      { exclude: ['10.0.0.1'] },
      { cidr: '10.0.0.1/32' },
    ];
    for (const subnet of unused) expect(problemsOf(GATEWAY, subnet)).to.deep.equal([]);
    for (const plugin of [{ type: 'bridge' }, { ...GATEWAY, isGateway: false }, { type: 'macvlan', isGateway: true }])
      expect(problemsOf(plugin)).to.deep.equal([]);
  });
});
