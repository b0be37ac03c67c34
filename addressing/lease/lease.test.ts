import { expect } from 'chai';
import type { AddressLease, LeaseOwner, LeaseWrite } from '../../api/address-lease.js';
import { parseAddress } from '../address/address.js';
import {
  type LeaseRecord,
  type LeaseRequest,
  type Availability,
  createLease,
  expireLease,
  expiresAt,
  mayExpire,
  availabilityOf,
  readLease,
  releaseLease,
  stateOf,
  reallocateLease,
  updateWorkload,
} from './lease.js';
import { leaseLabels } from './lease-record.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const TIMES = { cooldownMs: 60_000, stickyMs: 3_600_000, isStickyForClaims: true };
const MAC = '02:00:00:00:00:ab';
const RESERVED = { holder: 'reserved' } as const;
const VM1: LeaseOwner = { kind: 'IPAMClaim', namespace: 'a', name: 'vm1.blue', uid: 'claim-1', workloadUID: 'vm-1' };
const VM2: LeaseOwner = { kind: 'IPAMClaim', namespace: 'b', name: 'vm2.blue', uid: 'claim-2', workloadUID: 'vm-2' };
const POD: LeaseOwner = { kind: 'Pod', namespace: 'b', name: 'web', uid: 'pod-1' };

type Spec = Partial<AddressLease['spec']>;
type Metadata = Partial<AddressLease['metadata']>;

function lease(spec: Spec = {}, metadata: Metadata = {}): AddressLease {
  const creationTimestamp = '2026-01-01T00:00:00Z';
  return {
    metadata: { name: 'blue.10-1-0-17', uid: 'u1', resourceVersion: '7', creationTimestamp, ...metadata },
    spec: { address: '10.1.0.17', addressSpace: 'blue', pool: 'blue', ...spec },
  };
}

function record(spec: Spec = {}, metadata: Metadata = {}): LeaseRecord {
  return readLease(lease(spec, metadata));
}

function request(more: Partial<LeaseRequest> = {}): LeaseRequest {
  return { address: parseAddress('10.1.0.17'), addressSpace: 'blue', pool: 'blue', owner: VM2, ...more };
}

const ago = (ms: number) => new Date(NOW - ms).toISOString();
const held = () => record({ owner: VM1 });
const released = (ms: number, spec: Spec = {}) => record({ owner: VM1, releasedAt: ago(ms), ...spec });
const deleting = () => record({ owner: VM1, releasedAt: ago(60_000) }, { deletionTimestamp: ago(1) });
const reserved = (spec: Spec = {}) => record(spec);

function bodyOf(write: LeaseWrite): object {
  if (write.verb !== 'patch') throw new TypeError(`${write.verb} has no patch`);
  expect(write.name).to.equal('blue.10-1-0-17');
  return write.body;
}

