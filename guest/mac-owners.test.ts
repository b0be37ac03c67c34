import { expect } from 'chai';
import fc from 'fast-check';
import { macOwners } from './mac-owners.js';

function claim(name: string, age: number, namespace = 'vms') {
  const creationTimestamp = `2026-01-01T00:00:${String(age).padStart(2, '0')}Z`;
  return { metadata: { name, namespace, creationTimestamp }, spec: { network: 'blue', interface: 'net1' } };
}

const MAC = '02:00:00:00:00:01';

describe('the owner of a MAC address on a network', () => {
  it('is the oldest claim, and the later ones are refused, oldest first', () => {
    const [young, old, middle] = [claim('a', 9), claim('z', 1), claim('b', 5)];
    const owner = macOwners([young, old, middle].map((each) => ({ claim: each, mac: MAC }))).get(MAC);
    expect(owner?.served.claim).to.equal(old);
    expect(owner?.refused.map((each) => each.claim)).to.deep.equal([middle, young]);
  });

  it('is found for each MAC address by itself', () => {
    const owners = macOwners([
      { claim: claim('a', 1), mac: MAC },
      { claim: claim('b', 2), mac: '02:00:00:00:00:02' },
    ]);
    expect([...owners.values()].map(({ refused }) => refused)).to.deep.equal([[], []]);
  });

  it('is the same in each order of the claims, also if they have one age and name', () => {
    const claims = [claim('a', 1, 'x'), claim('a', 1, 'y'), claim('b', 1, 'x'), claim('a', 0, 'z')];
    const served = claims.map((each) => ({ claim: each, mac: MAC }));
    const wanted = macOwners(served);
    fc.assert(
      fc.property(fc.shuffledSubarray(served, { minLength: served.length }), (shuffled) => {
        expect(macOwners(shuffled)).to.deep.equal(wanted);
      }),
    );
  });
});
