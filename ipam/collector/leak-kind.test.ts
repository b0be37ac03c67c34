import { expect } from 'chai';
import { parseAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type OwnerLookup, leakKindOf, surplusProof } from './leak-kind.js';
import { LeakWorld } from './testing/leak-world.js';

/** Returns what looks leaked in the caches of the world, as `<kind> <name>`. */
function look(world: LeakWorld): string[] {
  const owners: OwnerLookup = {
    claim: (key) => world.claims.cache.get(key),
    pod: (key) => world.pods.cache.get(key),
    leasesOf: (claim) => world.book.ofExactClaim(claim),
    hasPool: (name) => world.directory.stateOf(name) !== undefined,
    reportedAddressesOf: () => [],
  };
  return [...world.book.all()].flatMap((lease) => {
    const leak = leakKindOf(lease, owners);
    return leak === undefined ? [] : [`${leak} ${lease.metadata.name}`];
  });
}

describe('leakKindOf', () => {
  it('ignores leases of existing owners', () => {
    const world = new LeakWorld();
    world.addLease('10.0.0.1', world.addClaim('c', ['10.0.0.1/24']));
    world.addLease('10.0.0.2', world.addPod('p'));
    world.deliverAll();
    expect(look(world)).to.deep.equal([]);
  });

  it('finds leases whose owner is gone, or was replaced by another of its name', () => {
    const world = new LeakWorld();
    for (const plural of ['ipamclaims', 'pods'] as const) {
      for (const name of ['gone', 'anew']) {
        const owner = plural === 'pods' ? world.addPod(name) : world.addClaim(name);
        world.addLease(`10.0.${plural.length}.${name.charCodeAt(0)}`, owner);
        world.remove(plural, `vms/${name}`);
      }
    }
    world.addClaim('anew');
    world.addPod('anew');
    world.deliverAll();
    expect(look(world)).to.have.length(4);
    for (const name of look(world)) expect(name).to.match(/^orphan /);
  });

  it('ignores released and reserved leases', () => {
    const world = new LeakWorld();
    world.addLease('10.0.0.1', undefined);
    const lease = world.addLease('10.0.0.2', world.addClaim('c'));
    world.put('addressleases', { ...lease, spec: { ...lease.spec, releasedAt: '2026-01-01T00:00:00Z' } });
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    expect(look(world)).to.deep.equal([]);
  });

  it('ignores leases of owners of an unknown kind', () => {
    const world = new LeakWorld();
    const lease = world.addLease('10.0.0.1', world.addClaim('c'));
    const owner = { ...lease.spec.owner, kind: 'Gateway' };
    world.put('addressleases', { ...lease, spec: { ...lease.spec, owner } } as typeof lease);
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    expect(look(world)).to.deep.equal([]);
  });

  it('finds leases of a claim whose addresses are not in its status', () => {
    const world = new LeakWorld();
    const claim = world.addClaim('c', ['10.0.0.1/24']);
    world.addLease('10.0.0.1', claim);
    world.addLease('10.0.0.2', claim);
    world.deliverAll();
    expect(look(world)).to.deep.equal(['surplus blue.10-0-0-2']);
  });

  it('ignores the only lease of a claim whose status another IPAM wrote without addresses, and finds others', () => {
    const world = new LeakWorld();
    const claim = world.addClaim('c');
    world.addLease('10.0.0.1', claim);
    world.put('ipamclaims', { ...claim, status: { conditions: [] } });
    world.addLease('10.0.0.2', world.addPod('gone'));
    world.remove('pods', 'vms/gone');
    world.deliverAll();
    expect(look(world)).to.deep.equal(['orphan blue.10-0-0-2']);
  });
});

const REQUESTED = 'ipam.holdfast.dev/requested-addresses';

interface Row {
  /** The first lease is the one in question. */
  leases?: string[];
  /** The status. */
  ips?: string[];
  requested?: string;
  reports?: string[][];
  deleting?: boolean;
  change?: (claimLeases: LeaseRecord[]) => void;
  /** The address of the lease that proves it surplus; absent: it is needed. */
  expect?: string;
}

describe('a lease of a living claim', () => {
  const rows: [string, Row][] = [
    ['is surplus if the status contains another one', { expect: '10.0.0.5' }],
    ['is needed if the status contains it', { ips: ['10.0.0.6/24'] }],
    [
      'is needed if the status contains it in another spelling',
      { leases: ['2001:db8::6', '2001:db8::5'], ips: ['2001:0DB8:0::6/64', '2001:db8::5/64'] },
    ],
    ['is needed if it is the only one', { leases: ['10.0.0.6'] }],
    ['is surplus if the status has only the other family', { leases: ['2001:db8::6', '10.0.0.5'], expect: '10.0.0.5' }],
    [
      'is needed if it is the only one of its family and the status contains another address of the family',
      { leases: ['2001:db8::6', '10.0.0.5'], ips: ['10.0.0.5/24', '2001:db8::7/64'] },
    ],
    [
      'is needed while a pod has it besides one of the other family',
      { leases: ['2001:db8::6', '10.0.0.5'], reports: [['10.0.0.5', '2001:db8::6']] },
    ],
    ['is needed while the status contains no leased address', { leases: ['10.0.0.6', '10.0.0.7'] }],
    ['is needed while the status is empty', { ips: [] }],
    ['is needed if the claim requests it, because the status will follow', { requested: '["10.0.0.6/24"]' }],
    ['is surplus if the claim requests another one', { requested: '["10.0.0.5"]', expect: '10.0.0.5' }],
    ['is needed while a pod has it', { reports: [['10.0.0.5'], ['10.0.0.5', '10.0.0.6']] }],
    ['is needed while a pod does not report the other one', { reports: [['10.0.0.5'], []] }],
    ['is needed while the report of a pod is invalid', { reports: [['10.0.0.5', 'x']] }],
    ['is surplus if all pods have the other', { reports: [['1.1.1.1', '10.0.0.5'], ['10.0.0.5']], expect: '10.0.0.5' }],
    ['is needed while the claim is being deleted, because it keeps its addresses', { deleting: true }],
    ['is needed if the other one is released', { change: ([, other]) => (other!.releasedAt = 1) }],
    ['is needed if the other one belongs to another claim', { change: ([, other]) => (other!.owner!.uid = 'another') }],
    ['is needed if the status contains an invalid prefix length', { ips: ['10.0.0.5/24', '10.0.0.5/33'] }],
    ['is needed if the status contains text', { ips: ['10.0.0.5/24', 'x'] }],
    ...['[', '{}', '[7]', '["010.0.0.1"]'].map((requested): [string, Row] => [
      `is needed if the request is ${requested}`,
      { requested },
    ]),
  ];
  for (const [name, { leases = ['10.0.0.6', '10.0.0.5'], ips = ['10.0.0.5/24'], reports = [], ...row }] of rows) {
    it(name, () => {
      const world = new LeakWorld();
      const claim: IPAMClaim = world.addClaim('c', ips);
      if (row.requested !== undefined) claim.metadata.annotations = { [REQUESTED]: row.requested };
      if (row.deleting) claim.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      const claimLeases = leases.map((address) => readLease(world.addLease(address, claim)));
      row.change?.(claimLeases);
      const proof = surplusProof(claimLeases[0]!, { claim, claimLeases, reportedAddresses: reports });
      expect(proof?.address).to.deep.equal(row.expect && parseAddress(row.expect));
    });
  }
});
