import { expect } from 'chai';
import { heapBytes } from '../../test/heap.js';
import { compiledPool, leaseOf } from '../../test/objects/lease-objects.js';
import { readLease } from '../../addressing/lease/lease.js';
import { PoolSlices } from '../blocks/slice-occupancy.js';
import { LeaseBook } from './lease-book.js';

const COUNT = 5_000;
/** A space with one pool takes 3,000. A limited number of deleted leases is remembered. */
const MOST_BYTES = 1_000;

describe('address spaces that tenants name in ever new NADs', () => {
  it('take no memory when their pools and leases are gone', () => {
    const book = new LeaseBook();
    const slices = new PoolSlices(book);
    const before = heapBytes();
    for (let n = 0; n < COUNT; n++) {
      const pool = compiledPool({ cidr: '10.0.0.0/24', network: `net-${n}` }, `net-${n}.evil`);
      book.view(pool);
      slices.of(pool);
      const lease = leaseOf('10.0.0.5', n + 1, { uid: `u${n}` });
      lease.metadata.name = `net-${n}.10-0-0-5`;
      Object.assign(lease.spec, { addressSpace: pool.addressSpace, pool: pool.name });
      book.recordWrite(lease);
      book.removePool(pool.name);
      if (n % 2 === 0) slices.forget(pool.name);
      book.forget(readLease(lease).metadata.name, `u${n}`);
      slices.forget(pool.name);
    }
    expect(book.size).to.equal(0);
    expect((heapBytes() - before) / COUNT).to.be.lessThan(MOST_BYTES);
  });
});
