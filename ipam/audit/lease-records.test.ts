import { expect } from 'chai';
import { formatAuditRecord, readAuditRecord } from '../../api/audit-record.js';
import { leaseOf } from '../../test/lease-objects.js';
import { readLease } from '../../addressing/lease/lease.js';
import { recordOfState, recordOfTransition } from './lease-records.js';

const TIME = '2030-01-01T00:00:00.000Z';
const MAC = '02:00:00:00:00:99';

describe('the audit record of a quarantined address', () => {
  const before = readLease(leaseOf('10.0.0.5', 1));
  const after = readLease(leaseOf('10.0.0.5', 2, { takenBy: MAC }));

  it('names the MAC address that has it, and no owner', () => {
    const record = recordOfTransition({ before, after }, TIME);
    expect(record).to.deep.include({ type: 'quarantined', address: '10.0.0.5', mac: MAC });
    expect(record).to.not.have.property('owner');
  });

  it('is written once', () => {
    expect(recordOfTransition({ before: after, after: { ...after } }, TIME)).to.equal(undefined);
  });

  for (const [name, record] of [
    ['its change', recordOfTransition({ before, after }, TIME)],
    ['its state after a gap', recordOfState(after, TIME)],
    ['its end', recordOfTransition({ before: after }, TIME)],
  ] as const) {
    it(`can be read again: ${name}`, () => {
      expect(readAuditRecord(formatAuditRecord(record!))).to.deep.equal(record);
    });
  }
});
