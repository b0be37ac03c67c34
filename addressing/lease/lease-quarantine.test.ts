import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import { PROBE_LIMITS } from '../../api/limits.js';
import { LEASE_MAC, PROBE_ANNOTATION } from '../../api/names.js';
import { type ProbeState, formatProbe } from '../../api/probe.js';
import { LeaseServer } from '../../test/object-tracker/lease-server.js';
import { mergePatch } from '../../test/merge-patch.js';
import { parseAddress } from '../address/address.js';
import { QuarantineIndex, quarantineLease } from './lease-quarantine.js';
import {
  type LeaseRecord,
  availabilityOf,
  createLease,
  expireLease,
  expiresAt,
  mayExpire,
  readLease,
  reallocateLease,
  releaseLease,
  stateOf,
  updateLeaseUsage,
} from './lease.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const HOST = '02:00:00:00:00:cd';
const VM = { kind: 'IPAMClaim', namespace: 'a', name: 'vm.blue', uid: 'claim-1', workloadUID: 'vm-1' } as const;
const REQUEST = { address: parseAddress('10.1.0.17'), addressSpace: 'blue', pool: 'blue', owner: VM };
const TIMES = { cooldownMs: 60_000, stickyMs: 3_600_000, isStickyForClaims: true };
const RESERVED_FOR = '02:00:00:00:00:ab';

function lease(spec: Partial<AddressLease['spec']> = {}, metadata: Partial<AddressLease['metadata']> = {}) {
  const all = { address: '10.1.0.17', addressSpace: 'blue', pool: 'blue', ...spec };
  return { metadata: { name: 'blue.10-1-0-17', uid: 'u1', resourceVersion: '7', ...metadata }, spec: all };
}

const held = (metadata = {}) => readLease(lease({ owner: VM, node: 'n1', mac: RESERVED_FOR }, metadata));

/** The lease after it was quarantined, as the API server stores it. */
function quarantined(record: LeaseRecord = held(), mac = HOST): LeaseRecord {
  const stored = lease({ owner: VM, node: 'n1', mac: RESERVED_FOR }, record.metadata);
  mergePatch(stored, quarantineLease(record, mac, NOW).body);
  return readLease(stored);
}

/** The lease after its release, as the API server stores it. */
function releasedWith(probe: ProbeState, spec: Partial<AddressLease['spec']> = {}): AddressLease {
  const labels = { [LEASE_MAC]: '02-00-00-00-00-ab' };
  const annotations = { [PROBE_ANNOTATION]: formatProbe(probe) };
  const stored = lease({ owner: VM, mac: RESERVED_FOR, ...spec }, { labels, annotations });
  mergePatch(stored, releaseLease(readLease(stored), NOW).body);
  return stored;
}

describe('a released lease', () => {
  it('is not kept for its MAC address if a probe found the address taken, because it could come back without a probe', () => {
    const stored = releasedWith({ taken: HOST });
    expect(stored.metadata.labels).to.deep.equal({});
    const { mac, owner, releasedAt } = readLease(stored);
    expect({ mac, owner, releasedAt }).to.deep.equal({ mac: undefined, owner: VM, releasedAt: NOW });
    const other = { ...REQUEST, owner: { ...VM, uid: 'claim-2', workloadUID: 'vm-2' }, mac: RESERVED_FOR };
    expect(availabilityOf(readLease(stored), other, TIMES, NOW + 1)).to.deep.equal({ until: NOW + 60_000 });
  });

  for (const probe of ['requested', 'free', 'self', 'skipped'] as const) {
    it(`is kept for its MAC address if the probe is ${probe}`, () => {
      expect(readLease(releasedWith(probe)).mac).to.equal(RESERVED_FOR);
    });
  }

  it('stays reserved for its MAC address although a probe found the address taken', () => {
    expect(readLease(releasedWith({ taken: HOST }, { reserved: true })).mac).to.equal(RESERVED_FOR);
  });
});

