import { expect } from 'chai';
import { SUPPORTED_VERSIONS } from '../../api/networks/cni-version.js';
import { parseAddress } from '../../addressing/address/address.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { readResultExtras } from '../../addressing/pool/result-extras.js';
import { type Grant, addResult } from './result.js';

const lease = {} as LeaseRecord;
const GRANT: Grant = [
  { address: parseAddress('10.0.0.5'), prefixLength: 24, gateway: parseAddress('10.0.0.1'), lease },
  { address: parseAddress('fd00::5'), prefixLength: 64, lease },
];
const NOTHING = { routes: [], dns: {} };

describe('the result of an ADD', () => {
  for (const version of SUPPORTED_VERSIONS) {
    it(`has the abbreviated form of version ${version}`, () => {
      const family = (name: string) => (version.startsWith('0.') ? { version: name } : {});
      expect(addResult(version, GRANT, NOTHING)).to.deep.equal({
        cniVersion: version,
        ips: [
          { ...family('4'), address: '10.0.0.5/24', gateway: '10.0.0.1' },
          { ...family('6'), address: 'fd00::5/64' },
        ],
        dns: {},
      });
    });
  }

  it("contains routes and DNS of the network's config, and nothing else of it", () => {
    const ipam = {
      type: 'holdfast',
      routes: [
        { dst: '0.0.0.0/0' },
        { dst: '10.1.0.0/16', gw: '10.0.0.2', mtu: 1400, odd: 1 },
        { dst: '::/0', gw: '' },
      ],
      dns: { nameservers: ['10.0.0.53'], domain: 'a.example', search: ['a.example'], options: ['ndots:2'], odd: 1 },
    };
    expect(addResult('1.1.0', GRANT, readResultExtras(ipam, 'ipam'))).to.deep.include({
      cniVersion: '1.1.0',
      routes: [{ dst: '0.0.0.0/0' }, { dst: '10.1.0.0/16', gw: '10.0.0.2', mtu: 1400 }, { dst: '::/0' }],
      dns: { nameservers: ['10.0.0.53'], domain: 'a.example', search: ['a.example'], options: ['ndots:2'] },
    });
    expect(readResultExtras({ routes: null, dns: null }, 'ipam')).to.deep.equal(NOTHING);
  });

  it('has only routes of families of which it has an address, because the kernel refuses others', () => {
    const extras = readResultExtras({ routes: [{ dst: '10.1.0.0/16' }, { dst: '::/0', gw: 'fd00::1' }] }, 'ipam');
    expect(addResult('1.1.0', GRANT.slice(0, 1), extras)).to.have.deep.property('routes', [{ dst: '10.1.0.0/16' }]);
    expect(addResult('1.1.0', GRANT.slice(1), extras)).to.have.deep.property('routes', [
      { dst: '::/0', gw: 'fd00::1' },
    ]);
  });
});
