import { expect } from 'chai';
import { compiledPool, leaseOf } from '../../test/objects/lease-objects.js';
import { readLease } from '../../addressing/lease/lease.js';
import { countsOf, usesOf } from './status.js';
import { drainingCondition } from './pool-conditions.js';
import { PoolUsage } from './usage.js';
import { LeaseBook } from '../leases/lease-book.js';

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
