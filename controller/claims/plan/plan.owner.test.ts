import { expect } from 'chai';
import { swappedClaimName } from '../../../api/ipam-claim.js';
import { DEFAULT_NETWORK_ANNOTATION } from '../../../api/names.js';
import {
  claim,
  claimOfIpamExtensions,
  launcher,
  vm,
  vmReference,
  vmi,
  vmiReference,
} from '../../../test/objects/workload-objects.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';
import { observationOf } from '../testing/workload-observation.js';
import { plan } from './plan.js';

const SWAPPED = swappedClaimName('vm1', 'data', 'blue-net');
const running = launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] });
const ended = launcher([{ nad: 'blue', claim: 'vm1.data' }], { phase: 'Succeeded', status: [{ nad: 'blue' }] });

/** Anybody with a service account named kubevirt-controller may create one. */
const bare = { ...running, metadata: { ...running.metadata, annotations: {} } };
/** Its VMI was deleted with orphan propagation. */
const ownerless = { ...running, metadata: { ...running.metadata, ownerReferences: [] } };
const onDefault = { ...bare, metadata: { ...bare.metadata, annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'blue' } } };

describe('the plan', () => {
  describe('for a VM that is being deleted', () => {
    const deleting = vm({ data: 'blue' }, { deleting: true });
    itPlansClaims([
      {
        name: 'keeps the claim while the VMI exists',
        given: { vm: deleting, vmi: vmi({ data: 'blue' }, { deleting: true }), launchers: [ended], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim that the garbage collector deletes in a foreground deletion',
        given: { vm: deleting, vmi: vmi({ data: 'blue' }), launchers: [running], claims: [claim({ deleting: true })] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim while a launcher exists whose VMI is gone',
        given: { vm: deleting, launchers: [running], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'releases the claim if the only launcher has no networks and so no address',
        given: { vm: deleting, launchers: [bare], claims: [claim()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'keeps the claim while a launcher exists that has only a default network',
        given: { vm: deleting, launchers: [onDefault], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'releases the claim once VMI and launchers are gone or terminal',
        given: { vm: deleting, launchers: [ended], claims: [claim()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'keeps the claim while the garbage collector orphans the dependents of the VM',
        given: { vm: vm({ data: 'blue' }, { deleting: true, finalizers: ['orphan'] }), claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim for an orphaned VMI whose launcher uses it, and lets the VMI wait',
        given: { vm: deleting, vmi: vmi({ data: 'blue' }, { vm: null }), launchers: [running], claims: [claim()] },
        expect: ['wait for vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vmi'],
      },
    ]);
  });

  describe('for a VM that is gone', () => {
    const orphan = claim({ owner: null, recordedOwner: { name: 'vm1', uid: 'vm-uid' } });
    itPlansClaims([
      { name: 'releases its claim', given: { claims: [claim()] }, expect: ['release vm1.data'] },
      {
        name: 'does not change a claim that names the VM but that Holdfast does not manage',
        given: { claims: [claimOfIpamExtensions({ finalizers: [] })] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'releases a claim that kubevirt/ipam-extensions created',
        given: { claims: [claimOfIpamExtensions()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'keeps the claim while a VMI of the VM exists',
        given: { vmi: vmi({ data: 'blue' }, { deleting: true }), claims: [claim({ deleting: true })] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim while a launcher exists',
        given: { launchers: [running], claims: [claim({ deleting: true })] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'assigns the claim to the orphaned VMI',
        given: { vmi: vmi({ data: 'blue' }, { vm: null }), launchers: [running], claims: [orphan] },
        expect: ['update vm1.data for vmi-uid: annotations ownerReferences'],
      },
      {
        name: 'assigns the claim to the orphaned VMI although the launcher refers to no claim',
        given: { vmi: vmi({ data: 'blue' }, { vm: null }), launchers: [launcher([{ nad: 'blue' }])], claims: [orphan] },
        expect: ['update vm1.data for vmi-uid: annotations ownerReferences'],
      },
      {
        name: 'assigns a claim that is being deleted to the orphaned VMI',
        given: { vmi: vmi({ data: 'blue' }, { vm: null }), launchers: [running], claims: [claim({ deleting: true })] },
        expect: ['update vm1.data for vmi-uid: annotations ownerReferences'],
      },
      {
        name: 'assigns the claim to the VM that adopted the VMI meanwhile',
        given: {
          vm: vm({ data: 'blue' }, { uid: 'new-uid' }),
          vmi: vmi({ data: 'blue' }, { vm: 'new-uid' }),
          launchers: [running],
          claims: [orphan],
        },
        expect: ['update vm1.data for new-uid: annotations ownerReferences'],
      },
      {
        name: 'assigns the claim to the orphaned VMI although no launcher uses it yet',
        given: { vmi: vmi({ data: 'blue' }, { vm: null }), claims: [orphan] },
        expect: ['update vm1.data for vmi-uid: annotations ownerReferences'],
      },
      {
        name: 'lets a new VM of that name wait until the claim is released',
        given: {
          vm: vm({ data: 'blue' }, { uid: 'new-uid' }),
          vmi: vmi({ data: 'blue' }, { vm: 'new-uid' }),
          launchers: [launcher([])],
          claims: [claim({ deleting: true })],
        },
        expect: ['release vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vm'],
      },
      {
        name: 'lets the orphaned VMI wait for the claim under any name',
        given: {
          vm: vm({ data: 'blue' }, { deleting: true }),
          vmi: vmi({ data: 'blue' }, { vm: null }),
          launchers: [launcher([{ nad: 'blue', claim: SWAPPED }])],
          claims: [claim({ name: SWAPPED })],
        },
        expect: [`wait for ${SWAPPED}`, `wait for ${SWAPPED}, IPAMClaimOfPredecessor on vmi`],
      },
      {
        name: 'lets the new VM wait while a launcher of the old one exists',
        given: {
          vm: vm({ data: 'blue' }, { uid: 'new-uid' }),
          launchers: [running],
          claims: [claim({ deleting: true })],
        },
        expect: ['wait for vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vm'],
      },
      {
        name: 'keeps the claim while the VMI runs because the VM may not be observed yet',
        given: { vmi: vmi({ data: 'blue' }), claims: [claim()] },
        expect: ['keep vm1.data'],
      },
    ]);
  });

  describe('for a VMI whose owner reference has its own name and the UID of another VM', () => {
    const other = vm({ data: 'blue' }, { name: 'vm2', uid: 'vm2-uid' });
    const forged = vmi({ data: 'blue' }, { vm: 'vm2-uid' });
    const theirs = claim({ name: 'vm2.data', owner: vmReference('vm2-uid', 'vm2') });
    itPlansClaims([
      {
        name: 'creates no claim with that UID',
        given: { otherVms: [other], vmi: forged, claims: [theirs] },
        expect: ['create vm1.data for vmi-uid'],
      },
      {
        name: 'does not assign it the claim to which its launcher refers',
        given: {
          otherVms: [other],
          vmi: forged,
          launchers: [launcher([{ nad: 'blue', claim: 'vm2.data' }])],
          claims: [theirs],
        },
        expect: ['create vm1.data for vmi-uid'],
      },
      {
        name: 'refuses it the claim that the other VM has under the same name',
        given: { otherVms: [other], vmi: forged, claims: [claim({ owner: vmReference('vm2-uid', 'vm2') })] },
        expect: ['refuse IPAMClaimConflict on vmi'],
      },
      {
        name: 'does not keep a claim of this name because of the other VM’s UID',
        given: { otherVms: [other], vmi: forged, claims: [claim({ owner: vmReference('vm2-uid') })] },
        expect: ['release vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vmi'],
      },
      {
        name: 'does not change the claims of the other VM if that VM is not observed',
        given: { vmi: forged, claims: [theirs, claim({ owner: vmReference('vm2-uid', 'vm2') })] },
        expect: ['refuse IPAMClaimConflict on vmi'],
      },
    ]);
  });

  it('restores the owner reference of a claim to the VMI that owned it', () => {
    const orphan = claim({ owner: null, recordedOwner: { name: 'vm1', uid: 'vmi-uid' } });
    const [action] = plan(observationOf({ vmi: vmi({ data: 'blue' }, { vm: null }), claims: [orphan] }));
    expect(action).to.have.property('kind', 'update');
    expect(action)
      .to.have.nested.property('set.ownerReferences')
      .deep.equal([vmiReference('vmi-uid')]);
  });

  describe('for a VMI', () => {
    const own = claim({ owner: vmiReference('vmi-uid') });
    itPlansClaims([
      {
        name: 'keeps the claim of a standalone VMI that is being deleted',
        given: { vmi: vmi({ data: 'blue' }, { vm: null, deleting: true }), claims: [own] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim of a deleted standalone VMI while a launcher exists',
        given: { launchers: [running], claims: [own] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim while a launcher without an owner refers to it, and lets a new VMI of that name wait',
        given: {
          vmi: vmi({ data: 'blue' }, { vm: null, uid: 'new-uid' }),
          launchers: [ownerless, launcher([{ nad: 'blue' }], { name: 'virt-launcher-vm1-new', vmi: 'new-uid' })],
          claims: [claim({ owner: null, recordedOwner: { name: 'vm1', uid: 'vmi-uid' } })],
        },
        expect: ['wait for vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vmi'],
      },
      {
        name: 'releases the claim of a VMI that is gone',
        given: { launchers: [ended], claims: [own] },
        expect: ['release vm1.data'],
      },
      {
        name: 'assigns the claim to the VM that adopts the VMI',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }), claims: [own] },
        expect: ['update vm1.data for vm-uid: annotations ownerReferences'],
      },
      {
        name: 'assigns the claim to the VM that adopted a VMI which is being deleted',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }, { deleting: true }), claims: [own] },
        expect: ['update vm1.data for vm-uid: annotations ownerReferences'],
      },
      {
        name: 'assigns the claim to the VM of a VMI that is not observed yet',
        given: { vmi: vmi({ data: 'blue' }), claims: [own] },
        expect: ['update vm1.data for vm-uid: annotations ownerReferences'],
      },
      {
        name: 'keeps the claim until the VMI of a deleted VM is gone',
        given: { vm: vm({}, { deleting: true }), vmi: vmi({ data: 'blue' }, { deleting: true }), claims: [own] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim of a VMI that a VM has not adopted yet, and lets the VM wait',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }, { vm: null }), claims: [own] },
        expect: ['keep vm1.data', 'wait for vm1.data'],
      },
      {
        name: 'keeps the claim under any name if a VM has not adopted the VMI yet, and lets the VM wait',
        given: {
          vm: vm({ data: 'blue' }),
          vmi: vmi({ data: 'blue' }, { vm: null }),
          claims: [claim({ name: SWAPPED, owner: vmiReference('vmi-uid') })],
        },
        expect: [`keep ${SWAPPED}`, `wait for ${SWAPPED}`],
      },
      {
        name: 'creates the claim of a VMI before that of the VM that has not adopted it yet',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }, { vm: null }) },
        expect: ['create vm1.data for vmi-uid', 'wait for vm1.data'],
      },
      {
        name: 'gives no claim of a stopped VM to a VMI that only has its name',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }, { vm: null }), claims: [claim()] },
        expect: ['keep vm1.data', 'refuse IPAMClaimConflict on vmi'],
      },
      {
        name: 'keeps the claim of a replica set’s VMI, and reports it to the VM of that name',
        given: {
          vm: vm({ data: 'blue' }),
          vmi: vmi(
            { data: 'blue' },
            { controller: { ...vmiReference('x'), kind: 'VirtualMachineInstanceReplicaSet' } },
          ),
          claims: [own],
        },
        expect: ['keep vm1.data', 'refuse IPAMClaimConflict on vm'],
      },
    ]);
  });
});
