import { expect } from 'chai';
import type { LeaseOwner } from '../../api/address-lease.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { mergePatch } from '../../test/merge-patch.js';
import { type LeaseRequest, createLease, updateLeaseUsage, readLease } from './lease.js';
import { parseAddress } from '../address/address.js';

const POD: LeaseOwner = { kind: 'Pod', namespace: 'b', name: 'web', uid: 'pod-1' };
const REQUEST: LeaseRequest = {
  address: parseAddress('10.0.0.5'),
  addressSpace: 'blue',
  pool: 'blue',
  owner: POD,
  node: 'n1',
  containerID: 'c1',
  interface: 'net1',
  mac: '02:00:00:00:00:01',
};

describe('updateLeaseUsage', () => {
  function made(request: LeaseRequest) {
    const { metadata, ...rest } = createLease(request).object;
    return { ...rest, metadata: { ...metadata, uid: 'u1', resourceVersion: '7' } };
  }

  it('patches the lease to what it would be if it were created there, with preconditions', () => {
    const before = made(REQUEST);
    const write = updateLeaseUsage(readLease(before), { node: 'n1', containerID: 'c2', interface: 'net1' });
    expect(write.body).to.have.deep.nested.property('metadata.uid', 'u1');
    expect(write.body).to.have.deep.nested.property('metadata.resourceVersion', '7');
    mergePatch(before, write.body);
    const { mac: _mac, ...rest } = REQUEST;
    expect(before).to.deep.equal(made({ ...rest, containerID: 'c2' }));
  });

  it('rejects a released lease, which may belong to another owner by now', () => {
    const released = readLease(leaseOf('10.0.0.5', 7, { releasedAt: 1 }));
    expect(() => updateLeaseUsage(released, { containerID: 'c2' })).to.throw(TypeError, 'is released');
  });
});
