import { expect } from 'chai';
import { claim, claimOfIpamExtensions, vmi, vmiReference } from '../test/workload-objects.js';
import { describeHolder, isForVmNetwork, isOwnedBy, isOwnerless, ownerOfVmi } from './vm-claims.js';

describe('whose claims a VMI uses', () => {
  const cases = [
    { name: "its VM's", given: vmi({}), expect: { kind: 'VirtualMachine', name: 'vm1', uid: 'vm-uid' } },
    {
      name: 'its own, where there is no VM',
      given: vmi({}, { vm: null }),
      expect: { kind: 'VirtualMachineInstance', name: 'vm1', uid: 'vmi-uid' },
    },
    {
      name: 'its own, where something else controls it',
      given: vmi({}, { controller: vmiReference('x') }),
      expect: { kind: 'VirtualMachineInstance', name: 'vm1', uid: 'vmi-uid' },
    },
  ];
  for (const { name, given, expect: expected } of cases) {
    it(name, () => {
      expect(ownerOfVmi(given)).to.deep.equal(expected);
    });
  }
});

describe('the owner of a claim', () => {
  const cases = [
    { name: 'its controller', given: claim(), owner: { name: 'vm1', uid: 'vm-uid' }, expect: true },
    {
      name: 'the VM that it remembers',
      given: claim({ owner: null, remembers: { name: 'vm1', uid: 'vm-uid' } }),
      owner: { name: 'vm1', uid: 'vm-uid' },
      expect: true,
    },
    { name: 'not another of its name', given: claim(), owner: { name: 'vm1', uid: 'x' }, expect: false },
    { name: 'not another with its UID', given: claim(), owner: { name: 'evil', uid: 'vm-uid' }, expect: false },
    {
      name: 'nobody where none is known',
      given: claim({ owner: null }),
      owner: { name: 'vm1', uid: 'vm-uid' },
      expect: false,
    },
  ];
  for (const { name, given, owner, expect: expected } of cases) {
    it(`is ${name}`, () => {
      expect(isOwnedBy(given, owner)).to.equal(expected);
    });
  }
});

describe('the network of a VM that a claim is for', () => {
  it('is the one that is noted, whatever the claim is called', () => {
    const noted = claim({ name: 'anything', vmNetwork: 'data' });
    expect(isForVmNetwork(noted, 'vm1', 'data')).to.be.true;
    expect(isForVmNetwork(noted, 'vm1', 'other')).to.be.false;
  });

  it('is told by the name of a claim of kubevirt/ipam-extensions, also where it had to change that', () => {
    expect(isForVmNetwork(claimOfIpamExtensions(), 'vm1', 'data')).to.be.true;
    expect(isForVmNetwork(claimOfIpamExtensions({ name: 'vm1.data.net' }), 'vm1', 'Data_Net')).to.be.true;
    expect(isForVmNetwork(claimOfIpamExtensions(), 'vm1', 'other')).to.be.false;
  });
});

describe('the holder of a claim that is in the way', () => {
  const nobody = { owner: null, remembers: null };
  const cases = [
    { name: 'its controller', given: claim(), expect: 'belongs to VirtualMachine vm1', ownerless: false },
    {
      name: 'the VM that it remembers',
      given: claim({ owner: null, remembers: { name: 'vm1', uid: 'old' } }),
      expect: 'belongs to VirtualMachine vm1',
      ownerless: false,
    },
    {
      name: 'nobody, for another network',
      given: claim({ ...nobody, network: 'red' }),
      expect: 'belongs to nobody and is for network "red"',
      ownerless: true,
    },
    {
      name: 'nobody any more',
      given: claim({ ...nobody, deleting: true }),
      expect: 'belongs to nobody and is being deleted',
      ownerless: true,
    },
  ];
  for (const { name, given, expect: expected, ownerless } of cases) {
    it(`is ${name}`, () => {
      expect(describeHolder(given)).to.equal(expected);
      expect(isOwnerless(given)).to.equal(ownerless);
    });
  }
});
