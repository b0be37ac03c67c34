import { expect } from 'chai';
import { LeakWorld } from './testing/leak-world.js';
import { type OwnerLookup, type LeakCandidates, dueCandidates, findLeakCandidates } from './leak-candidates.js';

/** What the world's caches show. */
function look(world: LeakWorld, known: LeakCandidates = new Map(), limits = { afterMs: 60_000, maxCandidates: 10 }) {
  const owners: OwnerLookup = {
    claim: (key) => world.claims.cache.get(key),
    pod: (key) => world.pods.cache.get(key),
    leasesOf: (uid) => world.book.ofOwner(uid),
    hasPool: (name) => world.directory.stateOf(name) !== undefined,
    reportedAddressesOf: () => [],
  };
  const found = findLeakCandidates(known, { now: world.now, leases: [...world.book.all()], owners });
  const suspects = new Map(found.map((suspect) => [suspect.lease.metadata.uid, suspect]));
  const cases = dueCandidates(suspects, world.now, limits);
  return {
    suspects,
    names: [...suspects.values()].map(({ lease, leak }) => `${leak} ${lease.metadata.name}`),
    cases: cases.map(({ lease }) => lease.metadata.name),
  };
}

describe('which leases look leaked', () => {
  it('none of living owners', () => {
    const world = new LeakWorld();
    world.addLease('10.0.0.1', world.addClaim('c', ['10.0.0.1/24']));
    world.addLease('10.0.0.2', world.addPod('p'));
    world.deliverAll();
    expect(look(world).names).to.deep.equal([]);
  });

  it('those whose owner is not there, or is another of the same name', () => {
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
    expect(look(world).names).to.have.length(4);
    for (const name of look(world).names) expect(name).to.match(/^orphan /);
  });

  it('neither released nor reserved ones', () => {
    const world = new LeakWorld();
    world.addLease('10.0.0.1', undefined);
    const lease = world.addLease('10.0.0.2', world.addClaim('c'));
    world.put('addressleases', { ...lease, spec: { ...lease.spec, releasedAt: '2026-01-01T00:00:00Z' } });
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    expect(look(world).names).to.deep.equal([]);
  });

  it('none of owners of a kind that is not known here', () => {
    const world = new LeakWorld();
    const lease = world.addLease('10.0.0.1', world.addClaim('c'));
    const owner = { ...lease.spec.owner, kind: 'Gateway' };
    world.put('addressleases', { ...lease, spec: { ...lease.spec, owner } } as typeof lease);
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    expect(look(world).names).to.deep.equal([]);
  });

  it('those that a claim has besides those in its status', () => {
    const world = new LeakWorld();
    const claim = world.addClaim('c', ['10.0.0.1/24']);
    world.addLease('10.0.0.1', claim);
    world.addLease('10.0.0.2', claim);
    world.deliverAll();
    expect(look(world).names).to.deep.equal(['surplus blue.10-0-0-2']);
  });
});

describe('a claim whose status another IPAM wrote without addresses', () => {
  it('keeps its only lease, and does not stop the search for leaked leases', () => {
    const world = new LeakWorld();
    const claim = world.addClaim('c');
    world.addLease('10.0.0.1', claim);
    world.put('ipamclaims', { ...claim, status: { conditions: [] } });
    world.addLease('10.0.0.2', world.addPod('gone'));
    world.remove('pods', 'vms/gone');
    world.deliverAll();
    expect(look(world).names).to.deep.equal(['orphan blue.10-0-0-2']);
  });
});

describe('which of them are cases', () => {
  function leaking(addresses: number): LeakWorld {
    const world = new LeakWorld();
    const claim = world.addClaim('c');
    for (let last = 1; last <= addresses; last++) world.addLease(`10.0.0.${last}`, claim);
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    return world;
  }

  it('those that looked leaked before, long enough ago', () => {
    const world = leaking(1);
    const first = look(world);
    expect(first.cases).to.deep.equal([]);
    world.now += 59_999;
    const second = look(world, first.suspects);
    expect(second.cases).to.deep.equal([]);
    world.now += 1;
    expect(look(world, second.suspects).cases).to.deep.equal(['blue.10-0-0-1']);
  });

  it('not one that looked well meanwhile', () => {
    const world = leaking(1);
    const first = look(world);
    world.now += 60_000;
    const gone = world.book.ofOwner('ipamclaims-1')[0]!;
    world.claims.cache.set('vms/c', { metadata: { name: 'c', uid: gone.owner!.uid } } as never);
    const second = look(world, first.suspects);
    expect(second.names).to.deep.equal([]);
    world.claims.cache.clear();
    expect(look(world, second.suspects).cases).to.deep.equal([]);
  });

  it('not one that has been written to meanwhile', () => {
    const world = leaking(1);
    const { suspects } = look(world);
    world.put('addressleases', world.lease('blue.10-0-0-1')!);
    world.deliverAll();
    world.now += 60_000;
    expect(look(world, suspects).cases).to.deep.equal([]);
  });

  it('not one of which something else is wrong now', () => {
    const world = new LeakWorld();
    const claim = world.addClaim('c', ['10.0.0.1/24']);
    world.addLease('10.0.0.1', claim);
    world.addLease('10.0.0.2', claim);
    world.deliverAll();
    const { suspects } = look(world);
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    world.now += 60_000;
    expect(look(world, suspects).cases).to.deep.equal([]);
  });

  it('no more than a round may have, the oldest first', () => {
    const world = leaking(3);
    const { suspects } = look(world);
    world.now += 1_000;
    const known = new Map([...suspects].map(([uid, suspect], index) => [uid, { ...suspect, firstSeenAt: -index }]));
    expect(look(world, known, { afterMs: 0, maxCandidates: 2 }).cases).to.deep.equal([
      'blue.10-0-0-3',
      'blue.10-0-0-2',
    ]);
  });
});
