import { expect } from 'chai';
import { parseAddress } from '../../addressing/address/address.js';
import { compiledPool } from '../../test/lease-objects.js';
import { helperConfig } from './helper-config.js';

const POOL = compiledPool({
  subnets: [{ cidr: '10.1.0.0/24' }, { cidr: 'fd00:1::/64' }],
  guest: { attachment: 'blue', dhcp: { renewSeconds: 20, rebindSeconds: 40, leaseSeconds: 600 } },
});

function responder(name: string, ...addresses: string[]) {
  return { name, addresses: addresses.map(parseAddress) };
}

const SELF = responder('set-0', '10.1.0.2', 'fd00:1::2');
const PEER = responder('set-1', '10.1.0.3', 'fd00:1::3');

describe('the configuration of the packet helper', () => {
  it('has the address of the responder, those of the others, and the times and subnets of the pool', () => {
    const { server, ...config } = helperConfig(POOL, SELF, [PEER], 'guest0') ?? {};
    expect(server?.ipv4).to.equal('10.1.0.2');
    expect(config).to.deep.equal({
      v: 2,
      interface: 'guest0',
      subnets: [{ cidr: '10.1.0.0/24' }, { cidr: 'fd00:1::/64' }],
      peers: ['10.1.0.3'],
      times: { renew: 20, rebind: 40, lease: 600, advertise: 20 },
    });
  });

  it('has no address if none is leased to the responder, which then answers no DHCPv4', () => {
    expect(helperConfig(POOL, responder('set-0'), [], 'guest0')?.server.ipv4).to.equal(null);
  });

  it('has a DUID of a UUID that is the same for each pod of the name, and another one for each responder and pool', () => {
    const duids = [
      helperConfig(POOL, SELF, [PEER], 'guest0'),
      helperConfig(POOL, responder('set-0'), [], 'net1'),
      helperConfig(POOL, PEER, [SELF], 'guest0'),
      helperConfig({ ...POOL, uid: 'another' }, SELF, [PEER], 'guest0'),
    ].map((config) => config?.server.duid ?? '');
    expect(duids[0]).to.match(/^0004[0-9a-f]{32}$/);
    expect(duids[1]).to.equal(duids[0]);
    expect(new Set(duids).size).to.equal(3);
  });

  it('does not exist without DHCP', () => {
    expect(helperConfig(compiledPool(), SELF, [], 'guest0')).to.equal(undefined);
  });
});
