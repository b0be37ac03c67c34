import { expect } from 'chai';
import { swappedClaimName } from '../../api/ipam-claim.js';
import {
  type WorkloadClaimOptions,
  claim,
  launcher,
  vm,
  vmReference,
  vmi,
  vmiReference,
} from '../../test/workload-objects.js';
import { itPlansClaims } from './testing/claim-plan-cases.js';
import { NOW, observationOf } from './testing/workload-observation.js';
import { plan } from './plan.js';

const SWAPPED = swappedClaimName('vm1', 'data', 'blue-net');
const REQUESTED = 'ipam.holdfast.dev/requested-addresses';
const APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const FORMER = { name: 'vm1', uid: 'former-uid' };
const HOUR_AGO = '2026-01-01T11:00:00Z';

/** A claim as Velero restores it. */
function restored(options: WorkloadClaimOptions = {}) {
  return claim({ owner: null, recordedOwner: FORMER, created: NOW, ...options });
}

/** A claim as `kubectl apply` restores it. */
function applied(options: WorkloadClaimOptions = {}, copy: object = {}) {
  const made = claim({ owner: vmReference(FORMER.uid), created: NOW, ...options });
  const { annotations } = made.metadata;
  const saved = { metadata: { uid: 'saved-uid', annotations }, status: { ips: ['10.0.0.5/24'] }, ...copy };
  return { ...made, metadata: { ...made.metadata, annotations: { ...annotations, [APPLIED]: JSON.stringify(saved) } } };
}

const again = vm({ data: 'blue' }, { uid: 'new-uid' });
const starting = vmi({ data: 'blue' }, { vm: 'new-uid', uid: 'new-vmi-uid' });
const oldLauncher = launcher([{ nad: 'blue', claim: 'vm1.data' }], { vmi: 'former-vmi-uid' });

