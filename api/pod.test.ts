import { expect } from 'chai';
import { FORGED_OWNERS } from '../test/forged-owners.js';
import { controllingVm } from './kubevirt.js';
import { controllingVmi } from './pod.js';

describe('the VirtualMachineInstance that controls a pod', () => {
  for (const { name, owners, controls } of FORGED_OWNERS) {
    it(`is ${controls === true ? 'found' : 'not found'} for ${name}`, () => {
      const pod = { metadata: { name: 'p', ownerReferences: [...owners] } };
      expect(controllingVmi(pod)?.uid).to.equal(controls === true ? 'u-1' : undefined);
    });
  }
});

describe('the VirtualMachine that controls a VMI', () => {
  for (const { name, owners, controls } of FORGED_OWNERS) {
    const vmOwners = owners.map((owner) => ({
      ...owner,
      kind: owner.kind.replace('VirtualMachineInstance', 'VirtualMachine'),
    }));
    // rows about the kind itself say nothing about a VM
    if (vmOwners.some(({ kind }, index) => kind === owners[index]!.kind && index === 0)) continue;
    it(`is ${controls === true ? 'found' : 'not found'} for ${name}`, () => {
      const vmi = { metadata: { name: 'vm1', ownerReferences: vmOwners } };
      expect(controllingVm(vmi)?.uid).to.equal(controls === true ? 'u-1' : undefined);
    });
  }
});
