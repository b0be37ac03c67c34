import { expect } from 'chai';
import type { LeaseOwner } from '../../api/address-lease.js';
import { LeakWorld, READ_FAULTS } from './testing/leak-world.js';
import { readLiveOwner } from './leak-search.js';

describe('readLiveOwner', () => {
  const owner = (uid: string): LeaseOwner => ({ kind: 'IPAMClaim', namespace: 'vms', name: 'c', uid });

  it('finds an existing owner', async () => {
    const world = new LeakWorld();
    const { uid } = world.addClaim('c').metadata;
    expect(await readLiveOwner(world.client, owner(uid!))).to.have.property('kind', 'alive');
  });

  it('reports an owner as gone if the API server does not find it', async () => {
    expect(await readLiveOwner(new LeakWorld().client, owner('u'))).to.deep.equal({ kind: 'gone' });
    const pod: LeaseOwner = { kind: 'Pod', namespace: 'vms', name: 'p', uid: 'u' };
    expect(await readLiveOwner(new LeakWorld().client, pod)).to.deep.equal({ kind: 'gone' });
  });

  it('reports an owner as gone if another object has its name', async () => {
    const world = new LeakWorld();
    world.addClaim('c');
    expect(await readLiveOwner(world.client, owner('earlier'))).to.deep.equal({ kind: 'gone' });
  });

  for (const mood of READ_FAULTS.filter((each) => each !== 'well')) {
    it(`reports an owner as unknown if the API server is ${mood}`, async () => {
      const world = new LeakWorld();
      world.readFault = mood;
      const live = await readLiveOwner(world.client, owner('u'));
      expect(live.kind).to.equal('unknown');
    });
  }

  it('reports an owner as unknown if the answer is not an object of the API server', async () => {
    const client = { get: () => Promise.resolve({ metadata: { name: 'c' } }) };
    const live = await readLiveOwner(client as never, owner('u'));
    expect(live.kind).to.equal('unknown');
  });
});
