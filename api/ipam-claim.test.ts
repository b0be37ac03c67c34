import { expect } from 'chai';
import fc from 'fast-check';
import {
  type IPAMClaim,
  claimNadOf,
  claimName,
  claimOwnerOf,
  claimVmNetworkOf,
  isWorkloadClaim,
  labelValue,
  swappedClaimName,
} from './ipam-claim.js';
import type { ObjectMeta } from './meta.js';

const DNS_1123 = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** Names that the API server accepts for objects. */
const objectName = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,70}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,70}[a-z0-9])?){0,2}$/);
/** Names that KubeVirt accepts for networks, and what a restored object might hold. */
const network = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9_-]{1,80}$/),
  fc.stringMatching(/^[a-z0-9._-]{1,20}$/),
  fc.string({ minLength: 1, unit: 'grapheme' }),
  fc.stringMatching(/^[a-z]{1,3}-[0-9a-f]{10}$/),
);
const pair = fc.tuple(objectName, network);

function isValidName(name: string): boolean {
  return name.length <= 253 && DNS_1123.test(name);
}

function claim(metadata: Partial<ObjectMeta>): IPAMClaim {
  return { metadata: { name: 'vm1.data', namespace: 'vms', ...metadata }, spec: { network: 'blue', interface: '' } };
}

describe('claimName', () => {
  const table: readonly { name: string; given: readonly [string, string]; expect: string | RegExp }[] = [
    { name: 'joins VM and network', given: ['vm1', 'data'], expect: 'vm1.data' },
    { name: 'keeps dots of the VM', given: ['vm.one', 'data'], expect: 'vm.one.data' },
    { name: 'hashes upper case', given: ['vm1', 'Data'], expect: /^vm1\.data-[0-9a-f]{10}$/ },
    { name: 'hashes underscores', given: ['vm1', 'data_net'], expect: /^vm1\.data-net-[0-9a-f]{10}$/ },
    { name: 'hashes a network with a dot', given: ['a', 'b.c'], expect: /^a\.b\.c-[0-9a-f]{10}$/ },
    { name: 'hashes hashlike names', given: ['vm1', 'data-0123456789'], expect: /^vm1\.data-0123456789-[0-9a-f]{10}$/ },
    { name: 'hashes a network of nothing but hyphens', given: ['vm1', '__'], expect: /^vm1-[0-9a-f]{10}$/ },
    { name: 'drops hyphens beside dots', given: ['vm1', '_a__._b'], expect: /^vm1\.a\.b-[0-9a-f]{10}$/ },
    { name: 'is a bare hash where nothing is legible', given: ['_', '_'], expect: /^[0-9a-f]{10}$/ },
  ];
  for (const row of table) {
    it(row.name, () => {
      const name = claimName(...row.given);
      if (typeof row.expect === 'string') expect(name).to.equal(row.expect);
      else expect(name).to.match(row.expect);
      expect(isValidName(name), name).to.equal(true);
    });
  }

  it('cuts and hashes names over 253 characters', () => {
    const vm = `${'a'.repeat(200)}.b`;
    const name = claimName(vm, 'n'.repeat(60));
    expect(name).to.have.lengthOf(253);
    expect(name).to.not.equal(claimName(vm, 'n'.repeat(61)));
  });

  it('always returns a valid object name', () => {
    fc.assert(fc.property(fc.oneof(pair, fc.tuple(network, network)), ([vm, net]) => isValidName(claimName(vm, net))));
  });

  // neither KubeVirt nor the CRD of claims bounds the name of a network
  it('names a network of 100,000 characters at once', () => {
    expect(claimName('vm1', `a${'-'.repeat(100_000)}b`)).to.match(/^vm1\.a-[0-9a-f]{10}$/);
  }).timeout(1_000);

  it('is injective', () => {
    fc.assert(
      fc.property(pair, pair, (a, b) => {
        fc.pre(a[0] !== b[0] || a[1] !== b[1]);
        return claimName(...a) !== claimName(...b);
      }),
    );
  });

  it('is injective for pairs of the same characters', () => {
    const letters = fc.array(fc.constantFrom('a', 'b', '-', '_', '.', 'A'), { minLength: 3, maxLength: 8 });
    fc.assert(
      fc.property(letters, fc.nat(), fc.nat(), (characters, i, j) => {
        const cut = (at: number): [string, string] => {
          const where = 1 + (at % (characters.length - 1));
          return [characters.slice(0, where).join(''), characters.slice(where).join('')];
        };
        const [a, b] = [cut(i), cut(j)];
        fc.pre(a[0] !== b[0]);
        return claimName(...a) !== claimName(...b);
      }),
    );
  });
});

