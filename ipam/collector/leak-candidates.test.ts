import { expect } from 'chai';
import { LeakWorld } from './testing/leak-world.js';
import { type OwnerLookup, type LeakCandidates, dueCandidates, leakCandidateOf } from './leak-candidates.js';

/** Finds candidates with the caches of the world. */
function look(world: LeakWorld, known: LeakCandidates = new Map(), limits = { afterMs: 60_000, maxCandidates: 10 }) {
  const owners: OwnerLookup = {
    claim: (key) => world.claims.cache.get(key),
    pod: (key) => world.pods.cache.get(key),
    leasesOf: (uid) => world.book.ofOwner(uid),
    hasPool: (name) => world.directory.stateOf(name) !== undefined,
    reportedAddressesOf: () => [],
  };
  const leases = [...world.book.all()];
  const found = leases.flatMap((lease) => leakCandidateOf(lease, known, { now: world.now, owners }) ?? []);
  const candidates = new Map(found.map((candidate) => [candidate.lease.metadata.uid, candidate]));
  const due = dueCandidates(candidates, world.now, limits);
  return {
    candidates,
    names: [...candidates.values()].map(({ lease, leak }) => `${leak} ${lease.metadata.name}`),
    due: due.map(({ lease }) => lease.metadata.name),
  };
}

describe('leakCandidateOf', () => {
  it('ignores leases of existing owners', () => {
    const world = new LeakWorld();
    world.addLease('10.0.0.1', world.addClaim('c', ['10.0.0.1/24']));
    world.addLease('10.0.0.2', world.addPod('p'));
    world.deliverAll();
    expect(look(world).names).to.deep.equal([]);
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
    expect(look(world).names).to.have.length(4);
    for (const name of look(world).names) expect(name).to.match(/^orphan /);
  });

  it('ignores released and reserved leases', () => {
    const world = new LeakWorld();
    world.addLease('10.0.0.1', undefined);
    const lease = world.addLease('10.0.0.2', world.addClaim('c'));
    world.put('addressleases', { ...lease, spec: { ...lease.spec, releasedAt: '2026-01-01T00:00:00Z' } });
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    expect(look(world).names).to.deep.equal([]);
  });

  it('ignores leases of owners of an unknown kind', () => {
    const world = new LeakWorld();
    const lease = world.addLease('10.0.0.1', world.addClaim('c'));
    const owner = { ...lease.spec.owner, kind: 'Gateway' };
    world.put('addressleases', { ...lease, spec: { ...lease.spec, owner } } as typeof lease);
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    expect(look(world).names).to.deep.equal([]);
  });

  it('finds leases of a claim whose addresses are not in its status', () => {
    const world = new LeakWorld();
    const claim = world.addClaim('c', ['10.0.0.1/24']);
    world.addLease('10.0.0.1', claim);
    world.addLease('10.0.0.2', claim);
    world.deliverAll();
    expect(look(world).names).to.deep.equal(['surplus blue.10-0-0-2']);
  });

  it('ignores the only lease of a claim whose status another IPAM wrote without addresses, and finds others', () => {
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

describe('dueCandidates', () => {
  function leaking(addresses: number): LeakWorld {
    const world = new LeakWorld();
    const claim = world.addClaim('c');
    for (let last = 1; last <= addresses; last++) world.addLease(`10.0.0.${last}`, claim);
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    return world;
  }

  it('returns leases that have looked leaked for long enough', () => {
    const world = leaking(1);
    const first = look(world);
    expect(first.due).to.deep.equal([]);
    world.now += 59_999;
    const second = look(world, first.candidates);
    expect(second.due).to.deep.equal([]);
    world.now += 1;
    expect(look(world, second.candidates).due).to.deep.equal(['blue.10-0-0-1']);
  });

  it('leaves out a lease that did not look leaked in between', () => {
    const world = leaking(1);
    const first = look(world);
    world.now += 60_000;
    const [gone] = [...world.book.all()];
    world.claims.cache.set('vms/c', { metadata: { name: 'c', uid: gone!.owner!.uid } } as never);
    const second = look(world, first.candidates);
    expect(second.names).to.deep.equal([]);
    world.claims.cache.clear();
    expect(look(world, second.candidates).due).to.deep.equal([]);
  });

  it('leaves out a lease that was written to in between', () => {
    const world = leaking(1);
    const { candidates } = look(world);
    world.put('addressleases', world.lease('blue.10-0-0-1')!);
    world.deliverAll();
    world.now += 60_000;
    expect(look(world, candidates).due).to.deep.equal([]);
  });

  it('leaves out a lease that looks leaked for another reason now', () => {
    const world = new LeakWorld();
    const claim = world.addClaim('c', ['10.0.0.1/24']);
    world.addLease('10.0.0.1', claim);
    world.addLease('10.0.0.2', claim);
    world.deliverAll();
    const { candidates } = look(world);
    world.remove('ipamclaims', 'vms/c');
    world.deliverAll();
    world.now += 60_000;
    expect(look(world, candidates).due).to.deep.equal([]);
  });

  it('returns at most the limit, oldest first', () => {
    const world = leaking(3);
    const { candidates } = look(world);
    world.now += 1_000;
    const known = new Map([...candidates].map(([uid, each], index) => [uid, { ...each, firstSeenAt: -index }]));
    const { due } = look(world, known, { afterMs: 0, maxCandidates: 2 });
    expect(due).to.deep.equal(['blue.10-0-0-3', 'blue.10-0-0-2']);
  });
});
