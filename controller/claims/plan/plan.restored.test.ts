import { type IPAMClaim, swappedClaimName } from '../../../api/ipam-claim.js';
import { CLAIM_RESTORED, VELERO_RESTORE_NAME } from '../../../api/names.js';
import { type WorkloadClaimOptions, claim, vm, vmReference, vmi } from '../../../test/objects/workload-objects.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';
import { FORMER, oldLauncher, restoredVm } from '../testing/restored-workload.js';
import { NOW } from '../testing/workload-observation.js';

const SWAPPED = swappedClaimName('vm1', 'data', 'blue-net');
const HOUR_AGO = '2026-01-01T11:00:00Z';

/** A claim as Velero restores it. */
function restored(options: WorkloadClaimOptions = {}) {
  return withLabel(orphaned(options), VELERO_RESTORE_NAME, 'nightly-1');
}

/** A claim of a stopped VM that was deleted with `--cascade=orphan`. */
function orphaned(options: WorkloadClaimOptions = {}) {
  return claim({ owner: null, recordedOwner: FORMER, created: NOW, ...options });
}

function withLabel(made: IPAMClaim, key: string, value: string): IPAMClaim {
  return { ...made, metadata: { ...made.metadata, labels: { ...made.metadata.labels, [key]: value } } };
}

/** A claim as another backup tool restores it. */
function marked(value: string): IPAMClaim {
  const made = orphaned();
  return {
    ...made,
    metadata: { ...made.metadata, annotations: { ...made.metadata.annotations, [CLAIM_RESTORED]: value } },
  };
}

/** A claim as a tool restores it that may not write Holdfast's fields. */
function stripped(options: WorkloadClaimOptions = {}) {
  return claim({ owner: null, vmNetwork: null, nad: null, label: null, finalizers: [], ...options });
}

const starting = vmi({ data: 'blue' }, { vm: 'new-uid', uid: 'new-vmi-uid' });