describe('swappedClaimName', () => {
  it('always returns a valid object name that differs from the first name and between networks', () => {
    fc.assert(
      fc.property(pair, network, network, ([vm, net], one, other) => {
        fc.pre(one !== other);
        const swapped = swappedClaimName(vm, net, one);
        return isValidName(swapped) && swapped !== claimName(vm, net) && swapped !== swappedClaimName(vm, net, other);
      }),
    );
  });

  it('returns the first name with a hash', () => {
    expect(swappedClaimName('vm1', 'data', 'green')).to.match(/^vm1\.data-[0-9a-f]{10}$/);
  });
});

describe('labelValue', () => {
  it('returns names of up to 63 characters without a change', () => {
    expect(labelValue('a'.repeat(63))).to.equal('a'.repeat(63));
  });

  it('always returns a valid label value', () => {
    fc.assert(fc.property(objectName, (name) => labelValue(name).length <= 63 && LABEL.test(labelValue(name))));
  });

  it('returns different values for different long names', () => {
    const name = 'a'.repeat(70);
    expect(labelValue(`${name}b`)).to.not.equal(labelValue(`${name}c`));
  });
});

describe('ownerOf', () => {
  const controller = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm1', uid: 'u1', controller: true };
  const remembered = { 'ipam.holdfast.dev/owner-name': 'vm1', 'ipam.holdfast.dev/owner-uid': 'u0' };
  const table = [
    {
      name: 'is the controller',
      given: { ownerReferences: [controller], annotations: remembered },
      expect: 'u1',
      ours: true,
    },
    { name: 'is remembered without a reference', given: { annotations: remembered }, expect: 'u0', ours: true },
    {
      name: 'is not an owner that does not control',
      given: { ownerReferences: [{ ...controller, controller: false }] },
      expect: undefined,
      ours: false,
    },
    {
      name: 'is also a controller that is no KubeVirt object, whose claim is not ours',
      given: { ownerReferences: [{ ...controller, apiVersion: 'apps/v1' }] },
      expect: 'u1',
      ours: false,
    },
    { name: 'is nobody for a claim that has no owner', given: {}, expect: undefined, ours: false },
  ];
  for (const row of table) {
    it(row.name, () => {
      expect(claimOwnerOf(claim(row.given))?.uid).to.equal(row.expect);
      expect(isWorkloadClaim(claim(row.given))).to.equal(row.ours);
    });
  }
});

describe('vmNetworkOf', () => {
  it('returns the value of the annotation', () => {
    const annotations = {
      'ipam.holdfast.dev/vm-network': 'Data',
      'ipam.holdfast.dev/network-attachment-definition': 'a/b',
    };
    expect(claimVmNetworkOf(claim({ annotations }))).to.equal('Data');
    expect(claimNadOf(claim({ annotations }))).to.equal('a/b');
  });

  it("derives the network from the claim's name if there are no annotations", () => {
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm1', uid: 'u1', controller: true };
    expect(claimVmNetworkOf(claim({ ownerReferences: [owner] }))).to.equal('data');
    expect(claimVmNetworkOf(claim({ ownerReferences: [{ ...owner, name: 'vm2' }] }))).to.equal(undefined);
    expect(claimVmNetworkOf(claim({}))).to.equal(undefined);
  });
});
