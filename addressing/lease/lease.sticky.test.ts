import { expect } from 'chai';
import type { AddressLeaseSpec, LeaseOwner, LeaseWrite } from '../../api/address-lease.js';
import type { ObjectPatch } from '../../api/meta.js';
import { parseAddress } from '../address/address.js';
import {
  type LeaseRecord,
  type LeaseRequest,
  type LeaseTimes,
  type Availability,
  expireLease,
  expiresAt,
  isSticky,
  availabilityOf,
  updateLeaseUsage,
  readLease,
  releaseLease,
  stateOf,
  reallocateLease,
} from './lease.js';
import { timesWhenExhausted } from './lease-times.js';
import { byPreferenceOf } from './lease-record.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const TIMES: LeaseTimes = { cooldownMs: 60_000, stickyMs: 3_600_000 };
const RETAINING: LeaseTimes = { ...TIMES, isStickyForClaims: true };
const MAC = '02:00:00:00:00:ab';
const OTHER_MAC = '02:00:00:00:00:02';
const POD: LeaseOwner = { kind: 'Pod', namespace: 'a', name: 'web', uid: 'pod-1' };
const POD_2: LeaseOwner = { ...POD, uid: 'pod-2' };
const CLAIM: LeaseOwner = { kind: 'IPAMClaim', namespace: 'a', name: 'vm.blue', uid: 'claim-1', workloadUID: 'vm-1' };
const CLAIM_2: LeaseOwner = { ...CLAIM, uid: 'claim-2', workloadUID: 'vm-2' };

function record(spec: Partial<AddressLeaseSpec> = {}): LeaseRecord {
  return readLease({
    metadata: { name: 'blue.10-1-0-17', uid: 'u1', resourceVersion: '7' },
    spec: { address: '10.1.0.17', addressSpace: 'blue', pool: 'blue', mac: MAC, ...spec },
  });
}

/** Released that many ms ago. */
function released(ms: number, owner: LeaseOwner, spec: Partial<AddressLeaseSpec> = {}): LeaseRecord {
  return record({ owner, releasedAt: new Date(NOW - ms).toISOString(), ...spec });
}

function request(owner: LeaseOwner, more: Partial<LeaseRequest> = {}): LeaseRequest {
  return { address: parseAddress('10.1.0.17'), addressSpace: 'blue', pool: 'blue', owner, mac: MAC, ...more };
}

const TABLE = { reserved: true } as const;
const RESERVED = { holder: 'reserved' } as const;
const EXHAUSTED = timesWhenExhausted(RETAINING);

describe('availabilityOf a lease with a MAC address', () => {
  const later = (ms: number) => ({ until: NOW + ms });
  const other = request(POD_2, { mac: OTHER_MAC });
  const cases: [string, { given: LeaseRecord; by: LeaseRequest; times?: LeaseTimes; expect: Availability }][] = [
    ['lets a returning pod have it at once', { given: released(1, POD), by: request(POD_2), expect: true }],
    ['lets a VM with the MAC address of a pod have it', { given: released(1, POD), by: request(CLAIM), expect: true }],
    [
      'lets a pod of another namespace have it only after the cool-down',
      { given: released(1, POD), by: request({ ...POD_2, namespace: 'b' }), expect: later(59_999) },
    ],
    [
      'lets a returning pod wait if the pool is not sticky',
      { given: released(1, POD), by: request(POD_2), times: { ...TIMES, stickyMs: 0 }, expect: later(59_999) },
    ],
    [
      'lets a recreated VM have it only after the cool-down, because agents may answer the old VM from their caches',
      { given: released(1, CLAIM), by: request(CLAIM_2), times: RETAINING, expect: later(59_999) },
    ],
    [
      'lets another MAC address have it after the sticky time',
      { given: released(60_000, POD), by: other, expect: later(3_540_000) },
    ],
    [
      'lets anybody have the lease of a claim after the cool-down if addresses of claims are not sticky',
      { given: released(60_000, CLAIM), by: other, expect: true },
    ],
    [
      'keeps the lease of a claim for its MAC address if addresses of claims are sticky',
      { given: released(60_000, CLAIM), by: other, times: RETAINING, expect: later(3_540_000) },
    ],
    [
      'lets anybody have it after the cool-down if nothing else is left',
      { given: released(60_000, POD), by: other, times: EXHAUSTED, expect: true },
    ],
    [
      'lets nobody else have it before the cool-down, even if nothing else is left',
      { given: released(59_999, POD), by: other, times: EXHAUSTED, expect: later(1) },
    ],
    ['lets the MAC address have its reservation', { given: record(), by: request(CLAIM), expect: true }],
    ['lets the MAC address have its reservation again', { given: record(TABLE), by: request(CLAIM), expect: true }],
    [
      'lets the MAC address have its reservation at once after a pod, sticky or not',
      { given: released(1, POD, TABLE), by: request(POD_2), times: { ...TIMES, stickyMs: 0 }, expect: true },
    ],
    [
      'lets the MAC address have its reservation after the cool-down if a claim had it',
      { given: released(1, CLAIM, TABLE), by: request(CLAIM_2), expect: later(59_999) },
    ],
    [
      'never lets another MAC address have a reservation',
      { given: released(1e9, POD, TABLE), by: other, times: timesWhenExhausted(TIMES), expect: RESERVED },
    ],
    [
      'never lets the last owner have a reservation with another MAC address',
      { given: released(1, POD, TABLE), by: request(POD, { mac: OTHER_MAC }), expect: RESERVED },
    ],
    [
      'never lets another pool have a reservation',
      { given: released(1e9, POD, TABLE), by: request(POD_2, { pool: 'red' }), expect: RESERVED },
    ],
  ];
  for (const [name, { given, by, times = TIMES, expect: wanted }] of cases) {
    it(name, () => expect(availabilityOf(given, by, times, NOW)).to.deep.equal(wanted));
  }
});