describe('the plan', () => {
  describe('for a restored claim', () => {
    itPlansClaims([
      {
        name: 'keeps it until its VM is restored',
        given: { claims: [restored()] },
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
        given: { vm: again, claims: [restored()] },
        expect: ['update vm1.data for new-uid: annotations ownerReferences'],
      },
      {
        name: 'gives it to the VM although it waited too long',
        given: { vm: again, claims: [restored({ created: HOUR_AGO })] },
        expect: ['update vm1.data for new-uid: annotations ownerReferences'],
      },
      {
        name: 'gives it to the VM that is starting already',
        given: { vm: again, vmi: starting, claims: [restored()] },
        expect: ['update vm1.data for new-uid: annotations ownerReferences'],
      },
      {
        name: 'gives it to the VM under any name',
        given: { vm: again, claims: [restored({ name: SWAPPED })] },
        expect: [`update ${SWAPPED} for new-uid: annotations ownerReferences`],
      },
      {
        name: 'gives it to a VM in another namespace than that of its NAD',
        given: { vm: again, claims: [restored({ nad: 'former/blue' })] },
        expect: ['update vm1.data for new-uid: annotations ownerReferences'],
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
          'update vm1.data for new-uid: annotations ownerReferences',
          'update vm1.extra for new-uid: annotations ownerReferences',
        ],
      },
      {
        name: 'gives the VM only one of two claims for one interface',
        given: { vm: again, claims: [restored(), restored({ name: SWAPPED })] },
        expect: [
          `wait for ${SWAPPED}, RestoredIPAMClaimWaiting on the claim`,
          'update vm1.data for new-uid: annotations ownerReferences',
        ],
      },
      {
        name: 'keeps it while the VM has a claim for the interface',
        given: { vm: again, claims: [claim({ owner: vmReference('new-uid') }), restored({ name: SWAPPED })] },
        expect: ['keep vm1.data', `wait for ${SWAPPED}, RestoredIPAMClaimWaiting on the claim`],
      },
      {
        name: 'replaces it if the interface of its name is on another network now',
        given: { vm: vm({ data: 'green' }, { uid: 'new-uid' }), claims: [restored()] },
        expect: ['release vm1.data, then create it, RestoredIPAMClaimReleased on vm'],
      },
      {
        name: 'keeps it for a VM whose NAD is not restored yet',
        given: { vm: again, nads: [], claims: [restored()] },
        expect: ['wait for vm1.data, RestoredIPAMClaimWaiting on the claim', 'refuse NetworkAttachmentNotFound on vm'],
      },
      {
        name: 'gives it to a standalone VMI of its name',
        given: { vmi: vmi({ data: 'blue' }, { vm: null }), claims: [restored()] },
        expect: ['update vm1.data for vmi-uid: annotations ownerReferences'],
      },
      {
        name: 'gives it only to the VMI if a VM has not adopted the VMI yet',
        given: { vm: again, vmi: vmi({ data: 'blue' }, { vm: null }), claims: [restored()] },
        expect: ['update vm1.data for vmi-uid: annotations ownerReferences', 'wait for vm1.data'],
      },
    ]);
  });

  describe('for a claim that looks restored', () => {
    itPlansClaims([
      {
        name: 'gives it to no VM while a launcher of an earlier VM runs',
        given: { vm: again, launchers: [oldLauncher], claims: [restored()] },
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
        given: { vm: again, vmi: vmi({ data: 'blue' }, { vm: FORMER.uid }), claims: [restored()] },
        expect: ['update vm1.data for former-uid: ownerReferences', 'refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'does not give it to another VM while its owner is being deleted',
        given: { vm: vm({ data: 'blue' }, { uid: FORMER.uid, deleting: true }), claims: [restored()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'does not change one that names a VM of another name',
        given: { vm: again, claims: [restored({ recordedOwner: { name: 'vm2', uid: 'vm2-uid' } })] },
        expect: ['refuse IPAMClaimConflict on vm'],
      },
      {
        name: 'releases the claim of a VM that is gone while the claim still has its owner reference',
        given: { vm: again, claims: [claim({ owner: vmReference(FORMER.uid), created: NOW })] },
        expect: ['release vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vm'],
      },
    ]);
  });

  describe('for a claim that kubectl apply restored', () => {
    itPlansClaims([
      {
        name: 'removes the owner reference for which the garbage collector would delete it',
        given: { claims: [applied()] },
        expect: ['update vm1.data for former-uid: annotations ownerReferences'],
      },
      {
        name: 'gives it to the VM that was restored',
        given: { vm: again, claims: [applied()] },
        expect: ['update vm1.data for new-uid: annotations ownerReferences'],
      },
      {
        name: 'gives it to a standalone VMI that was restored',
        given: { vmi: vmi({ data: 'blue' }, { vm: null }), claims: [applied({ owner: vmiReference(FORMER.uid) })] },
        expect: ['update vm1.data for vmi-uid: annotations ownerReferences'],
      },
      {
        name: 'keeps it for its VM although the garbage collector has deleted it',
        given: { claims: [applied({ deleting: true })] },
        expect: ['wait for vm1.data, RestoredIPAMClaimWaiting on the claim'],
      },
      {
        name: 'replaces it for its VM if the garbage collector has deleted it',
        given: { vm: again, claims: [applied({ deleting: true })] },
        expect: ['release vm1.data, then create it'],
      },
      {
        name: 'keeps it while a launcher of an earlier VM runs',
        given: { vm: again, launchers: [oldLauncher], claims: [applied({ deleting: true })] },
        expect: ['wait for vm1.data', 'wait for vm1.data, IPAMClaimOfPredecessor on vm'],
      },
      {
        name: 'releases it if kubectl only changed it, because the copy has its UID',
        given: { claims: [applied({}, { metadata: { uid: 'vm1.data-uid' } })] },
        expect: ['release vm1.data'],
      },
      {
        name: 'releases it if it had another owner when it was applied',
        given: {
          claims: [
            applied({}, { metadata: { uid: 'saved-uid', annotations: { 'ipam.holdfast.dev/owner-uid': 'x' } } }),
          ],
        },
        expect: ['release vm1.data'],
      },
      {
        name: 'releases it if the copy is not an object',
        given: { claims: [applied({}, { metadata: [] })] },
        expect: ['release vm1.data'],
      },
      {
        name: 'releases it if the copy is longer than any claim',
        given: { claims: [applied({}, { note: 'x'.repeat(40_000) })] },
        expect: ['release vm1.data'],
      },
    ]);

    const addressesOf = (given: Parameters<typeof observationOf>[0]) => {
      const [action] = plan(observationOf(given));
      if (action?.kind === 'update') return action.set.annotations?.[REQUESTED];
      return action?.kind === 'release' ? action.successor?.metadata.annotations?.[REQUESTED] : undefined;
    };

    it('requests the addresses that it had', () => {
      const expected = '["10.0.0.5/24"]';
      expect(addressesOf({ claims: [applied()] })).to.equal(expected);
      expect(addressesOf({ vm: again, claims: [applied()] })).to.equal(expected);
      expect(addressesOf({ vm: again, claims: [applied({ deleting: true, ips: ['10.0.0.9/24'] })] })).to.equal(
        expected,
      );
    });

    it('requests no addresses that cannot be addresses', () => {
      for (const ips of ['10.0.0.5/24', [{}], ['x'.repeat(50)], []]) {
        expect(addressesOf({ vm: again, claims: [applied({}, { status: { ips } })] })).to.equal(undefined);
      }
    });
  });
});
