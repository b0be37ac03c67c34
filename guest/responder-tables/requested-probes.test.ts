import { expect } from 'chai';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { requestedProbes } from './requested-probes.js';

function probed(namespace: string, number: number): LeaseRecord {
  return {
    metadata: { name: `${namespace}-${String(number).padStart(4, '0')}`, uid: 'u', resourceVersion: '1' },
    addressSpace: 'blue',
    address: { family: 4, value: BigInt(number) },
    pool: 'blue',
    owner: { kind: 'IPAMClaim', namespace, name: `c${number}`, uid: 'c' },
  };
}

describe('the probes that a table requests', () => {
  it('are bounded, and a namespace with many leaves those of another one in', () => {
    const many = Array.from({ length: 2_000 }, (_, number) => probed('a-hostile', number));
    const leases = { byIndex: () => [...many, probed('other', 7)] };
    const requested = requestedProbes('blue', leases, { get: () => undefined });
    expect(requested).to.have.lengthOf(512);
    expect(requested.map(({ metadata }) => metadata.name)).to.include('other-0007');
  });
});
