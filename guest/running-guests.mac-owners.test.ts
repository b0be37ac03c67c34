import { expect } from 'chai';
import fc from 'fast-check';
import { CLAIM_GUEST_MAC, CLAIM_MAC, CLAIM_MAC_SINCE } from '../api/names.js';
import { MacOwners, type ServedMac } from './running-guests.js';

const MAC = '02:00:00:00:00:01';
const OTHER = '02:00:00:00:00:02';

interface Given {
  /** The second of its creation. */
  age?: number;
  namespace?: string;
  network?: string;
  segment?: string;
  mac?: string;
  annotations?: Record<string, string>;
}

function at(second: number): string {
  return `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;
}

function guest(name: string, given: Given = {}): ServedMac {
  const { age = 1, namespace = 'vms', network = 'blue', segment, mac = MAC } = given;
  const { annotations = { [CLAIM_GUEST_MAC]: mac } } = given;
  const metadata = { name, namespace, creationTimestamp: at(age), annotations };
  return {
    claim: { metadata, spec: { network, interface: 'net1' } },
    mac,
    nad: segment === undefined ? {} : { segment },
  };
}

/** A guest whose claim has got its MAC address later. */
function changed(name: string, { since, ...given }: Given & { since: string }): ServedMac {
  return guest(name, { ...given, annotations: { [CLAIM_GUEST_MAC]: MAC, [CLAIM_MAC_SINCE]: since } });
}

/** Those that are refused, with the owner of their MAC address. */
function refused(...guests: ServedMac[]): string[] {
  const owners = new MacOwners();
  for (const each of guests) owners.add(each);
  return guests.flatMap((each) => {
    const owner = owners.earlierThan(each);
    return owner === undefined ? [] : [`${each.claim.metadata.name} for ${owner.claim.metadata.name}`];
  });
}

describe('the owner of a MAC address on a network', () => {
  it('is the oldest claim if no claim has changed its MAC address', () => {
    expect(refused(guest('young', { age: 9 }), guest('old'), guest('middle', { age: 5 }))).to.deep.equal([
      'young for old',
      'middle for old',
    ]);
  });

  it('is the claim that had it first, not an older one whose VM got it later', () => {
    const attacker = changed('attacker', { since: `${MAC} ${at(30)}` });
    expect(refused(attacker, guest('victim', { age: 20 }))).to.deep.equal(['attacker for victim']);
  });

  it('stays the same while its VM is stopped, or while the controller has not written that it runs', () => {
    const victim = changed('victim', { age: 5, since: `${MAC} ${at(6)}`, annotations: { [CLAIM_MAC]: MAC } });
    expect(refused(guest('attacker', { age: 7 }), victim)).to.deep.equal(['attacker for victim']);
  });

  const untrusted: { name: string; annotations: Record<string, string> }[] = [
    { name: 'was written for another MAC address', annotations: { [CLAIM_MAC_SINCE]: `${OTHER} ${at(1)}` } },
    { name: 'cannot be read', annotations: { [CLAIM_MAC_SINCE]: `${MAC} soon` } },
    { name: 'has no MAC address', annotations: { [CLAIM_MAC_SINCE]: at(1) } },
    { name: 'is empty', annotations: { [CLAIM_MAC_SINCE]: '' } },
  ];
  for (const { name, annotations } of untrusted) {
    it(`is not a claim whose time ${name}`, () => {
      const attacker = guest('attacker', { annotations: { [CLAIM_GUEST_MAC]: MAC, ...annotations } });
      expect(refused(attacker, guest('victim', { age: 20 }))).to.deep.equal(['attacker for victim']);
    });
  }

  it('is not a claim whose MAC address the controller has not recorded', () => {
    expect(refused(guest('attacker', { annotations: {} }), guest('victim', { age: 20 }))).to.deep.equal([
      'attacker for victim',
    ]);
  });

  it('is not a claim that was restored with a time before it was created', () => {
    const restored = changed('restored', { age: 30, since: `${MAC} ${at(1)}` });
    expect(refused(restored, guest('victim', { age: 20 }))).to.deep.equal(['restored for victim']);
  });

  it('is the older claim if both have had it for the same time', () => {
    const since = `${MAC} ${at(30)}`;
    expect(refused(changed('young', { age: 9, since }), changed('old', { age: 2, since }))).to.deep.equal([
      'young for old',
    ]);
  });

  it('is found for each MAC address by itself', () => {
    expect(refused(guest('a'), guest('b', { mac: OTHER }))).to.deep.equal([]);
  });

  it('is found for each network by itself, unless the networks are on one layer-2 segment', () => {
    const [blue, green] = [guest('a', { segment: 'bridge br0' }), guest('b', { network: 'green', age: 2 })];
    expect(refused(blue, green)).to.deep.equal([]);
    expect(refused(blue, { ...green, nad: { segment: 'bridge br1' } })).to.deep.equal([]);
    expect(refused(blue, { ...green, nad: { segment: 'bridge br0' } })).to.deep.equal(['b for a']);
  });

  it('is the same in each order of the claims, also if they have one age and name', () => {
    const guests = [
      guest('a', { namespace: 'x' }),
      guest('a', { namespace: 'y', segment: 'bridge br0' }),
      guest('b', { namespace: 'x', network: 'green', segment: 'bridge br0' }),
      guest('a', { age: 0, namespace: 'z', network: 'green' }),
      guest('c', { annotations: {} }),
    ];
    const wanted = refused(...guests).sort();
    expect(wanted).to.have.length(3);
    fc.assert(
      fc.property(fc.shuffledSubarray(guests, { minLength: guests.length }), (shuffled) => {
        expect(refused(...shuffled).sort()).to.deep.equal(wanted);
      }),
    );
  });
});
