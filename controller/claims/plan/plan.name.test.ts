import { expect } from 'chai';
import { claimName } from '../../../api/ipam-claim.js';
import {
  claim,
  claimOfIpamExtensions,
  launcher,
  vm,
  vmReference,
  vmi,
} from '../../../test/objects/workload-objects.js';
import { observationOf } from '../testing/workload-observation.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';
import { plan } from './plan.js';

const running = launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] });

describe('the plan', () => {
  describe('for an existing claim of the needed name that the owner does not own', () => {
    itPlansClaims([
      {
        name: 'refuses a claim of a VM of another name',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ owner: vmReference('u2', 'vm2') })] },
        expect: ['refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'refuses a claim of an object that is not a VM',
        given: {
          vm: vm({ data: 'blue' }),
          claims: [claim({ owner: { ...vmReference('u2'), apiVersion: 'v1', kind: 'ConfigMap' } })],
        },
        expect: ['refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'creates the claims of the other interfaces',
        given: { vm: vm({ data: 'blue', extra: 'blue' }), claims: [claim({ owner: vmReference('u2', 'vm2') })] },
        expect: ['refuse IPAMClaimConflict on vm', 'create vm1.extra for vm-uid'],
      },
      {
        name: 'adopts a claim without an owner on the same network',
        given: {
          vm: vm({ data: 'blue' }),
          claims: [claim({ owner: null, vmNetwork: null, nad: null, label: null, finalizers: [] })],
        },
        expect: ['update vm1.data for vm-uid: annotations finalizers labels ownerReferences'],
      },
      {
        name: 'refuses a claim without an owner on another network',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ owner: null, network: 'red-net', finalizers: [] })] },
        expect: ['refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'refuses a claim without an owner that finalizers of others hold',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ owner: null, deleting: true, finalizers: ['other'] })] },
        expect: ['refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'releases a deleted claim without an owner that has our finalizer',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ owner: null, deleting: true })] },
        expect: ['release vm1.data', 'refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'keeps a deleted claim without an owner while a launcher uses it',
        given: {
          vmi: vmi({ data: 'blue' }, { vm: null }),
          launchers: [running],
          claims: [claim({ owner: null, deleting: true })],
        },
        expect: ['wait for vm1.data', 'refuse IPAMClaimConflict on vmi'],
      },
      {
        name: 'releases a deleted claim without an owner although nothing needs its name',
        given: { claims: [claim({ owner: null, deleting: true, vmNetwork: null, nad: null })] },
        expect: ['release vm1.data'],
      },
      {
        name: 'waits for an earlier claim of the same owner',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ vmNetwork: 'other' })] },
        expect: ['release vm1.data', 'wait for vm1.data'],
      },
      {
        name: 'keeps one of two claims of one interface and releases the other',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ name: 'vm1.data-copy' }), claim()] },
        expect: ['release vm1.data-copy', 'keep vm1.data'],
      },
    ]);

    it('names the owner of the claim and says what to do', () => {
      const given = { vm: vm({ data: 'blue' }), claims: [claim({ owner: vmReference('u2', 'vm2') })] };
      const [action] = plan(observationOf(given));
      expect(action).to.deep.include({ kind: 'refuse', blockedBy: 'vm1.data' });
      expect(action?.reason).to.equal(
        'IPAMClaim vms/vm1.data belongs to VirtualMachine vm2; delete it, or rename interface "data": ' +
          'the VM gets no persistent addresses on network "blue-net" while that claim exists',
      );
    });

    it('names the network of a claim without an owner', () => {
      const given = { vm: vm({ data: 'blue' }), claims: [claim({ owner: null, network: 'red-net' })] };
      expect(plan(observationOf(given))[0]?.reason).to.include('has no owner and is for network "red-net"; delete it');
    });
  });

  describe('for claims of kubevirt/ipam-extensions whose names fit several networks', () => {
    const shared = claimOfIpamExtensions({ name: 'vm1.net.1' });
    const adopted = 'update vm1.net.1 for vm-uid: annotations interface';
    itPlansClaims([
      { name: 'adopts a claim of its name', given: { vm: vm({ net_1: 'blue' }), claims: [shared] }, expect: [adopted] },
      {
        name: 'adopts a claim for the first of several networks and creates one for the other',
        given: { vm: vm({ Net_1: 'blue', net_1: 'blue' }), claims: [shared] },
        expect: [adopted, `create ${claimName('vm1', 'net_1')} for vm-uid`],
      },
      {
        name: 'adopts a claim for the interface on its CNI network',
        given: { vm: vm({ Net_1: 'green', net_1: 'blue' }), claims: [shared] },
        expect: [adopted, `create ${claimName('vm1', 'Net_1')} for vm-uid`],
      },
      {
        name: 'adopts a claim for the network of its exact name',
        given: { vm: vm({ Data: 'blue', data: 'blue' }), claims: [claimOfIpamExtensions()] },
        expect: ['update vm1.data for vm-uid: annotations interface', `create ${claimName('vm1', 'Data')} for vm-uid`],
      },
    ]);
  });
});
