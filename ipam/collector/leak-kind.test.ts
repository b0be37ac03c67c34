import { expect } from 'chai';
import { LeakWorld } from './testing/leak-world.js';
import { type OwnerLookup, leakKindOf } from './leak-kind.js';

/** Returns what looks leaked in the caches of the world, as `<kind> <name>`. */
function look(world: LeakWorld): string[] {
  const owners: OwnerLookup = {
    claim: (key) => world.claims.cache.get(key),
    pod: (key) => world.pods.cache.get(key),
    leasesOf: (uid) => world.book.ofOwner(uid),
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
