import { expect } from 'chai';
import { LeakWorld, READ_FAULTS } from './testing/leak-world.js';
import { UnseenLeaseCheck } from './unseen-leases.js';

describe('UnseenLeaseCheck', () => {
  /** We made a lease, and no watch has shown it. */
  function made() {
    const world = new LeakWorld();
    const lease = world.addLease('10.0.0.1', world.addClaim('c'));
    world.book.recordWrite(lease);
    return { world, search: new UnseenLeaseCheck(world, 1_000), name: lease.metadata.name };
  }

  it('forgets a lease that was deleted before the watch showed it', async () => {
    const { world, search, name } = made();
    world.remove('addressleases', name);
    world.deliver('addressleases');
    await search.round(0);
    await search.round(999);
    expect(world.book.get(name)).not.to.equal(undefined);
    await search.round(1_000);
    expect(world.book.get(name)).to.equal(undefined);
    expect(world.requests).to.deep.equal([`GET addressleases ${name}`]);
  });

  it('forgets a lease that was replaced by another', async () => {
    const { world, search, name } = made();
    world.remove('addressleases', name);
    world.addLease('10.0.0.1', world.addClaim('d'));
    for (const now of [0, 1_000]) await search.round(now);
    expect(world.book.get(name)).to.equal(undefined);
  });

  it('keeps a lease that exists, and checks it again only after a while', async () => {
    const { world, search, name } = made();
    for (const now of [0, 1_000, 1_500]) await search.round(now);
    expect(world.book.get(name)).not.to.equal(undefined);
    expect(world.requests).to.have.length(1);
  });

  it('does not check leases that the watch has shown', async () => {
    const { world, search } = made();
    world.deliver('addressleases');
    for (const now of [0, 1_000]) await search.round(now);
    expect(world.requests).to.deep.equal([]);
  });

  for (const mood of READ_FAULTS.filter((each) => each !== 'well')) {
    it(`keeps a lease if the API server is ${mood}`, async () => {
      const { world, search, name } = made();
      world.remove('addressleases', name);
      world.readFault = mood;
      for (const now of [0, 1_000]) await search.round(now);
      expect(world.book.get(name)).not.to.equal(undefined);
    });
  }
});
