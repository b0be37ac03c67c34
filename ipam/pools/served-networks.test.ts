import { expect } from 'chai';
import { adminPool } from '../../test/pool-objects.js';
import { listServedNetworks } from './served-networks.js';

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
