import { expect } from 'chai';
import { ResultExtrasError, readResultExtras } from './result-extras.js';

const refusals: { ipam: object; says: string[] }[] = [
  { ipam: { routes: {} }, says: ['ipam.routes: an object'] },
  { ipam: { routes: ['10.0.0.0/8'] }, says: ['ipam.routes[0]', '"10.0.0.0/8"'] },
  { ipam: { routes: [{}] }, says: ['ipam.routes[0].dst', 'absent'] },
  { ipam: { routes: [{ dst: '10.0.0.1/8' }] }, says: ['ipam.routes[0].dst', 'write 10.0.0.0/8'] },
  { ipam: { routes: [{ dst: '::/0', gw: '10.0.0.1' }] }, says: ['ipam.routes[0].gw', '10.0.0.1', 'family'] },
  { ipam: { routes: [{ dst: '::/0', gw: 'x' }] }, says: ['ipam.routes[0].gw', '"x"'] },
  { ipam: { routes: [{ dst: '::/0', mtu: '1' }] }, says: ['ipam.routes[0].mtu', '"1"'] },
  { ipam: { dns: [] }, says: ['ipam.dns', 'a list'] },
  { ipam: { dns: { nameservers: ['dns.example'] } }, says: ['ipam.dns.nameservers[0]', '"dns.example"'] },
  { ipam: { dns: { search: [1] } }, says: ['ipam.dns.search[0]', '1'] },
  { ipam: { dns: { domain: 1 } }, says: ['ipam.dns.domain', '1'] },
];

describe('routes and DNS of an ipam object', () => {
  for (const { ipam, says } of refusals) {
    it(`are refused, with key and value, if they are ${JSON.stringify(ipam)}`, () => {
      const read = () => readResultExtras(ipam as Record<string, unknown>, 'ipam');
      expect(read).to.throw(ResultExtrasError);
      for (const words of says) expect(read).to.throw(words);
    });
  }
});