describe('the plan', () => {
  describe('for a restored claim', () => {
    itPlansClaims([
      {
        name: 'keeps it until its VM is restored',
        given: { claims: [restored()] },
        expect: ['wait for vm1.data, RestoredIPAMClaimWaiting on the claim'],
      },
      {
        name: 'keeps one that another tool marked as restored until its VM is restored',
        given: { claims: [marked('true')] },
        expect: ['wait for vm1.data, RestoredIPAMClaimWaiting on the claim'],
      },
      {
        name: 'releases one that another tool marked with another value',
        given: { claims: [marked('false')] },
        expect: ['release vm1.data'],
      },
      {
        name: 'keeps it while its namespace is being deleted, until it is deleted too',
        given: { claims: [restored()], isNamespaceDeleted: true },
        expect: ['wait for vm1.data, RestoredIPAMClaimWaiting on the claim'],
      },
      {
        name: 'releases it if no VM came for it in time',
        given: { claims: [restored({ created: HOUR_AGO })] },
        expect: ['release vm1.data, RestoredIPAMClaimReleased on the claim'],
      },
      {
        name: 'releases it at once if it may not wait',
        given: { claims: [restored()], restoreWaitMs: 0 },
        expect: ['release vm1.data, RestoredIPAMClaimReleased on the claim'],
      },
      {
        name: 'releases it if a user deletes it',
        given: { claims: [restored({ deleting: true })] },
        expect: ['release vm1.data'],
      },
      {
        name: 'gives it to the VM that was restored',
        given: { vm: restoredVm, claims: [restored()] },
        expect: ['update vm1.data for new-uid: annotations labels ownerReferences'],
      },
      {
        name: 'gives one without an owner to the VM of its name, and removes the record of the restore',
        given: { vm: restoredVm, claims: [restored({ recordedOwner: null })] },
        expect: ['update vm1.data for new-uid: annotations labels ownerReferences'],
      },
      {
        name: 'gives it to the VM although it waited too long',
        given: { vm: restoredVm, claims: [restored({ created: HOUR_AGO })] },
        expect: ['update vm1.data for new-uid: annotations labels ownerReferences'],
      },
      {
        name: 'gives it to the VM that is starting already',
        given: { vm: restoredVm, vmi: starting, claims: [restored()] },
        expect: ['update vm1.data for new-uid: annotations labels ownerReferences'],
      },
      {
        name: 'gives it to the VM under any name',
        given: { vm: restoredVm, claims: [restored({ name: SWAPPED })] },
        expect: [`update ${SWAPPED} for new-uid: annotations labels ownerReferences`],
      },
      {
        name: 'gives it to a VM in another namespace than that of its NAD',
        given: { vm: restoredVm, claims: [restored({ nad: 'former/blue' })] },
        expect: ['update vm1.data for new-uid: annotations labels ownerReferences'],
      },
      {
        name: 'gives one to each interface, and keeps those that the VM does not want',
        given: {
          vm: vm({ data: 'blue', extra: 'blue' }, { uid: 'new-uid' }),
          claims: [
            restored(),
            restored({ name: 'vm1.extra', vmNetwork: 'extra' }),
            restored({ name: 'vm1.gone', vmNetwork: 'gone' }),
          ],
        },
        expect: [
          'wait for vm1.gone, RestoredIPAMClaimWaiting on the claim',
          'update vm1.data for new-uid: annotations labels ownerReferences',
          'update vm1.extra for new-uid: annotations labels ownerReferences',
        ],
      },
      {
        name: 'gives the VM only one of two claims for one interface',
        given: { vm: restoredVm, claims: [restored(), restored({ name: SWAPPED })] },
        expect: [
          `wait for ${SWAPPED}, RestoredIPAMClaimWaiting on the claim`,
          'update vm1.data for new-uid: annotations labels ownerReferences',
        ],
      },
      {
        name: 'keeps it while the VM has a claim for the interface',
        given: { vm: restoredVm, claims: [claim({ owner: vmReference('new-uid') }), restored({ name: SWAPPED })] },
        expect: ['keep vm1.data', `wait for ${SWAPPED}, RestoredIPAMClaimWaiting on the claim`],
      },
      {
        name: 'replaces it if the interface of its name is on another network now',
        given: { vm: vm({ data: 'green' }, { uid: 'new-uid' }), claims: [restored()] },
        expect: ['release vm1.data, then create it, RestoredIPAMClaimReleased on vm'],
      },
      {
        name: 'keeps it for a VM whose NAD is not restored yet',
        given: { vm: restoredVm, nads: [], claims: [restored()] },
        expect: ['wait for vm1.data, RestoredIPAMClaimWaiting on the claim', 'refuse NetworkAttachmentNotFound on vm'],
      },
      {
        name: 'gives it to a standalone VMI of its name',
        given: { vmi: vmi({ data: 'blue' }, { vm: null }), claims: [restored()] },
        expect: ['update vm1.data for vmi-uid: annotations labels ownerReferences'],
      },
      {
        name: 'gives it only to the VMI if a VM has not adopted the VMI yet',
        given: { vm: restoredVm, vmi: vmi({ data: 'blue' }, { vm: null }), claims: [restored()] },
        expect: ['update vm1.data for vmi-uid: annotations labels ownerReferences', 'wait for vm1.data'],
      },
    ]);
  });

  describe('for a claim that was restored without Holdfast’s fields', () => {
    const adoption = 'annotations finalizers labels ownerReferences';
    itPlansClaims([
      {
        name: 'gives it to the VM although it has the name of a second claim, after a NAD swap',
        given: { vm: restoredVm, claims: [stripped({ name: SWAPPED })] },
        expect: [`update ${SWAPPED} for new-uid: ${adoption}`],
      },
      {
        name: 'gives the VM the second claim if the first is for the network before the swap',
        given: { vm: restoredVm, claims: [stripped({ network: 'green-net' }), stripped({ name: SWAPPED })] },
        expect: [`update ${SWAPPED} for new-uid: ${adoption}`],
      },
      {
        name: 'gives the VM the first claim if both are for its network',
        given: { vm: restoredVm, claims: [stripped(), stripped({ name: SWAPPED })] },
        expect: [`update vm1.data for new-uid: ${adoption}`],
      },
      {
        name: 'gives the VM no second claim that is being deleted',
        given: { vm: restoredVm, claims: [stripped({ name: SWAPPED, deleting: true, finalizers: ['other'] })] },
        expect: ['create vm1.data for new-uid'],
      },
    ]);
  });

  describe('for a claim that looks restored', () => {
    itPlansClaims([
      {
        name: 'releases the claim of a stopped VM that was deleted with orphan propagation',
        given: { claims: [orphaned()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'releases one with an empty label of Velero, which the policy does not refuse',
        given: { claims: [withLabel(orphaned(), VELERO_RESTORE_NAME, '')] },
        expect: ['release vm1.data'],
      },
      {
        name: 'gives the claim of a VM that was deleted with orphan propagation to a new VM of its name',
        given: { vm: restoredVm, claims: [orphaned()] },
        expect: ['update vm1.data for new-uid: annotations ownerReferences'],
      },
      {
        name: 'gives it to no VM while a launcher of an earlier VM runs',
        given: { vm: restoredVm, launchers: [oldLauncher], claims: [restored()] },
        expect: ['wait for vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vm'],
      },
      {
        name: 'does not release it while a launcher of an earlier VM runs',
        given: { launchers: [oldLauncher], claims: [restored({ created: HOUR_AGO })] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'gives it back to its owner if that lives',
        given: { vm: vm({ data: 'blue' }, { uid: FORMER.uid }), claims: [restored()] },
        expect: ['update vm1.data for former-uid: ownerReferences'],
      },
      {
        name: 'keeps it for its owner if only the VMI names that',
        given: { vm: restoredVm, vmi: vmi({ data: 'blue' }, { vm: FORMER.uid }), claims: [restored()] },
        expect: ['update vm1.data for former-uid: ownerReferences', 'refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'does not give it to another VM while its owner is being deleted',
        given: { vm: vm({ data: 'blue' }, { uid: FORMER.uid, deleting: true }), claims: [restored()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'does not change one that names a VM of another name',
        given: { vm: restoredVm, claims: [restored({ recordedOwner: { name: 'vm2', uid: 'vm2-uid' } })] },
        expect: ['refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'releases the claim of a VM that is gone while the claim still has its owner reference',
        given: { vm: restoredVm, claims: [claim({ owner: vmReference(FORMER.uid), created: NOW })] },
        expect: ['release vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vm'],
      },
    ]);
  });
});
