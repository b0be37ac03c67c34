import { expect } from 'chai';
import { blockRecord } from '../../test/objects/block-objects.js';
import { leaseOf, type LeaseOptions } from '../../test/objects/lease-objects.js';
import { type PoolGiven, adminPool, claimOf } from '../../test/objects/pool-objects.js';
import { readLease } from '../../addressing/lease/lease.js';
import { CommandError } from '../exit-code.js';
import { textOf } from '../terminal.js';
import { type PoolUsageView, showPool } from './pool.js';

const lease = (address: string, options: LeaseOptions = {}) => readLease(leaseOf(address, 1, options));

function view(given: PoolGiven, rest: Partial<PoolUsageView> = {}): PoolUsageView {
  return {
    pool: adminPool('blue', given),
    leases: [],
    blocks: [],
    claims: [],
    now: 1_000,
    columns: undefined,
    ...rest,
  };
}

const linesOf = (given: PoolUsageView) => showPool(given).lines(false).map(textOf);

describe('the view of a pool', () => {
  it('shows each address of a small subnet, with a legend of what occurs', () => {
    const leases = ['10.0.0.1', '10.0.0.2', '10.0.0.65'].map((address) => lease(address));
    const lines = linesOf(
      view(
        { subnets: [{ cidr: '10.0.0.0/25', gateway: '10.0.0.126', reserved: ['10.0.0.10'] }] },
        {
          leases: [
            ...leases,
            lease('10.0.0.3', { releasedAt: 900 }),
            lease('10.0.0.4', { takenBy: '02:00:00:00:00:99' }),
          ],
        },
      ),
    );
    expect(lines).to.deep.equal([
      'Pool blue of network blue, for namespaces: all',
      'IPv4: ---------- 4% in use: 119 free, 3 allocated, 1 quarantined, 1 cooling down, 1 reserved, of 125'.replace(
        '----------',
        '#---------',
      ),
      '  largest free range: 10.0.0.66-10.0.0.125',
      '',
      '10.0.0.0/25; one character is one address',
      `10.0.0.0        x##cq.....r${'.'.repeat(53)}`,
      `10.0.0.64       .#${'.'.repeat(60)}xx`,
      '  q quarantined, # allocated, c cooling down, . free, r reserved, x never allocated',
      '',
      'Most addresses:',
      '  a: 3',
    ]);
  });

  it('shows how full each part of a larger subnet is', () => {
    const leases = Array.from({ length: 300 }, (_, index) => lease(`10.0.${(index + 256) >> 8}.${index & 255}`));
    const lines = linesOf(view({ cidr: '10.0.0.0/20' }, { leases }));
    expect(lines).to.include('10.0.0.0/20; one character is 4 addresses');
    expect(lines.find((line) => line.startsWith('10.0.1.0'))).to.equal(`10.0.1.0        ${'#'.repeat(64)}`);
    expect(lines.find((line) => line.startsWith('10.0.2.0'))).to.equal(
      `10.0.2.0        ${'#'.repeat(11)}${'.'.repeat(53)}`,
    );
  });

  it('shows partly used parts by the share of their addresses', () => {
    const leases = Array.from({ length: 40 }, (_, index) => lease(`10.0.4.${index}`));
    const [row] = linesOf(view({ cidr: '10.0.0.0/16' }, { leases })).filter((line) => line.startsWith('10.0.0.0 '));
    expect(row?.trim().split(/\s+/)[1]?.slice(14, 18)).to.equal('..6.');
  });

  it('shows only the part of an IPv6 /64 that contains leases', () => {
    const lines = linesOf(view({ cidr: '2001:db8::/64' }, { leases: [lease('2001:db8::5'), lease('2001:db8::2f0')] }));
    expect(lines).to.include(
      '2001:db8::/64: 2001:db8::/118, which contains all of its leases; one character is one address',
    );
    expect(lines.filter((line) => line.startsWith('2001:db8::'))).to.have.length(17);
  });

  it('is as wide as the terminal, with block characters and cells of blocks in colour', () => {
    const blocks = [blockRecord('10.0.0.64/26', 1)];
    const output = showPool(view({}, { leases: [lease('10.0.0.1')], blocks, columns: 160 }));
    const row = output.lines(false).find((line) => textOf(line).startsWith('10.0.0.0 '));
    expect(textOf(row!)).to.equal(`10.0.0.0        x█${'·'.repeat(126)}`);
    expect(row).to.deep.include({ text: '·', style: 'cyan' });
    expect(output.lines(false).map(textOf)).to.include(
      '  █ allocated, · free, x never allocated, in a block of a node',
    );
  });

  it('lists the claims that wait, or says that the user may not list claims', () => {
    const condition = { type: 'IPsAllocated', status: 'False' as const, reason: 'SubnetExhausted' };
    const claims = Array.from({ length: 12 }, (_, index) => ({
      ...claimOf(`a/c${String(index).padStart(2, '0')}`),
      status: { ips: [], conditions: [{ ...condition, message: '', lastTransitionTime: '' }] },
    }));
    const lines = linesOf(view({}, { claims }));
    expect(lines.slice(lines.indexOf('Waiting for an address, oldest first:') + 1)).to.include.members([
      '  a/c00',
      '  and 2 more',
    ]);
    expect(linesOf(view({}, { claims: undefined })).join()).to.include('you may not list ipamclaims in all namespaces');
  });

  it('has all ranges with their states for programs', () => {
    const { data } = showPool(view({ cidr: '10.0.0.0/30' }, { leases: [lease('10.0.0.1'), lease('10.9.0.1')] }));
    expect(data).to.deep.include({
      outside: ['blue.10-9-0-1'],
      subnets: [
        {
          cidr: '10.0.0.0/30',
          ranges: [
            { range: '10.0.0.0', state: 'excluded' },
            { range: '10.0.0.1', state: 'allocated' },
            { range: '10.0.0.2', state: 'free' },
            { range: '10.0.0.3', state: 'excluded' },
          ],
        },
      ],
    });
    expect(() => JSON.stringify(data)).not.to.throw();
  });

  it('is refused for an invalid pool', () => {
    expect(() => showPool(view({ subnets: [] }))).to.throw(
      CommandError,
      'AddressPool blue is invalid: spec.subnets is empty',
    );
  });
});
