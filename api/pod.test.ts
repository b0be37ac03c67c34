import { expect } from 'chai';
import { FORGED_OWNERS } from '../test/objects/forged-owners.js';
import { type MirrorPodOptions, STATIC_UID, mirrorPod } from '../test/objects/mirror-pod.js';
import { controllingVm } from './kubevirt.js';
import { NETWORK_STATUS_ANNOTATION } from './names.js';
import {
  controllingVmi,
  hasUid,
  networkStatuses,
  ordinalInterfaceName,
  podInterfaceName,
  reportedIPsOf,
  staticPodUidOf,
} from './pod.js';

describe('the VirtualMachineInstance that controls a pod', () => {
  for (const { name, owners, isController } of FORGED_OWNERS) {
    it(`is ${isController === true ? 'found' : 'not found'} for ${name}`, () => {
      const pod = { metadata: { name: 'p', ownerReferences: [...owners] } };
      expect(controllingVmi(pod)?.uid).to.equal(isController === true ? 'u-1' : undefined);
    });
  }
});

describe('the VirtualMachine that controls a VMI', () => {
  for (const { name, owners, isController } of FORGED_OWNERS) {
    const vmOwners = owners.map((owner) => ({
      ...owner,
      kind: owner.kind.replace('VirtualMachineInstance', 'VirtualMachine'),
    }));
    // rows about the kind itself say nothing about a VM
    if (vmOwners.some(({ kind }, index) => kind === owners[index]!.kind && index === 0)) continue;
    it(`is ${isController === true ? 'found' : 'not found'} for ${name}`, () => {
      const vmi = { metadata: { name: 'vm1', ownerReferences: vmOwners } };
      expect(controllingVm(vmi)?.uid).to.equal(isController === true ? 'u-1' : undefined);
    });
  }
});

describe('staticUidOf', () => {
  it('reads the UID of the static pod from its mirror pod', () => {
    expect(staticPodUidOf(mirrorPod('u'))).to.equal(STATIC_UID);
  });

  const rows: { name: string; given: MirrorPodOptions }[] = [
    { name: 'another controller', given: { controller: { kind: 'VirtualMachineInstance' } } },
    { name: 'a node of another API group', given: { controller: { apiVersion: 'example.com/v1' } } },
    { name: 'another node', given: { controller: { name: 'n2' } } },
    { name: 'an owner that is no controller', given: { controller: { controller: false } } },
    { name: 'an empty UID', given: { mirrored: '' } },
    { name: 'a UID that is too long', given: { mirrored: 'x'.repeat(65) } },
  ];
  for (const { name, given } of rows) {
    it(`finds no static pod in a pod with ${name}`, () => {
      expect(staticPodUidOf(mirrorPod('u', given))).to.equal(undefined);
    });
  }
});

describe('hasUid', () => {
  it('accepts the UID of the pod and that of its static pod, and no other', () => {
    const pod = mirrorPod('u');
    expect(['u', STATIC_UID, 'other', ''].map((uid) => hasUid(pod, uid))).to.deep.equal([true, true, false, false]);
  });
});

describe('the network-status annotation', () => {
  const cases = [
    { name: 'is absent: nothing is attached', given: undefined, expect: [] },
    { name: 'is broken: nothing is known', given: '[{', expect: [] },
    { name: 'is no list: nothing is known', given: '{}', expect: [] },
    {
      name: 'is longer than any that Multus writes: nothing is known',
      given: `[{"name":"vms/blue"}]${' '.repeat(64 * 1024)}`,
      expect: [],
    },
    {
      name: 'holds odd entries: they are left out',
      given:
        '[null, 3, {"interface":"eth0"}, {"name":"vms/blue","interface":7}, {"name":"vms/blue","interface":"net1"}]',
      expect: [{ name: 'vms/blue', interface: 'net1' }],
    },
  ];
  for (const { name, given, expect: expected } of cases) {
    it(name, () => {
      const annotations = given === undefined ? {} : { [NETWORK_STATUS_ANNOTATION]: given };
      expect(networkStatuses({ metadata: { name: 'p', annotations } })).to.deep.equal(expected);
    });
  }

  it('is read as Multus writes it: also two interfaces of one NAD, and one without a name', () => {
    // SetNetworkStatus and CreateNetworkStatuses of network-attachment-definition-client v1.7.6, pkg/utils/net-attach-def.go
    const entries = [
      {
        name: 'cbr0',
        interface: 'eth0',
        ips: ['10.244.1.7'],
        mac: '02:00:00:00:00:01',
        default: true,
        dns: {},
        gateway: ['10.244.1.1'],
      },
      {
        name: 'vms/blue',
        interface: 'net1',
        ips: ['10.0.0.5', 'fd00::5'],
        mac: '02:00:00:00:00:02',
        mtu: 9000,
        dns: {},
      },
      { name: 'vms/pair', interface: 'net2', mac: '02:00:00:00:00:03', dns: {} },
      { name: 'vms/pair', interface: 'net2-b', ips: ['10.0.1.5'], mac: '02:00:00:00:00:04', dns: {} },
      { name: 'vms/userspace', dns: {}, 'device-info': { type: 'vhost-user', version: '1.1.0' } },
    ];
    const text = `[${entries.map((entry) => JSON.stringify(entry, null, 4)).join(',')}]`;
    const found = networkStatuses({ metadata: { name: 'p', annotations: { [NETWORK_STATUS_ANNOTATION]: text } } });
    expect(found.map((each) => [each.name, each.interface, reportedIPsOf(each)])).to.deep.equal([
      ['cbr0', 'eth0', ['10.244.1.7']],
      ['vms/blue', 'net1', ['10.0.0.5', 'fd00::5']],
      ['vms/pair', 'net2', []],
      ['vms/pair', 'net2-b', ['10.0.1.5']],
      ['vms/userspace', undefined, []],
    ]);
  });
});

describe('the names of pod interfaces', () => {
  const cases = [
    { given: 'data', expect: 'pod3a6eb0790f3' },
    { given: 'one', expect: 'pod7692c3ad354' },
    { given: 'Data_Net', expect: 'pod8b5bf689ad3' },
  ];
  for (const { given, expect: expected } of cases) {
    it(`are those that KubeVirt generates: ${given} → ${expected}`, () => {
      expect(podInterfaceName(given)).to.equal(expected);
    });
  }

  it('fit into the 15 characters of a Linux interface name', () => {
    expect(podInterfaceName('n'.repeat(300))).to.have.length(14);
  });

  it('are ordinal, counted from 1, in old pods', () => {
    expect(ordinalInterfaceName(2)).to.equal('net2');
  });
});
