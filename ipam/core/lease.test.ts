import { expect } from 'chai';
import type { AddressLease, LeaseOwner, LeaseWrite } from '../../api/address-lease.js';
import { parseAddress } from './address.js';
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
} from './lease.js';
import { leaseLabels } from './lease-labels.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const TIMES = { cooldownMs: 60_000, stickyMs: 3_600_000, retainsClaims: true };
const MAC = '02:00:00:00:00:ab';
const VM1: LeaseOwner = { kind: 'IPAMClaim', namespace: 'a', name: 'vm1.blue', uid: 'claim-1', workloadUID: 'vm-1' };
const VM2: LeaseOwner = { kind: 'IPAMClaim', namespace: 'b', name: 'vm2.blue', uid: 'claim-2', workloadUID: 'vm-2' };
const POD: LeaseOwner = { kind: 'Pod', namespace: 'b', name: 'web', uid: 'pod-1' };

function lease(
  spec: Partial<AddressLease['spec']> = {},
  metadata: Partial<AddressLease['metadata']> = {},
): AddressLease {
  return {
    metadata: {
      name: 'blue.10-1-0-17',
      uid: 'u1',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...metadata,
    },
    spec: { address: '10.1.0.17', addressSpace: 'blue', pool: 'blue', ...spec },
  };
}

function record(
  spec: Partial<AddressLease['spec']> = {},
  metadata: Partial<AddressLease['metadata']> = {},
): LeaseRecord {
  return readLease(lease(spec, metadata));
}

function request(more: Partial<LeaseRequest> = {}): LeaseRequest {
  return { address: parseAddress('10.1.0.17'), addressSpace: 'blue', pool: 'blue', owner: VM2, ...more };
}

const ago = (ms: number) => new Date(NOW - ms).toISOString();
const held = () => record({ owner: VM1 });
const released = (ms: number, spec: Partial<AddressLease['spec']> = {}) =>
  record({ owner: VM1, releasedAt: ago(ms), ...spec });
const reserved = (spec: Partial<AddressLease['spec']> = {}) => record(spec);

function bodyOf(write: LeaseWrite): object {
  if (write.verb !== 'patch') throw new TypeError(`${write.verb} has no patch`);
  expect(write.name).to.equal('blue.10-1-0-17');
  return write.body;
}

