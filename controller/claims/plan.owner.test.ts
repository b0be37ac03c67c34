import { expect } from 'chai';
import { swappedClaimName } from '../../api/ipam-claim.js';
import { DEFAULT_NETWORK_ANNOTATION } from '../../api/names.js';
import {
  claim,
  claimOfIpamExtensions,
  launcher,
  vm,
  vmReference,
  vmi,
  vmiReference,
} from '../../test/workload-objects.js';
import { itPlansClaims } from './testing/claim-plan-cases.js';
import { observationOf } from './testing/workload-observation.js';
import { plan } from './plan.js';

const SWAPPED = swappedClaimName('vm1', 'data', 'blue-net');
const running = launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] });
const ended = launcher([{ nad: 'blue', claim: 'vm1.data' }], { phase: 'Succeeded', status: [{ nad: 'blue' }] });

/** Anybody with a service account named kubevirt-controller may create one. */
const bare = { ...running, metadata: { ...running.metadata, annotations: {} } };
const onDefault = { ...bare, metadata: { ...bare.metadata, annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'blue' } } };

describe('plan', () => {
  describe('for a VM that is being deleted', () => {
    const deleting = vm({ data: 'blue' }, { deleting: true });
    itPlansClaims([
      {
        name: 'holds the claim while the VMI is there',
        given: { vm: deleting, vmi: vmi({ data: 'blue' }, { deleting: true }), launchers: [ended], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'holds the claim that the garbage collector deletes in a foreground deletion',
        given: { vm: deleting, vmi: vmi({ data: 'blue' }), launchers: [running], claims: [claim({ deleting: true })] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'holds the claim while a launcher is there whose VMI is gone',
        given: { vm: deleting, launchers: [running], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'releases the claim while a pod without networks says that it is a launcher, because it has no address',
        given: { vm: deleting, launchers: [bare], claims: [claim()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'holds the claim while a launcher is there that has a default network alone',
        given: { vm: deleting, launchers: [onDefault], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'releases the claim once VMI and launchers are gone or ended',
        given: { vm: deleting, launchers: [ended], claims: [claim()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'holds the claim while the garbage collector orphans what the VM owns',
        given: { vm: vm({ data: 'blue' }, { deleting: true, finalizers: ['orphan'] }), claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'holds the claim for an orphaned VMI whose launcher uses it, and lets the VMI wait',
        given: {
          vm: deleting,
          vmi: vmi({ data: 'blue' }, { vm: null }),
          launchers: [running],
          claims: [claim()],
        },
        expect: ['wait for vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vmi'],
      },
    ]);
  });

  describe('for a VM that is gone', () => {
    const stripped = claim({ owner: null, recordedOwner: { name: 'vm1', uid: 'vm-uid' } });
    itPlansClaims([
      { name: 'releases its claim', given: { claims: [claim()] }, expect: ['release vm1.data'] },
      {
        name: 'does not touch a claim that names it, but is not ours',
        given: { claims: [claimOfIpamExtensions({ finalizers: [] })] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'releases a claim that kubevirt/ipam-extensions made for it',
        given: { claims: [claimOfIpamExtensions()] },
        expect: ['release vm1.data'],
      },
      { name: 'releases a claim that only remembers it', given: { claims: [stripped] }, expect: ['release vm1.data'] },
      {
        name: 'holds its claim while a VMI of it is there',
        given: { vmi: vmi({ data: 'blue' }, { deleting: true }), claims: [claim({ deleting: true })] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'holds its claim while a launcher is there',
        given: { launchers: [running], claims: [claim({ deleting: true })] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'hands its claim to the VMI it left behind',
        given: { vmi: vmi({ data: 'blue' }, { vm: null }), launchers: [running], claims: [stripped] },
        expect: ['update vm1.data for vmi-uid: annotations ownerReferences'],
      },
      {
        name: 'hands its claim to the VMI it left behind, though the launcher names no claim',
        given: {
          vmi: vmi({ data: 'blue' }, { vm: null }),
          launchers: [launcher([{ nad: 'blue' }])],
          claims: [stripped],
        },
        expect: ['update vm1.data for vmi-uid: annotations ownerReferences'],
      },
      {
        name: 'hands a claim that is being deleted to the VMI left behind, too',
        given: {
          vmi: vmi({ data: 'blue' }, { vm: null }),
          launchers: [running],
          claims: [claim({ deleting: true })],
        },
        expect: ['update vm1.data for vmi-uid: annotations ownerReferences'],
      },
      {
        name: 'hands its claim to the VM that adopted the VMI meanwhile',
        given: {
          vm: vm({ data: 'blue' }, { uid: 'new-uid' }),
          vmi: vmi({ data: 'blue' }, { vm: 'new-uid' }),
          launchers: [running],
          claims: [stripped],
        },
        expect: ['update vm1.data for new-uid: annotations ownerReferences'],
      },
      {
        name: 'does not hand its claim to a VMI that does not use it',
        given: { vmi: vmi({ data: 'blue' }, { vm: null }), claims: [stripped] },
        expect: ['release vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vmi'],
      },
      {
        name: 'lets a new VM of that name wait for the claim, not the claim for the new VM',
        given: {
          vm: vm({ data: 'blue' }, { uid: 'new-uid' }),
          vmi: vmi({ data: 'blue' }, { vm: 'new-uid' }),
          launchers: [launcher([])],
          claims: [claim({ deleting: true })],
        },
        expect: ['release vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vm'],
      },
      {
        name: 'lets the VMI it left behind wait for its claim, whatever the name of that',
        given: {
          vm: vm({ data: 'blue' }, { deleting: true }),
          vmi: vmi({ data: 'blue' }, { vm: null }),
          launchers: [launcher([{ nad: 'blue', claim: SWAPPED }])],
          claims: [claim({ name: SWAPPED })],
        },
        expect: [`wait for ${SWAPPED}`, `wait for ${SWAPPED}, IPAMClaimOfPredecessor on vmi`],
      },
      {
        name: 'lets the new VM wait while a launcher of the old one is left',
        given: {
          vm: vm({ data: 'blue' }, { uid: 'new-uid' }),
          launchers: [running],
          claims: [claim({ deleting: true })],
        },
        expect: ['wait for vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vm'],
      },
      {
        name: 'keeps its claim while its VMI runs, since the VM may only not be seen yet',
        given: { vmi: vmi({ data: 'blue' }), claims: [claim()] },
        expect: ['keep vm1.data'],
      },
    ]);
  });

  describe('for a VMI that says it belongs to a VM of its own name, but has the UID of another', () => {
    const other = vm({ data: 'blue' }, { name: 'vm2', uid: 'vm2-uid' });
    const forged = vmi({ data: 'blue' }, { vm: 'vm2-uid' });
    const theirs = claim({ name: 'vm2.data', owner: vmReference('vm2-uid', 'vm2') });
    itPlansClaims([
      {
        name: 'makes no claim with that UID',
        given: { otherVms: [other], vmi: forged, claims: [theirs] },
        expect: ['create vm1.data for vmi-uid'],
      },
      {
        name: 'does not hand it the claim that a launcher of it refers to',
        given: {
          otherVms: [other],
          vmi: forged,
          launchers: [launcher([{ nad: 'blue', claim: 'vm2.data' }])],
          claims: [theirs],
        },
        expect: ['create vm1.data for vmi-uid'],
      },
      {
        name: 'refuses it the claim that the other VM has under its name',
        given: { otherVms: [other], vmi: forged, claims: [claim({ owner: vmReference('vm2-uid', 'vm2') })] },
        expect: ['refuse IPAMClaimConflict on vmi'],
      },
      {
        name: 'does not let the other VM’s UID hold a claim of this name',
        given: { otherVms: [other], vmi: forged, claims: [claim({ owner: vmReference('vm2-uid') })] },
        expect: ['release vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vmi'],
      },
      {
        name: 'does not touch the other VM’s claims where that VM is not seen',
        given: { vmi: forged, claims: [theirs, claim({ owner: vmReference('vm2-uid', 'vm2') })] },
        expect: ['refuse IPAMClaimConflict on vmi'],
      },
    ]);
  });

  it('gives a claim that has lost its reference back to the VMI that owned it', () => {
    const stripped = claim({ owner: null, recordedOwner: { name: 'vm1', uid: 'vmi-uid' } });
    const [action] = plan(observationOf({ vmi: vmi({ data: 'blue' }, { vm: null }), claims: [stripped] }));
    expect(action).to.have.property('kind', 'update');
    expect(action)
      .to.have.nested.property('set.ownerReferences')
      .deep.equal([vmiReference('vmi-uid')]);
  });

  describe('for a VMI', () => {
    const own = claim({ owner: vmiReference('vmi-uid') });
    itPlansClaims([
      {
        name: 'without a VM holds the claim while it is being deleted',
        given: { vmi: vmi({ data: 'blue' }, { vm: null, deleting: true }), claims: [own] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'without a VM holds the claim after it while a launcher is left',
        given: { launchers: [running], claims: [own] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'that is gone releases the claim',
        given: { launchers: [ended], claims: [own] },
        expect: ['release vm1.data'],
      },
      {
        name: 'that a VM adopts hands it the claim',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }), claims: [own] },
        expect: ['update vm1.data for vm-uid: annotations ownerReferences'],
      },
      {
        name: 'that a VM adopted hands it the claim even while it is being deleted',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }, { deleting: true }), claims: [own] },
        expect: ['update vm1.data for vm-uid: annotations ownerReferences'],
      },
      {
        name: 'that turns out to have a VM which is not seen yet hands it the claim',
        given: { vmi: vmi({ data: 'blue' }), claims: [own] },
        expect: ['update vm1.data for vm-uid: annotations ownerReferences'],
      },
      {
        name: 'whose VM is being deleted, too, keeps the claim until it is gone',
        given: { vm: vm({}, { deleting: true }), vmi: vmi({ data: 'blue' }, { deleting: true }), claims: [own] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'that a VM has yet to adopt keeps the claim, and the VM waits',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }, { vm: null }), claims: [own] },
        expect: ['keep vm1.data', 'wait for vm1.data'],
      },
      {
        name: 'that a VM has yet to adopt keeps the claim, whatever its name, and the VM waits',
        given: {
          vm: vm({ data: 'blue' }),
          vmi: vmi({ data: 'blue' }, { vm: null }),
          claims: [claim({ name: SWAPPED, owner: vmiReference('vmi-uid') })],
        },
        expect: [`keep ${SWAPPED}`, `wait for ${SWAPPED}`],
      },
      {
        name: 'is served before the VM that has yet to adopt it',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }, { vm: null }) },
        expect: ['create vm1.data for vmi-uid', 'wait for vm1.data'],
      },
      {
        name: 'which merely has the name of a stopped VM does not get its claim',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }, { vm: null }), claims: [claim()] },
        expect: ['keep vm1.data', 'refuse IPAMClaimConflict on vmi'],
      },
      {
        name: 'of a replica set that has the claim keeps it, and the VM of that name hears of it',
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