describe('a quarantined lease', () => {
  it('has no owner, says who has the address, and lasts an hour', () => {
    const { quarantine, ...rest } = quarantined();
    expect(quarantine).to.deep.equal({ since: NOW, until: NOW + 3_600_000, mac: HOST });
    expect(rest).to.have.all.keys('metadata', 'addressSpace', 'address', 'pool');
    expect(stateOf({ ...rest, quarantine: quarantine! })).to.equal('quarantined');
  });

  it('is accepted by the API server with the labels of a lease without owner, and without a probe', async () => {
    const server = new LeaseServer();
    const created = createLease({ ...REQUEST, mac: RESERVED_FOR, isProbed: true });
    const path = '/apis/ipam.holdfast.dev/v1alpha1/addressleases';
    const stored = (await server.request({ method: 'POST', path, body: created.object })) as AddressLease;
    expect(readLease(stored).probe).to.equal('requested');
    const write = quarantineLease(readLease(stored), HOST.toUpperCase(), NOW);
    const request = { method: 'PATCH', path: `${path}/${write.name}`, body: write.body } as const;
    const after = (await server.request(request)) as AddressLease;
    expect(Object.keys(after.metadata.labels ?? {})).to.deep.equal([
      'ipam.holdfast.dev/pool',
      'ipam.holdfast.dev/family',
    ]);
    expect(readLease(after)).to.not.have.property('probe');
    expect(readLease(after).quarantine?.mac).to.equal(HOST);
  });

  it('is made of a held lease only, and of no reservation', () => {
    const released = readLease(lease({ owner: VM, releasedAt: '2026-01-01T00:00:00Z' }));
    for (const [record, state] of [
      [released, 'released'],
      [readLease(lease()), 'reserved'],
      [readLease(lease({ owner: VM, reserved: true, mac: RESERVED_FOR })), 'reserved'],
      [quarantined(), 'quarantined'],
    ] as const) {
      expect(() => quarantineLease(record, HOST, NOW)).to.throw(TypeError, `is ${state}: it cannot be quarantined`);
    }
  });

  it('is available to nobody, not even to its earlier owner or in another pool', () => {
    for (const request of [REQUEST, { ...REQUEST, pool: 'red' }, { ...REQUEST, mac: HOST }]) {
      const available = availabilityOf(quarantined(), request, TIMES, NOW + 10 * 3_600_000);
      expect(available).to.deep.equal({ holder: 'quarantined' });
    }
    expect(() => reallocateLease(quarantined(), REQUEST)).to.throw(TypeError, 'is quarantined: it cannot be allocated');
    expect(() => releaseLease(quarantined(), NOW)).to.throw(TypeError, 'is quarantined: it cannot be released');
    expect(() => updateLeaseUsage(quarantined(), {})).to.throw(TypeError, 'is quarantined: its usage');
  });

  it('expires after its time by the clock of this process, whatever the time of day was', () => {
    const { quarantineMs } = PROBE_LIMITS;
    const seen = { ...quarantined(), coolsSince: NOW + 1_000 };
    expect(expiresAt(seen, TIMES)).to.equal(NOW + 1_000 + quarantineMs);
    expect(mayExpire(seen, TIMES, NOW + quarantineMs)).to.equal(false);
    expect(mayExpire(seen, TIMES, NOW + 1_000 + quarantineMs)).to.equal(true);
    expect(expireLease(seen)).to.deep.equal({
      verb: 'delete',
      name: 'blue.10-1-0-17',
      uid: 'u1',
      resourceVersion: '7',
    });
  });

  for (const [field, spec] of [
    ['quarantine.until', { since: '2026-01-01T00:00:00Z', until: 'later', mac: HOST }],
    ['quarantine.since', { since: '', until: '2026-01-01T00:00:00Z', mac: HOST }],
    ['quarantine.mac', { since: '2026-01-01T00:00:00Z', until: '2026-01-01T01:00:00Z', mac: 'x' }],
  ] as const) {
    it(`is refused with an invalid ${field}, which the message names`, () => {
      expect(() => readLease(lease({ quarantine: spec }))).to.throw(TypeError, `blue.10-1-0-17: spec.${field}`);
    });
  }
});

describe('the probe of a lease', () => {
  const annotations = { [PROBE_ANNOTATION]: 'free' };

  it('is requested with a reallocation', () => {
    const released = readLease(lease({ owner: VM, releasedAt: '2026-01-01T00:00:00Z' }));
    const write = reallocateLease(released, { ...REQUEST, isProbed: true });
    expect(write)
      .to.have.nested.property('body.metadata.annotations')
      .that.deep.equals({ [PROBE_ANNOTATION]: 'requested' });
  });

  it('is forgotten when the address is reallocated without a probe', () => {
    const released = readLease(lease({ owner: VM, releasedAt: '2026-01-01T00:00:00Z' }, { annotations }));
    const write = reallocateLease(released, REQUEST);
    expect(write)
      .to.have.nested.property('body.metadata.annotations')
      .that.deep.equals({ [PROBE_ANNOTATION]: null });
  });
});

describe('the quarantined leases of a pool', () => {
  it('are counted by the MAC address that answered', () => {
    const index = new QuarantineIndex();
    const one = quarantined();
    const two = quarantined(held({ uid: 'u2' }));
    index.add(held());
    index.add(one);
    index.add(two);
    expect([...index.ofPool('blue')].map(([mac, leases]) => [mac, leases.size])).to.deep.equal([[HOST, 2]]);
    index.delete(one);
    index.delete(held());
    expect(index.ofPool('blue').get(HOST)?.size).to.equal(1);
    index.delete(two);
    expect([index.ofPool('blue').size, index.ofPool('red').size]).to.deep.equal([0, 0]);
  });
});
