import type { AddressLeaseSpec, LeaseOwner } from '../../api/address-lease.js';

/** One write to a lease that exists. */
export interface LeaseChange {
  /** Ends the sentence "when they are written again, leases …". */
  readonly name: string;
  readonly from: Partial<AddressLeaseSpec>;
  /** Merged into the spec. */
  readonly to: object;
  /** Words of the refusal, each on its own; none: allowed. */
  readonly expect?: readonly string[];
}

const VM1: LeaseOwner = { kind: 'IPAMClaim', namespace: 'a', name: 'vm1.blue', uid: 'claim-1', workloadUID: 'vm-1' };
const VM2: LeaseOwner = { kind: 'IPAMClaim', namespace: 'b', name: 'vm2.blue', uid: 'claim-2' };
const RELEASED = '2026-01-01T00:00:00Z';
const held = { owner: VM1, mac: '02:00:00:00:00:ab' };
const released = { ...held, releasedAt: RELEASED };
const taken = { owner: { ...VM2, workloadUID: null }, releasedAt: null };
/** Changes of a lease of 10.1.0.17 in address space and pool blue. The model's server and the real one must judge them alike. */
export const LEASE_CHANGES: readonly LeaseChange[] = [
  { name: 'are released', from: held, to: { releasedAt: RELEASED } },
  { name: 'tell where they are used', from: held, to: { node: 'n2', containerID: 'c2', interface: 'net1' } },
  { name: 'are taken once they are released', from: released, to: taken },
  { name: 'are taken back', from: released, to: { releasedAt: null } },
  { name: 'are taken where they were reserved', from: {}, to: taken },
  {
    name: 'keep their address',
    from: held,
    to: { address: '10.1.0.18' },
    expect: ['address of a lease never changes (10.1.0.17 to 10.1.0.18)'],
  },
  {
    name: 'keep their address space',
    from: held,
    to: { addressSpace: 'red' },
    expect: ['addressSpace of a lease never changes (blue to red)'],
  },
  {
    name: 'keep their pool, released or not',
    from: released,
    to: { ...taken, pool: 'red' },
    expect: ['pool of a lease never changes (blue to red)'],
  },
  {
    name: 'are not taken from their holder',
    from: held,
    to: { owner: VM2 },
    expect: ['spec.owner', 'the address belongs to IPAMClaim a/vm1.blue (uid claim-1), release it first'],
  },
  {
    name: 'nor from one who is released in the same breath',
    from: held,
    to: { owner: VM2, releasedAt: RELEASED },
    expect: ['release it first'],
  },
  { name: 'do not lose their holder', from: held, to: { owner: null }, expect: ['spec.owner', 'release it first'] },
  {
    name: 'do not get another holder of the same name',
    from: held,
    to: { owner: { uid: 'claim-9' } },
    expect: ['release it first'],
  },
  {
    name: 'are not taken while they stay released',
    from: released,
    to: { owner: VM2 },
    expect: ['a new owner takes it by clearing releasedAt in the same write'],
  },
  { name: 'do not become reserved', from: released, to: { owner: null, releasedAt: null }, expect: ['spec.owner'] },
  {
    name: 'cool down from one moment on',
    from: released,
    to: { releasedAt: '2026-01-01T00:00:01Z' },
    expect: ['releasedAt never changes'],
  },
];