describe('a lease', () => {
  describe('readLease', () => {
    it('parses all fields', () => {
      const spec = { owner: POD, node: 'n1', containerID: 'c1', interface: 'net1', mac: '02:00:00:00:00:AB' };
      expect(record({ ...spec, releasedAt: '2026-01-01T00:00:00.5Z' }, { labels: { a: 'b' } })).to.deep.equal({
        metadata: {
          name: 'blue.10-1-0-17',
          uid: 'u1',
          resourceVersion: '7',
          creationTimestamp: '2026-01-01T00:00:00Z',
        },
        addressSpace: 'blue',
        address: parseAddress('10.1.0.17'),
        pool: 'blue',
        ...spec,
        mac: '02:00:00:00:00:ab',
        releasedAt: NOW + 500,
      });
    });

    const cases: [string, { given: AddressLease; expect: string }][] = [
      ['rejects a lease without uid', { given: lease({}, { uid: '' }), expect: 'blue.10-1-0-17 has no uid' }],
      ['rejects an invalid address', { given: lease({ address: '10.1.0.017' }), expect: '10.1.0.017' }],
      ['rejects the name of another address', { given: lease({ address: '10.1.0.18' }), expect: 'blue.10-1-0-18' }],
      ['rejects the name of another address space', { given: lease({ addressSpace: 'red' }), expect: 'red.10-1-0-17' }],
      [
        'rejects an invalid time',
        { given: lease({ owner: POD, releasedAt: 'yesterday' }), expect: 'spec.releasedAt "yesterday" is not a time' },
      ],
    ];
    for (const [name, { given, expect: words }] of cases) {
      it(name, () => expect(() => readLease(given)).to.throw(TypeError, words));
    }
  });

  it('is held, released or reserved', () => {
    expect([held(), released(0), reserved()].map(stateOf)).to.deep.equal(['held', 'released', 'reserved']);
  });

  it('is created with the name that locks the address, and can be parsed and selected', () => {
    const write = createLease(request({ owner: POD, node: 'n1', mac: '02:00:00:00:00:AB', interface: 'net1' }));
    const metadata = { ...write.object.metadata, uid: 'u1', resourceVersion: '1' };
    expect(readLease({ ...write.object, metadata })).to.include({ node: 'n1', mac: MAC, interface: 'net1' });
    expect(write.object).to.include({ apiVersion: 'ipam.holdfast.dev/v1alpha1', kind: 'AddressLease' });
    expect(write.object.metadata.name).to.equal('blue.10-1-0-17');
    expect(write.object.spec).to.have.all.keys('address', 'addressSpace', 'pool', 'owner', 'node', 'mac', 'interface');
    expect(write.object.metadata.labels).to.deep.equal({
      'ipam.holdfast.dev/pool': 'blue',
      'ipam.holdfast.dev/family': 'IPv4',
      'ipam.holdfast.dev/node': 'n1',
      'ipam.holdfast.dev/owner-kind': 'Pod',
      'ipam.holdfast.dev/owner-namespace': 'b',
      'ipam.holdfast.dev/owner-name': 'web',
      'ipam.holdfast.dev/owner-uid': 'pod-1',
      'ipam.holdfast.dev/mac': '02-00-00-00-00-ab',
    });
  });

  it('has valid labels for names of any length', () => {
    const pool = `p${'.p'.repeat(120)}`;
    const labels = Object.values(leaseLabels({ address: 'fd00::1', pool, owner: { ...VM1, name: 'v'.repeat(253) } }));
    for (const value of labels) expect(value).to.match(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/);
    expect(labels).to.include('IPv6');
  });

  describe('availabilityOf', () => {
    const sticky = { mac: MAC };
    const cases: [string, { given: LeaseRecord; by?: Partial<LeaseRequest>; expect: Availability }][] = [
      ['returns the holder of a held lease', { given: held(), expect: { holder: VM1 } }],
      ['returns the holder even to itself', { given: held(), by: { owner: VM1 }, expect: { holder: VM1 } }],
      ['returns the end of the cool-down', { given: released(1), expect: { until: NOW + 59_999 } }],
      ['refuses 1 ms before the cool-down ends', { given: released(59_999), expect: { until: NOW + 1 } }],
      ['allows everybody after the cool-down', { given: released(60_000), expect: true }],
      [
        'allows the workload that released it at once',
        { given: released(1), by: { owner: { ...VM2, namespace: 'a', workloadUID: 'vm-1' } }, expect: true },
      ],
      [
        'does not trust the UID of that workload in another namespace',
        { given: released(1), by: { owner: { ...VM2, workloadUID: 'vm-1' } }, expect: { until: NOW + 59_999 } },
      ],
      ['allows the last owner', { given: released(1), by: { owner: { ...VM1, workloadUID: 'x' } }, expect: true }],
      [
        'does not treat owners without a workload as the same workload',
        {
          given: released(1, { owner: POD }),
          by: { owner: { ...POD, uid: 'pod-2' } },
          expect: { until: NOW + 59_999 },
        },
      ],
      [
        'allows its MAC address after the cool-down',
        { given: released(60_000, sticky), by: { mac: MAC.toUpperCase() }, expect: true },
      ],
      [
        'refuses its MAC address during the cool-down',
        { given: released(1, sticky), by: sticky, expect: { until: NOW + 59_999 } },
      ],
      ['refuses others in the sticky time', { given: released(60_000, sticky), expect: { until: NOW + 3_540_000 } }],
      ['allows others after the sticky time', { given: released(3_600_000, sticky), expect: true }],
      ['refuses an address reserved for no MAC address', { given: reserved(), expect: RESERVED }],
      [
        'refuses an address reserved for another MAC address',
        { given: reserved(sticky), by: { mac: '02:00:00:00:00:02' }, expect: RESERVED },
      ],
      ['allows an address reserved for this MAC address', { given: reserved(sticky), by: sticky, expect: true }],
      [
        'refuses another pool than that of the reservation',
        { given: reserved(sticky), by: { ...sticky, pool: 'red' }, expect: RESERVED },
      ],
      [
        'lets another pool wait until the lease is deleted',
        { given: released(60_000), by: { pool: 'red' }, expect: { until: NOW + 1_000 } },
      ],
      [
        'lets another pool wait until the sticky time is over',
        { given: released(1, sticky), by: { pool: 'red' }, expect: { until: NOW + 3_599_999 } },
      ],
      ['refuses another address space', { given: released(1), by: { addressSpace: 'green' }, expect: { holder: VM1 } }],
      ['refuses a lease that is being deleted', { given: deleting(), expect: { holder: VM1 } }],
    ];
    for (const [name, { given, by, expect: wanted }] of cases) {
      it(name, () => expect(availabilityOf(given, request(by), TIMES, NOW)).to.deep.equal(wanted));
    }
  });

  describe('reallocateLease', () => {
    it('patches with preconditions, and replaces all fields of the earlier owner', () => {
      expect(bodyOf(reallocateLease(released(60_000), request({ owner: POD, node: 'n2' })))).to.deep.equal({
        metadata: {
          uid: 'u1',
          resourceVersion: '7',
          labels: {
            'ipam.holdfast.dev/pool': 'blue',
            'ipam.holdfast.dev/family': 'IPv4',
            'ipam.holdfast.dev/node': 'n2',
            'ipam.holdfast.dev/owner-kind': 'Pod',
            'ipam.holdfast.dev/owner-namespace': 'b',
            'ipam.holdfast.dev/owner-name': 'web',
            'ipam.holdfast.dev/owner-uid': 'pod-1',
            'ipam.holdfast.dev/mac': null,
          },
        },
        spec: {
          owner: { ...POD, workloadUID: null },
          node: 'n2',
          containerID: null,
          interface: null,
          mac: null,
          releasedAt: null,
        },
      });
    });

    it('rejects held leases, and other addresses and pools', () => {
      expect(() => reallocateLease(held(), request())).to.throw(TypeError, 'is held');
      for (const other of [{ pool: 'red' }, { addressSpace: 'red' }, { address: parseAddress('10.1.0.18') }]) {
        expect(() => reallocateLease(released(60_000), request(other))).to.throw(TypeError, 'another address or pool');
      }
    });
  });

  it('records the VM that adopted its claim, while it is held by a claim', () => {
    expect(bodyOf(updateWorkload(held(), 'vm-2'))).to.deep.equal({
      metadata: { uid: 'u1', resourceVersion: '7' },
      spec: { owner: { workloadUID: 'vm-2' } },
    });
    for (const other of [record({ owner: POD }), released(1), reserved()])
      expect(() => updateWorkload(other, 'vm-2')).to.throw(TypeError, 'is not held by a claim');
  });

  it('is released once, with preconditions', () => {
    expect(bodyOf(releaseLease(held(), NOW))).to.deep.equal({
      metadata: { uid: 'u1', resourceVersion: '7' },
      spec: { releasedAt: '2026-01-01T00:00:00.000Z' },
    });
    expect(() => releaseLease(released(1), NOW)).to.throw(TypeError, 'is released: it cannot be released');
    expect(() => releaseLease(reserved(), NOW)).to.throw(TypeError, 'is reserved');
  });

  describe('expireLease', () => {
    const cases: [string, { given: LeaseRecord; expect: number }][] = [
      ['expires after the cool-down', { given: released(0), expect: NOW + 60_000 }],
      ['expires after the sticky time', { given: released(0, { mac: MAC }), expect: NOW + 3_600_000 }],
      ['never expires while it is held', { given: held(), expect: Infinity }],
      ['never expires while it is reserved', { given: reserved({ mac: MAC }), expect: Infinity }],
    ];
    for (const [name, { given, expect: wanted }] of cases) {
      it(name, () => {
        expect(expiresAt(given, TIMES)).to.equal(wanted);
        if (wanted === Infinity) return;
        expect([wanted - 1, wanted].map((now) => mayExpire(given, TIMES, now))).to.deep.equal([false, true]);
      });
    }

    it('never expires before the cool-down, even if the sticky time is shorter', () => {
      expect(expiresAt(released(0, { mac: MAC }), { ...TIMES, stickyMs: 1_000 })).to.equal(NOW + 60_000);
    });

    it('is deleted with preconditions, and only if it is released', () => {
      const deletion = { verb: 'delete', name: 'blue.10-1-0-17', uid: 'u1', resourceVersion: '7' };
      expect(expireLease(released(60_000))).to.deep.equal(deletion);
      expect(() => expireLease(held())).to.throw(TypeError, 'is held: it cannot expire');
      expect(() => expireLease(reserved())).to.throw(TypeError, 'is reserved');
    });

    it('does not expire again while a finalizer keeps it', () => {
      expect(mayExpire(deleting(), TIMES, NOW)).to.equal(false);
    });
  });
});
