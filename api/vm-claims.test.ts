import { expect } from 'chai';
import { claim, claimOfIpamExtensions, vmi, vmiReference } from '../test/objects/workload-objects.js';
import { podInterfaceName } from './pod.js';
import {
  describeClaimOwner,
  isForVmNetwork,
  isOwnedBy,
  hasNoOwner,
  ipamExtensionsClaimName,
  ownerOfVmi,
  pickClaim,
  servedVmNetwork,
} from './vm-claims.js';

describe('the owner of the claims that a VMI uses', () => {
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
      given: claim({ owner: null, recordedOwner: { name: 'vm1', uid: 'vm-uid' } }),
      owner: { name: 'vm1', uid: 'vm-uid' },
      expect: true,
    },
    { name: 'not another of its name', given: claim(), owner: { name: 'vm1', uid: 'x' }, expect: false },
    { name: 'not another with its UID', given: claim(), owner: { name: 'evil', uid: 'vm-uid' }, expect: false },
    { name: 'nobody if unknown', given: claim({ owner: null }), owner: { name: 'vm1', uid: 'vm-uid' }, expect: false },
  ];
  for (const { name, given, owner, expect: expected } of cases) {
    it(`is ${name}`, () => {
      expect(isOwnedBy(given, owner)).to.equal(expected);
    });
  }
});

describe('the network of a VM that a claim is for', () => {
  it("is the one in the claim's annotation, for any name of the claim", () => {
    const noted = claim({ name: 'anything', vmNetwork: 'data' });
    expect(isForVmNetwork(noted, 'vm1', 'data')).to.be.true;
    expect(isForVmNetwork(noted, 'vm1', 'other')).to.be.false;
  });

  it('follows from the name of a claim of kubevirt/ipam-extensions, also if the name was changed to be valid', () => {
    expect(isForVmNetwork(claimOfIpamExtensions(), 'vm1', 'data')).to.be.true;
    expect(isForVmNetwork(claimOfIpamExtensions({ name: 'vm1.data.net' }), 'vm1', 'Data_Net')).to.be.true;
    expect(isForVmNetwork(claimOfIpamExtensions(), 'vm1', 'other')).to.be.false;
  });
});

describe('the name that kubevirt/ipam-extensions gives a claim', () => {
  const LONG = `A_${'x'.repeat(260)}`;
  // by ComposeKey of kubevirt/ipam-extensions
  const rows: [string, string][] = [
    ['data', 'vm1.data'],
    ['multus_iface', 'vm1.multus.iface'],
    ['Data_Net', 'vm1.data.net'],
    ['a__b', 'vm1.a.b'],
    ['-a-', 'vm1.a'],
    ['_x_', 'vm1.x'],
    ['a-_b', 'vm1.a.b'],
    ['A--B_-c-', 'vm1.a--b.c'],
    ['net-0123456789', 'vm1.net-0123456789'],
    ['über', 'vm1.ber'],
    ['___', 'vm1'],
    [LONG, `vm1.a.${'x'.repeat(247)}`],
  ];
  for (const [network, name] of rows) {
    it(`is ${name.slice(0, 40)} for network ${network.slice(0, 40)}`, () => {
      expect(ipamExtensionsClaimName('vm1', network)).to.equal(name);
      expect(isForVmNetwork(claimOfIpamExtensions({ name }), 'vm1', network)).to.equal(true);
    });
  }
});

describe('the network that a claim of kubevirt/ipam-extensions serves, if there is one claim for several networks', () => {
  const networks = ['Net_1', 'net_1', 'net-_1'].map((name) => ({ name, podInterface: podInterfaceName(name) }));
  const cases = [
    { name: 'the first one in the spec', given: {}, expect: 'Net_1' },
    { name: 'the one of its interface', given: { interface: podInterfaceName('net_1') }, expect: 'net_1' },
    { name: 'the one that is noted', given: { vmNetwork: 'net-_1' }, expect: 'net-_1' },
  ];
  for (const { name, given, expect: expected } of cases) {
    it(`is ${name}`, () => {
      const shared = claimOfIpamExtensions({ name: 'vm1.net.1', ...given });
      expect(servedVmNetwork(shared, 'vm1', networks)).to.equal(expected);
    });
  }

  it('is the network of its exact name', () => {
    const both = ['Data', 'data'].map((name) => ({ name, podInterface: podInterfaceName(name) }));
    expect(servedVmNetwork(claimOfIpamExtensions(), 'vm1', both)).to.equal('data');
    expect(servedVmNetwork(claimOfIpamExtensions({ name: 'vm1.x' }), 'vm1', both)).to.equal(undefined);
  });
});

describe('the claim that serves an interface if several could', () => {
  const old = '2026-01-01T00:00:00Z';
  const young = '2026-01-02T00:00:00Z';
  const cases = [
    {
      name: 'the oldest one of Holdfast, even if another one has the name that Holdfast predicts',
      given: [claim({ created: young }), claim({ name: 'vm1.data-0123456789', created: old })],
      expect: 'vm1.data-0123456789',
    },
    {
      name: 'the first one by name if both are equally old',
      given: [claim({ name: 'vm1.data-0123456789', created: old }), claim({ created: old })],
      expect: 'vm1.data',
    },
    {
      name: 'one of Holdfast if kubevirt/ipam-extensions has created an older one',
      given: [claimOfIpamExtensions({ name: 'vm1.a', created: old }), claim({ name: 'vm1.b', created: young })],
      expect: 'vm1.b',
    },
    {
      name: 'one of kubevirt/ipam-extensions if that of Holdfast is being deleted',
      given: [claim({ created: old, deleting: true }), claimOfIpamExtensions({ name: 'vm1.x', created: young })],
      expect: 'vm1.x',
    },
  ];
  for (const { name, given, expect: expected } of cases) {
    it(`is ${name}`, () => {
      for (const claims of [given, given.toReversed()]) expect(pickClaim(claims)?.metadata.name).to.equal(expected);
    });
  }
});

describe('the description of a claim that blocks another one', () => {
  const nobody = { owner: null, remembers: null };
  const cases = [
    { name: 'its controller', given: claim(), expect: 'belongs to VirtualMachine vm1', ownerless: false },
    {
      name: 'the VM that it remembers',
      given: claim({ owner: null, recordedOwner: { name: 'vm1', uid: 'old' } }),
      expect: 'belongs to VirtualMachine vm1',
      ownerless: false,
    },
    {
      name: 'nobody, for another network',
      given: claim({ ...nobody, network: 'red' }),
      expect: 'has no owner and is for network "red"',
      ownerless: true,
    },
    {
      name: 'nobody any more',
      given: claim({ ...nobody, deleting: true }),
      expect: 'has no owner and is being deleted',
      ownerless: true,
    },
  ];
  for (const { name, given, expect: expected, ownerless } of cases) {
    it(`is ${name}`, () => {
      expect(describeClaimOwner(given)).to.equal(expected);
      expect(hasNoOwner(given)).to.equal(ownerless);
    });
  }
});
