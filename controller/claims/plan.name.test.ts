import { expect } from 'chai';
import { claimName } from '../../api/ipam-claim.js';
import { claim, claimOfIpamExtensions, launcher, vm, vmReference, vmi } from '../../test/workload-objects.js';
import { observationOf } from './testing/workload-observation.js';
import { itPlansClaims } from './testing/claim-plan-cases.js';
import { plan } from './plan.js';

const running = launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] });

describe('plan', () => {
  describe('for a claim of the wanted name that is not the owner’s', () => {
    itPlansClaims([
      {
        name: 'refuses one of a VM of another name',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ owner: vmReference('u2', 'vm2') })] },
        expect: ['refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'refuses one of an object that is no VM',
        given: {
          vm: vm({ data: 'blue' }),
          claims: [claim({ owner: { ...vmReference('u2'), apiVersion: 'v1', kind: 'ConfigMap' } })],
        },
        expect: ['refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'lets a claim in the way not stop the other interfaces',
        given: { vm: vm({ data: 'blue', extra: 'blue' }), claims: [claim({ owner: vmReference('u2', 'vm2') })] },
        expect: ['refuse IPAMClaimConflict on vm', 'create vm1.extra for vm-uid'],
      },
      {
        name: 'adopts one of nobody on the same network',
        given: {
          vm: vm({ data: 'blue' }),
          claims: [claim({ owner: null, vmNetwork: null, nad: null, label: null, finalizers: [] })],
        },
        expect: ['update vm1.data for vm-uid: annotations finalizers labels ownerReferences'],
      },
      {
        name: 'refuses one of nobody on another network',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ owner: null, network: 'red-net', finalizers: [] })] },
        expect: ['refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'refuses one of nobody that is being deleted and held by others',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ owner: null, deleting: true, finalizers: ['other'] })] },
        expect: ['refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'lets one of nobody go that was deleted and has our finalizer',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ owner: null, deleting: true })] },
        expect: ['release vm1.data', 'refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'holds one of nobody that was deleted while a launcher uses it',
        given: {
          vmi: vmi({ data: 'blue' }, { vm: null }),
          launchers: [running],
          claims: [claim({ owner: null, deleting: true })],
        },
        expect: ['wait for vm1.data', 'refuse IPAMClaimConflict on vmi'],
      },
      {
        name: 'lets one of nobody go although nothing wants its name',
        given: { claims: [claim({ owner: null, deleting: true, vmNetwork: null, nad: null })] },
        expect: ['release vm1.data'],
      },
      {
        name: 'waits for an earlier claim of the owner itself',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ vmNetwork: 'other' })] },
        expect: ['release vm1.data', 'wait for vm1.data'],
      },
      {
        name: 'keeps one of two claims of one interface, and releases the other',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ name: 'vm1.data-copy' }), claim()] },
        expect: ['release vm1.data-copy', 'keep vm1.data'],
      },
    ]);

    it('says whose it is and what to do', () => {
      const given = { vm: vm({ data: 'blue' }), claims: [claim({ owner: vmReference('u2', 'vm2') })] };
      const [action] = plan(observationOf(given));
      expect(action).to.deep.include({ kind: 'refuse', blockedBy: 'vm1.data' });
      expect(action?.reason).to.equal(
        'IPAMClaim vms/vm1.data belongs to VirtualMachine vm2; delete it or rename the interface "data": ' +
          'the VM cannot have persistent addresses on network "blue-net" until it is gone',
      );
    });

    it('says of which network an ownerless one is', () => {
      const given = { vm: vm({ data: 'blue' }), claims: [claim({ owner: null, network: 'red-net' })] };
      expect(plan(observationOf(given))[0]?.reason).to.include(
        'belongs to nobody and is for network "red-net"; delete it',
      );
    });
  });

  describe('for claims of kubevirt/ipam-extensions whose names do not tell one network', () => {
    const shared = claimOfIpamExtensions({ name: 'vm1.net.1' });
    const adopted = 'update vm1.net.1 for vm-uid: annotations interface';
    itPlansClaims([
      {
        name: 'adopts one under its name',
        given: { vm: vm({ net_1: 'blue' }), claims: [shared] },
        expect: [adopted],
      },
      {
        name: 'adopts one for the first of several networks, and creates one for the other',
        given: { vm: vm({ Net_1: 'blue', net_1: 'blue' }), claims: [shared] },
        expect: [adopted, `create ${claimName('vm1', 'net_1')} for vm-uid`],
      },
      {
        name: 'adopts one for the network that is on its CNI network',
        given: { vm: vm({ Net_1: 'green', net_1: 'blue' }), claims: [shared] },
        expect: [adopted, `create ${claimName('vm1', 'Net_1')} for vm-uid`],
      },
      {
        name: 'adopts one for the network of its exact name',
        given: { vm: vm({ Data: 'blue', data: 'blue' }), claims: [claimOfIpamExtensions()] },
        expect: ['update vm1.data for vm-uid: annotations interface', `create ${claimName('vm1', 'Data')} for vm-uid`],
      },
    ]);
  });
});
