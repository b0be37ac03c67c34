import type { AddressLeaseSpec, LeaseOwner } from '../api/address-lease.js';

/** One write to a lease that exists. */
export interface LeaseChangeCase {
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
const MAC = '02:00:00:00:00:ab';
const held = { owner: VM1, mac: MAC };
const released = { ...held, releasedAt: RELEASED };
const reservedReleased = { ...released, reserved: true } as const;
const used = { node: 'n1', containerID: 'c1', interface: 'net1' };
const reservedAgain = { owner: null, releasedAt: null, node: null, containerID: null, interface: null };
const reallocated = { owner: { ...VM2, workloadUID: null }, releasedAt: null };
/** Changes of a lease of 10.1.0.17 in address space and pool blue. The model's server and the real one must judge them alike. */
export const LEASE_CHANGES: readonly LeaseChangeCase[] = [
  { name: 'are released', from: held, to: { releasedAt: RELEASED } },
  { name: 'tell where they are used', from: held, to: { node: 'n2', containerID: 'c2', interface: 'net1' } },
  { name: 'are taken once they are released', from: released, to: reallocated },
  { name: 'are taken back', from: released, to: { releasedAt: null } },
  {
    name: 'are taken where they were reserved for a MAC address',
    from: { mac: MAC },
    to: { ...reallocated, reserved: true },
  },
  {
    name: 'are not taken where they were reserved for nobody',
    from: {},
    to: { ...reallocated, mac: MAC, reserved: true },
    expect: ['spec.owner', 'the address is reserved for nobody'],
  },
  {
    name: 'go on being of the static table once they are taken',
    from: { mac: MAC },
    to: reallocated,
    expect: [
      'spec.owner',
      `reserved for MAC address ${MAC}: who takes it keeps it, and sets reserved in the same write`,
    ],
  },
  {
    name: 'are not taken by another MAC address than they were reserved for',
    from: { mac: MAC },
    to: { ...reallocated, mac: '02:00:00:00:00:02', reserved: true },
    expect: ['spec.owner', `reserved for MAC address ${MAC}: who takes it keeps it`],
  },
  {
    name: 'stay those of their MAC address where they are of the static table, taken or not',
    from: reservedReleased,
    to: { ...reallocated, mac: '02:00:00:00:00:02' },
    expect: ['spec.reserved', `reserved for MAC address ${MAC}, and stays so`],
  },
  {
    name: 'stay of the static table while somebody has them',
    from: { ...held, reserved: true },
    to: { reserved: null },
    expect: ['spec.reserved', 'stays so'],
  },
  { name: 'of the static table are taken from who released them', from: reservedReleased, to: reallocated },
  { name: 'of the static table become reserved again', from: { ...reservedReleased, ...used }, to: reservedAgain },
  {
    name: 'of the static table do not become reserved while somebody has them',
    from: { ...held, reserved: true },
    to: reservedAgain,
    expect: ['spec.owner', 'release it first'],
  },
  {
    name: 'of the static table do not become reserved for another MAC address',
    from: reservedReleased,
    to: { ...reservedAgain, mac: '02:00:00:00:00:02' },
    expect: ['spec.reserved', 'stays so'],
  },
  {
    name: 'of the static table become reserved with nothing left of their owner',
    from: { ...reservedReleased, ...used },
    to: { owner: null, releasedAt: null },
    expect: ['spec.owner', 'a lease without an owner is used nowhere'],
  },
  {
    name: 'do not come into the static table while somebody has them',
    from: held,
    to: { reserved: true },
    expect: ['spec.reserved', 'a lease that somebody has is reserved for no MAC address afterwards'],
  },
  {
    name: 'do not come into the static table by being taken',
    from: released,
    to: { ...reallocated, reserved: true },
    expect: ['spec.reserved', 'leave reserved out'],
  },
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
    to: { ...reallocated, pool: 'red' },
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
