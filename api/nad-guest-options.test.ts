import { expect } from 'chai';
import { readNadGuestOptions } from './nad-guest-options.js';

function options(config: unknown) {
  return readNadGuestOptions({ metadata: { name: 'n' }, spec: { config: JSON.stringify(config) } });
}

describe('the options of a NAD for guests', () => {
  it('are absent if the NAD has none', () => {
    expect(options({ type: 'bridge' })).to.equal(undefined);
    expect(options([])).to.equal(undefined);
    expect(readNadGuestOptions({ metadata: { name: 'n' } })).to.equal(undefined);
  });

  it('are MTU and DNS of the first plugin of a NAD without IPAM', () => {
    const dns = { nameservers: ['10.9.0.53'], search: ['example.com'] };
    expect(options({ type: 'bridge', mtu: 1400, dns })).to.deep.equal({ mtu: 1400, dns });
    expect(
      options({
        plugins: [
          { type: 'bridge', mtu: 1400 },
          { type: 'tuning', mtu: 9000 },
        ],
        dns,
      }),
    ).to.deep.equal({ mtu: 1400, dns });
  });

  it('are routes and DNS of the ipam object if the NAD has one', () => {
    const ipam = { type: 'holdfast', routes: [{ dst: '10.9.0.0/16', gw: '10.1.0.1' }, { dst: '10.8.0.0/16' }] };
    const plugin = { type: 'bridge', mtu: 1400, ipam: { ...ipam, dns: { nameservers: ['10.9.0.53'] } } };
    expect(options({ plugins: [{ type: 'tuning' }, plugin] })).to.deep.equal({
      mtu: 1400,
      dns: { nameservers: ['10.9.0.53'], search: [] },
      routes: [{ destination: '10.9.0.0/16', gateway: '10.1.0.1' }, { destination: '10.8.0.0/16' }],
    });
  });

  it('have no more elements and characters than those of a pool, and none of a wrong type', () => {
    const many = Array.from({ length: 1000 }, (_, n) => `10.9.0.${n}`);
    const routes = many.map((gw) => ({ dst: '10.9.0.0/16', gw }));
    const found = options({
      type: 'bridge',
      mtu: 10,
      ipam: { type: 'x', routes, dns: { nameservers: many, search: ['x'.repeat(254), 5, 'a'] } },
    });
    expect(found?.routes).to.have.length(16);
    expect(found?.dns).to.deep.equal({ nameservers: many.slice(0, 8), search: ['a'] });
    expect(found?.mtu).to.equal(undefined);
    expect(options({ type: 'bridge', dns: 5, mtu: '1400', ipam: { type: 'x', routes: [5, { dst: 7 }] } })).to.equal(
      undefined,
    );
  });
});
