import { expect } from 'chai';
import { FORGED_OWNERS } from '../test/forged-owners.js';
import { type MirrorPodOptions, STATIC_UID, mirrorPod } from '../test/mirror-pod.js';
import { controllingVm } from './kubevirt.js';
import { controllingVmi, hasUid, staticPodUidOf } from './pod.js';

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