describe('a lease', () => {
  describe('is read', () => {
    it('whole', () => {
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

    const cases: { name: string; given: AddressLease; expect: string }[] = [
      { name: 'not without its uid', given: lease({}, { uid: '' }), expect: 'blue.10-1-0-17 has no uid' },
      { name: 'not where the address is none', given: lease({ address: '10.1.0.017' }), expect: '10.1.0.017' },
      {
        name: 'not under another name than its own, which locks nothing',
        given: lease({ address: '10.1.0.18' }),
        expect: 'blue.10-1-0-18',
      },
      { name: 'nor under that of another space', given: lease({ addressSpace: 'red' }), expect: 'red.10-1-0-17' },
      {
        name: 'not where the time is none',
        given: lease({ owner: POD, releasedAt: 'yesterday' }),
        expect: 'spec.releasedAt "yesterday" is no time',
      },
    ];
    for (const { name, given, expect: words } of cases) {
      it(name, () => expect(() => readLease(given)).to.throw(TypeError, words));
    }
  });

  it('is held, released or reserved', () => {
    expect([held(), released(0), reserved()].map(stateOf)).to.deep.equal(['held', 'released', 'reserved']);
  });

  it('is made under the name that locks the address, and can be read and selected', () => {
    const write = createLease(request({ owner: POD, node: 'n1', mac: '02:00:00:00:00:AB', interface: 'net1' }));
    if (write.verb !== 'create') throw new TypeError(write.verb);
    const metadata = { ...write.lease.metadata, uid: 'u1', resourceVersion: '1' };
    expect(readLease({ ...write.lease, metadata })).to.include({
      node: 'n1',
      mac: '02:00:00:00:00:ab',
      interface: 'net1',
    });
    expect(write.lease).to.include({ apiVersion: 'ipam.holdfast.dev/v1alpha1', kind: 'AddressLease' });
    expect(write.lease.metadata.name).to.equal('blue.10-1-0-17');
    expect(write.lease.spec).to.have.all.keys('address', 'addressSpace', 'pool', 'owner', 'node', 'mac', 'interface');
    expect(write.lease.metadata.labels).to.deep.equal({
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

  it('has labels that are valid whatever the names', () => {
    const pool = `p${'.p'.repeat(120)}`;
    const labels = Object.values(leaseLabels({ address: 'fd00::1', pool, owner: { ...VM1, name: 'v'.repeat(253) } }));
    for (const value of labels) expect(value).to.match(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/);
    expect(labels).to.include('IPv6');
  });

  describe('may be taken', () => {
    const sticky = { mac: MAC };
    const cases: { name: string; given: LeaseRecord; by?: Partial<LeaseRequest>; expect: Availability }[] = [
      { name: 'not while it is held', given: held(), expect: { holder: VM1 } },
      { name: 'not even by who holds it', given: held(), by: { owner: VM1 }, expect: { holder: VM1 } },
      { name: 'not while it cools down', given: released(1), expect: { until: NOW + 59_999 } },
      { name: 'not a moment too soon', given: released(59_999), expect: { until: NOW + 1 } },
      { name: 'once it has cooled down', given: released(60_000), expect: true },
      {
        name: 'at once by the workload that released it',
        given: released(1),
        by: { owner: { ...VM2, workloadUID: 'vm-1' } },
        expect: true,
      },
      { name: 'at once by who had it', given: released(1), by: { owner: { ...VM1, workloadUID: 'x' } }, expect: true },
      {
        name: 'not at once by one without a workload where the last one had none',
        given: record({ owner: POD, releasedAt: ago(1) }),
        by: { owner: { ...POD, uid: 'pod-2' } },
        expect: { until: NOW + 59_999 },
      },
      {
        name: 'by its MAC address once it has cooled down',
        given: released(60_000, sticky),
        by: { mac: MAC.toUpperCase() },
        expect: true,
      },
      {
        name: 'not by its MAC address before',
        given: released(1, sticky),
        by: sticky,
        expect: { until: NOW + 59_999 },
      },
      {
        name: 'not by others while it waits for its MAC address',
        given: released(60_000, sticky),
        expect: { until: NOW + 3_540_000 },
      },
      { name: 'by others when that time is over', given: released(3_600_000, sticky), expect: true },
      { name: 'not where it is reserved', given: reserved(), expect: { holder: 'reserved' } },
      {
        name: 'not where it is reserved for another MAC address',
        given: reserved(sticky),
        by: { mac: '02:00:00:00:00:02' },
        expect: { holder: 'reserved' },
      },
      { name: 'where it is reserved for this MAC address', given: reserved(sticky), by: sticky, expect: true },
      {
        name: 'not from a pool that reserved it for the MAC address',
        given: reserved(sticky),
        by: { ...sticky, pool: 'red' },
        expect: { holder: 'reserved' },
      },
      {
        name: 'not for another pool: there it must be gone first',
        given: released(60_000),
        by: { pool: 'red' },
        expect: { until: NOW + 1_000 },
      },
      {
        name: 'not for another pool while it waits for its MAC address',
        given: released(1, sticky),
        by: { pool: 'red' },
        expect: { until: NOW + 3_599_999 },
      },
      { name: 'never in another space', given: released(1), by: { addressSpace: 'green' }, expect: { holder: VM1 } },
      {
        name: 'not while it is being deleted',
        given: record({ owner: VM1, releasedAt: ago(60_000) }, { deletionTimestamp: ago(1) }),
        expect: { holder: VM1 },
      },
    ];
    for (const { name, given, by, expect: wanted } of cases) {
      it(name, () => expect(availabilityOf(given, request(by), TIMES, NOW)).to.deep.equal(wanted));
    }
  });

  describe('is taken', () => {
    it('by a compare-and-swap that leaves nothing of the earlier owner', () => {
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

    it('never from its holder, nor for another address or pool', () => {
      expect(() => reallocateLease(held(), request())).to.throw(TypeError, 'is held');
      for (const other of [{ pool: 'red' }, { addressSpace: 'red' }, { address: parseAddress('10.1.0.18') }]) {
        expect(() => reallocateLease(released(60_000), request(other))).to.throw(TypeError, 'another address or pool');
      }
    });
  });

  it('is released by a compare-and-swap, once', () => {
    expect(bodyOf(releaseLease(held(), NOW))).to.deep.equal({
      metadata: { uid: 'u1', resourceVersion: '7' },
      spec: { releasedAt: '2026-01-01T00:00:00.000Z' },
    });
    expect(() => releaseLease(released(1), NOW)).to.throw(TypeError, 'is released: it cannot be released');
    expect(() => releaseLease(reserved(), NOW)).to.throw(TypeError, 'is reserved');
  });

  describe('expires', () => {
    const cases: { name: string; given: LeaseRecord; expect: number }[] = [
      { name: 'when it has cooled down', given: released(0), expect: NOW + 60_000 },
      { name: 'when its MAC address has not come', given: released(0, { mac: MAC }), expect: NOW + 3_600_000 },
      { name: 'never while it is held', given: held(), expect: Infinity },
      { name: 'never where it is reserved', given: reserved({ mac: MAC }), expect: Infinity },
    ];
    for (const { name, given, expect: wanted } of cases) {
      it(name, () => {
        expect(expiresAt(given, TIMES)).to.equal(wanted);
        if (wanted === Infinity) return;
        expect([wanted - 1, wanted].map((now) => mayExpire(given, TIMES, now))).to.deep.equal([false, true]);
      });
    }

    it('no sooner for being sticky than it cools down', () => {
      expect(expiresAt(released(0, { mac: MAC }), { ...TIMES, stickyMs: 1_000 })).to.equal(NOW + 60_000);
    });

    it('as this object in this state, and only where it is released', () => {
      expect(expireLease(released(60_000))).to.deep.equal({
        verb: 'delete',
        name: 'blue.10-1-0-17',
        uid: 'u1',
        resourceVersion: '7',
      });
      expect(() => expireLease(held())).to.throw(TypeError, 'is held: it cannot expire');
      expect(() => expireLease(reserved())).to.throw(TypeError, 'is reserved');
    });

    it('but once, where a finalizer keeps it', () => {
      const given = record({ owner: VM1, releasedAt: ago(60_000) }, { deletionTimestamp: ago(1) });
      expect(mayExpire(given, TIMES, NOW)).to.equal(false);
    });
  });
});
