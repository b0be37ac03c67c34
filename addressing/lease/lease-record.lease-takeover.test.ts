import { expect } from 'chai';
import type { AddressLease, AddressLeaseSpec, LeaseOwner } from '../../api/address-lease.js';
import { mergePatch } from '../../test/merge-patch.js';
import { parseAddress } from '../address/address.js';
import { type LeaseRequest, availabilityOf, readLease, reallocateLease } from './lease.js';

const POD: LeaseOwner = { kind: 'Pod', namespace: 'vms', name: 'virt-launcher-vm1', uid: 'pod-1' };
const CLAIM: LeaseOwner = {
  kind: 'IPAMClaim',
  namespace: 'vms',
  name: 'vm1.data',
  uid: 'claim-1',
  workloadUID: 'vm-1',
};
const TIMES = { cooldownMs: 60_000, stickyMs: 0 };
const REQUEST: LeaseRequest = {
  address: parseAddress('10.0.0.5'),
  addressSpace: 'blue',
  pool: 'blue',
  owner: CLAIM,
  interface: 'net1',
  launchers: new Set(['pod-1']),
};

function launcherLease(spec: Partial<AddressLeaseSpec> = {}): AddressLease {
  const held = { owner: { ...POD }, node: 'n1', containerID: 'c1', interface: 'net1' };
  return {
    metadata: { name: 'blue.10-0-0-5', uid: 'l1', resourceVersion: '7' },
    spec: { address: '10.0.0.5', addressSpace: 'blue', pool: 'blue', ...held, ...spec },
  };
}

describe('the lease of a launcher that had no claim', () => {
  it('passes to the claim in one write, without the node and container of the launcher', () => {
    const before = launcherLease();
    const record = readLease(before);
    expect(availabilityOf(record, REQUEST, TIMES, 0)).to.equal(true);
    const write = reallocateLease(record, REQUEST);
    expect(write.body).to.have.deep.nested.property('metadata.resourceVersion', record.metadata.resourceVersion);
    mergePatch(before, write.body);
    const { owner, releasedAt, node, containerID, interface: podInterface } = before.spec;
    expect(owner).to.deep.equal(CLAIM);
    expect([releasedAt, node, containerID, podInterface]).to.deep.equal([undefined, undefined, undefined, 'net1']);
  });

  it('passes from a pool that another one has replaced, and keeps the name of its pool', () => {
    const before = launcherLease({ pool: 'blue.vms' });
    const record = readLease(before);
    expect(availabilityOf(record, REQUEST, TIMES, 0)).to.equal(true);
    mergePatch(before, reallocateLease(record, REQUEST).body);
    expect(before.spec).to.deep.include({ owner: CLAIM, pool: 'blue.vms' });
    expect(before.metadata.labels).to.include({ 'ipam.holdfast.dev/pool': 'blue.vms' });
  });

  const others: { name: string; lease?: Partial<AddressLeaseSpec>; request?: Partial<LeaseRequest> }[] = [
    { name: 'of another pod', lease: { owner: { ...POD, uid: 'pod-2' } } },
    { name: 'of a pod in another namespace', lease: { owner: { ...POD, namespace: 'other' } } },
    { name: 'of another claim', lease: { owner: { ...CLAIM, uid: 'pod-1' } } },
    {
      name: 'of an address that is reserved for another MAC address',
      lease: { reserved: true, mac: '02:00:00:00:00:01' },
    },
    { name: 'if the owner is no claim', request: { owner: { ...POD, uid: 'pod-3' } } },
    { name: 'if no launcher is known', request: { launchers: new Set() } },
  ];
  for (const { name, lease, request } of others) {
    it(`does not pass ${name}`, () => {
      const record = readLease(launcherLease(lease));
      const given = { ...REQUEST, ...request };
      expect(availabilityOf(record, given, TIMES, 0)).to.have.property('holder');
      expect(() => reallocateLease(record, given)).to.throw(TypeError);
    });
  }
});