describe('a lease that is not held', () => {
  const cases: [string, { given: LeaseRecord; times?: LeaseTimes; kept: boolean; expires: number }][] = [
    ['is sticky if a pod had it', { given: released(0, POD), kept: true, expires: 3_600_000 }],
    ['is not sticky if a claim had it', { given: released(0, CLAIM), kept: false, expires: 60_000 }],
    [
      'is sticky if a claim had it and addresses of claims are sticky',
      { given: released(0, CLAIM), times: RETAINING, kept: true, expires: 3_600_000 },
    ],
    [
      'is not sticky if the pool is not',
      { given: released(0, POD), times: { ...RETAINING, stickyMs: 0 }, kept: false, expires: 60_000 },
    ],
    [
      'is not sticky without MAC address',
      { given: released(0, POD, { mac: undefined! }), kept: false, expires: 60_000 },
    ],
    ['is permanently sticky if it is reserved', { given: record(), kept: true, expires: Infinity }],
    ['stays sticky if it is a released reservation', { given: released(0, CLAIM, TABLE), kept: true, expires: 60_000 }],
    [
      'is not sticky if it is reserved without a MAC address',
      { given: record({ mac: undefined! }), kept: false, expires: Infinity },
    ],
  ];
  for (const [name, { given, times = TIMES, kept, expires }] of cases) {
    it(name, () => {
      expect(isSticky(given, times)).to.equal(kept);
      expect(expiresAt(given, times) - NOW).to.equal(expires);
    });
  }
});

describe('a reservation', () => {
  const bodyOf = (write: LeaseWrite) => (write as ObjectPatch).body as { metadata: { labels: object }; spec: object };

  it('stays marked as reserved while it is held, released and moved', () => {
    expect(bodyOf(reallocateLease(record(), request(POD))).spec).to.include({ reserved: true, mac: MAC });
    expect(bodyOf(reallocateLease(released(1, POD, TABLE), request(POD_2))).spec).not.to.have.property('reserved');
  });

  it('is allocated only for its MAC address', () => {
    const others = [record(), record({ mac: undefined! }), released(60_000, POD, TABLE)];
    for (const given of others) {
      expect(() => reallocateLease(given, request(POD, { mac: OTHER_MAC }))).to.throw(TypeError, 'is reserved for');
    }
  });

  it('keeps its MAC address when its pod moves to a sandbox with another one', () => {
    const held = record({ owner: POD, ...TABLE });
    const { spec, metadata } = bodyOf(updateLeaseUsage(held, { node: 'n1', containerID: 'c2', mac: OTHER_MAC }));
    expect(spec).to.include({ mac: MAC, containerID: 'c2' });
    expect(metadata.labels).to.include({ 'ipam.holdfast.dev/mac': '02-00-00-00-00-ab' });
  });

  it('becomes unowned again in one write when it expires, without any field of its owner', () => {
    expect(bodyOf(expireLease(released(60_000, POD, TABLE)))).to.deep.equal({
      metadata: {
        uid: 'u1',
        resourceVersion: '7',
        labels: {
          'ipam.holdfast.dev/pool': 'blue',
          'ipam.holdfast.dev/family': 'IPv4',
          'ipam.holdfast.dev/mac': '02-00-00-00-00-ab',
          'ipam.holdfast.dev/node': null,
          'ipam.holdfast.dev/owner-kind': null,
          'ipam.holdfast.dev/owner-namespace': null,
          'ipam.holdfast.dev/owner-name': null,
          'ipam.holdfast.dev/owner-uid': null,
        },
      },
      spec: { owner: null, node: null, containerID: null, interface: null, releasedAt: null },
    });
    expect(stateOf(record(TABLE))).to.equal('reserved');
    expect(() => expireLease(record(TABLE))).to.throw(TypeError, 'it cannot expire');
    expect(() => releaseLease(record(TABLE), NOW)).to.throw(TypeError, 'it cannot be released');
  });

  it('comes before all other sticky leases of its MAC address', () => {
    const given = [released(10, POD), released(99, { ...POD, namespace: 'b' }, TABLE), record()];
    const order = [...given].sort(byPreferenceOf(POD_2)).map((each) => given.indexOf(each));
    expect(order.slice(0, 2)).to.have.members([1, 2]);
  });
});

describe('byPreferenceOf', () => {
  it('prefers leases of the owner’s name, then of its namespace, each group latest release first', () => {
    const foreign = released(1, { ...POD, namespace: 'b' });
    const other: LeaseOwner = { ...POD, name: 'other' };
    const given = [foreign, released(20, other), released(10, other), released(99, POD)];
    const order = [...given].sort(byPreferenceOf(POD_2)).map((each) => given.indexOf(each));
    expect(order).to.deep.equal([3, 2, 1, 0]);
  });
});
