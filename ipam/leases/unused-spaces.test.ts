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
  for (const leads of [true, false]) {
    it(`take no memory when their pools and leases are gone, in a process that ${leads ? 'leads' : 'waits'}`, () => {
      expect(bytesOfSpace(leads)).to.be.lessThan(MOST_BYTES);
    });
  }
});

function bytesOfSpace(leads: boolean): number {
  const book = new LeaseBook();
  const slices = new PoolSlices(book);
  const before = heapBytes();
  for (let n = 0; n < COUNT; n++) {
    const pool = compiledPool({ cidr: '10.0.0.0/24', network: `net-${n}` }, `net-${n}.evil`);
    if (leads) book.view(pool);
    if (leads) slices.of(pool);
    const lease = leaseOf('10.0.0.5', n + 1, { uid: `u${n}` });
    lease.metadata.name = `net-${n}.10-0-0-5`;
    Object.assign(lease.spec, { addressSpace: pool.addressSpace, pool: pool.name });
    book.recordWrite(lease);
    book.removePool(pool.name, pool.addressSpace);
    if (n % 2 === 0) slices.forget(pool.name);
    book.forget(readLease(lease).metadata.name, `u${n}`);
    slices.forget(pool.name);
  }
  const bytes = (heapBytes() - before) / COUNT;
  // after the measurement: what nobody uses any more takes no memory
  expect(book.size).to.equal(0);
  slices.forget('');
  return bytes;
}
