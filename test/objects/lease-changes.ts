import type { AddressLeaseSpec, LeaseOwner } from '../../api/address-lease.js';

/** One write to a lease that exists. */
export interface LeaseChangeCase {
  /** Completes the sentence "An update of a lease …". */
  readonly name: string;
  readonly from: Partial<AddressLeaseSpec>;
  /** Merged into the spec. */
  readonly to: object;
  /** Parts of the error message; absent: the update is allowed. */
  readonly expect?: readonly string[];
}

const VM1: LeaseOwner = { kind: 'IPAMClaim', namespace: 'a', name: 'vm1.blue', uid: 'claim-1', workloadUID: 'vm-1' };
const VM2: LeaseOwner = { kind: 'IPAMClaim', namespace: 'b', name: 'vm2.blue', uid: 'claim-2' };
const POD: LeaseOwner = { kind: 'Pod', namespace: 'a', name: 'virt-launcher-vm1', uid: 'pod-1' };
const RELEASED = '2026-01-01T00:00:00Z';
const MAC = '02:00:00:00:00:ab';
const held = { owner: VM1, mac: MAC };
const released = { ...held, releasedAt: RELEASED };
const reservedReleased = { ...released, reserved: true } as const;
const used = { node: 'n1', containerID: 'c1', interface: 'net1' };
const reservedAgain = { owner: null, releasedAt: null, node: null, containerID: null, interface: null };
const reallocated = { owner: { ...VM2, workloadUID: null }, releasedAt: null };
const QUARANTINE = { since: RELEASED, until: '2026-01-01T01:00:00Z', mac: '02:00:00:00:00:cd' };
const quarantined = { owner: null, node: null, containerID: null, interface: null, mac: null, quarantine: QUARANTINE };
/** Updates of the lease of 10.1.0.17 in address space and pool blue. The simulated and the real API server must agree on them. */
export const LEASE_CHANGES: readonly LeaseChangeCase[] = [
  { name: 'may be released', from: held, to: { releasedAt: RELEASED } },
  { name: 'may change their node and sandbox', from: held, to: { node: 'n2', containerID: 'c2', interface: 'net1' } },
  { name: 'may be allocated to another owner after a release', from: released, to: reallocated },
  { name: 'may be allocated to the same owner after a release', from: released, to: { releasedAt: null } },
  { name: 'may be allocated to the reserved MAC address', from: { mac: MAC }, to: { ...reallocated, reserved: true } },
  { name: 'may pass from a pod to a claim of its namespace', from: { owner: POD, mac: MAC }, to: { owner: VM1 } },
  { name: 'may pass to the VM that adopted their claim', from: held, to: { owner: { workloadUID: 'vm-2' } } },
  {
    name: 'may not pass to another VM in the write that releases them',
    from: held,
    to: { owner: { workloadUID: 'vm-2' }, releasedAt: RELEASED },
    expect: ['set releasedAt first'],
  },
  {
    name: 'may not pass to another VM after a release',
    from: released,
    to: { owner: { workloadUID: 'vm-2' } },
    expect: ['clear releasedAt in the same write'],
  },
  {
    name: 'may not get an owner of another name with the same UID',
    from: held,
    to: { owner: { name: 'vm2.blue' } },
    expect: ['set releasedAt first'],
  },
  {
    name: 'may not pass from a pod to a claim of another namespace',
    from: { owner: { ...POD, namespace: 'b' } },
    to: { owner: VM1 },
    expect: ['spec.owner', 'Pod b/virt-launcher-vm1 (uid pod-1), which has not released it: set releasedAt first'],
  },
  {
    name: 'may not pass from a pod to another pod',
    from: { owner: POD },
    to: { owner: { ...POD, uid: 'pod-2' } },
    expect: ['set releasedAt first'],
  },
  { name: 'may not pass from a claim to a pod', from: held, to: { owner: POD }, expect: ['set releasedAt first'] },
  {
    name: 'may not be released when they pass to a claim',
    from: { owner: POD },
    to: { owner: VM1, releasedAt: RELEASED },
    expect: ['set releasedAt first'],
  },
  {
    name: 'may not be allocated if they are reserved for nobody',
    from: {},
    to: { ...reallocated, mac: MAC, reserved: true },
    expect: ['spec.owner', 'the address is reserved without a MAC address'],
  },
  {
    name: 'may not lose their reservation when they are allocated',
    from: { mac: MAC },
    to: reallocated,
    expect: [
      'spec.owner',
      `reserved for MAC address ${MAC}: to allocate it, keep mac and set reserved in the same write`,
    ],
  },
  {
    name: 'may not be allocated to another MAC address than the reserved one',
    from: { mac: MAC },
    to: { ...reallocated, mac: '02:00:00:00:00:02', reserved: true },
    expect: ['spec.owner', `reserved for MAC address ${MAC}: to allocate it, keep mac`],
  },
  {
    name: 'may not change their MAC address if they are reserved',
    from: reservedReleased,
    to: { ...reallocated, mac: '02:00:00:00:00:02' },
    expect: ['spec.reserved', `reserved for MAC address ${MAC}: leave reserved`],
  },
  {
    name: 'may not lose their reservation while they are held',
    from: { ...held, reserved: true },
    to: { reserved: null },
    expect: ['spec.reserved', 'leave reserved and mac unchanged'],
  },
  { name: 'may be allocated again if they are reserved and released', from: reservedReleased, to: reallocated },
  { name: 'may be reserved again after a release', from: { ...reservedReleased, ...used }, to: reservedAgain },
  {
    name: 'may not become a reservation again while they are held',
    from: { ...held, reserved: true },
    to: reservedAgain,
    expect: ['spec.owner', 'set releasedAt first'],
  },
  {
    name: 'may not become a reservation for another MAC address',
    from: reservedReleased,
    to: { ...reservedAgain, mac: '02:00:00:00:00:02' },
    expect: ['spec.reserved', 'leave reserved and mac unchanged'],
  },
  {
    name: 'may not keep the node of their owner if they become a reservation again',
    from: { ...reservedReleased, ...used },
    to: { owner: null, releasedAt: null },
    expect: ['spec.owner', 'a lease without an owner is not in use'],
  },
  {
    name: 'may not become reserved while they are held',
    from: held,
    to: { reserved: true },
    expect: ['spec.reserved', 'a lease that has an owner cannot become a reservation'],
  },
  {
    name: 'may not become reserved when they are allocated',
    from: released,
    to: { ...reallocated, reserved: true },
    expect: ['spec.reserved', 'omit reserved'],
  },
  {
    name: 'may not change their address',
    from: held,
    to: { address: '10.1.0.18' },
    expect: ['address of a lease cannot be changed (10.1.0.17 to 10.1.0.18)'],
  },
  {
    name: 'may not change their address space',
    from: held,
    to: { addressSpace: 'red' },
    expect: ['addressSpace of a lease cannot be changed (blue to red)'],
  },
  {
    name: 'may not change their pool, even after a release',
    from: released,
    to: { ...reallocated, pool: 'red' },
    expect: ['pool of a lease cannot be changed (blue to red)'],
  },
  {
    name: 'may not be allocated to another owner while they are held',
    from: held,
    to: { owner: VM2 },
    expect: [
      'spec.owner',
      'the address belongs to IPAMClaim a/vm1.blue (uid claim-1), which has not released it: set releasedAt first',
    ],
  },
  {
    name: 'may not be released and allocated in one write',
    from: held,
    to: { owner: VM2, releasedAt: RELEASED },
    expect: ['set releasedAt first'],
  },
  { name: 'may not lose their owner', from: held, to: { owner: null }, expect: ['spec.owner', 'set releasedAt first'] },
  {
    name: 'may not get an owner of the same name with another UID',
    from: held,
    to: { owner: { uid: 'claim-9' } },
    expect: ['set releasedAt first'],
  },
  {
    name: 'may not get another owner while they stay released',
    from: released,
    to: { owner: VM2 },
    expect: ['to allocate it to another owner, clear releasedAt in the same write'],
  },
  { name: 'may not lose an old owner', from: released, to: { owner: null, releasedAt: null }, expect: ['spec.owner'] },
  {
    name: 'may not change the time of their release',
    from: released,
    to: { releasedAt: '2026-01-01T00:00:01Z' },
    expect: ['releasedAt cannot be changed'],
  },
  { name: 'may be quarantined while they are held', from: { ...held, ...used }, to: quarantined },
  {
    name: 'may not be quarantined after a release',
    from: released,
    to: quarantined,
    expect: ['spec.quarantine', 'only an address that is held can be quarantined'],
  },
  {
    name: 'may not be quarantined if they are reserved for nobody',
    from: {},
    to: quarantined,
    expect: ['spec.quarantine', 'only an address that is held can be quarantined'],
  },
  {
    name: 'may not be quarantined while they are reserved for a MAC address',
    from: { ...held, reserved: true },
    to: quarantined,
    expect: ['spec.reserved', 'leave reserved and mac unchanged'],
  },
  {
    name: 'may not keep their owner when they are quarantined',
    from: held,
    to: { quarantine: QUARANTINE },
    expect: ['spec.quarantine', 'belongs to nobody'],
  },
  {
    name: 'may not keep their node when they are quarantined',
    from: { ...held, ...used },
    to: { ...quarantined, node: 'n1' },
    expect: ['spec.quarantine', 'belongs to nobody'],
  },
  {
    name: 'may not be allocated while they are quarantined',
    from: { quarantine: QUARANTINE },
    to: { ...reallocated, quarantine: null },
    expect: ['spec.quarantine', 'because 02:00:00:00:00:cd has it: delete the lease'],
  },
  {
    name: 'may not become a reservation while they are quarantined',
    from: { quarantine: QUARANTINE },
    to: { quarantine: null },
    expect: ['spec.quarantine', 'delete the lease'],
  },
  {
    name: 'may not be quarantined for longer',
    from: { quarantine: QUARANTINE },
    to: { quarantine: { until: '2027-01-01T00:00:00Z' } },
    expect: ['spec.quarantine', 'delete the lease'],
  },
  {
    name: 'may not be quarantined until a time that has passed',
    from: held,
    to: { ...quarantined, quarantine: { ...QUARANTINE, until: QUARANTINE.since } },
    expect: ['spec.quarantine.until', 'until is not after since'],
  },
];
