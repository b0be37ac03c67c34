import { expect } from 'chai';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import {
  type WorkloadClaimOptions,
  claim,
  vmReference,
  vmi,
  vmiReference,
} from '../../../test/objects/workload-objects.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';
import { FORMER, oldLauncher, restoredVm } from '../testing/restored-workload.js';
import { NOW, observationOf } from '../testing/workload-observation.js';
import { plan } from './plan.js';

const REQUESTED = 'ipam.holdfast.dev/requested-addresses';
const APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** A claim as `kubectl apply` restores it. */
function applied(options: WorkloadClaimOptions = {}, copy: object = {}) {
  const made = claim({ owner: vmReference(FORMER.uid), created: NOW, ...options });
  const { annotations } = made.metadata;
  const saved = { metadata: { uid: 'saved-uid', annotations }, status: { ips: ['10.0.0.5/24'] }, ...copy };
  return withCopy(made, JSON.stringify(saved));
}

/** A claim of which the controller has removed the owner reference, and which is deleted afterwards. */
function deletedAfterwards(deletionTimestamp: string): IPAMClaim {
  const made = applied({ owner: null, recordedOwner: FORMER });
  return { ...made, metadata: { ...made.metadata, deletionTimestamp } };
}

function withCopy(made: IPAMClaim, copy: string): IPAMClaim {
  return { ...made, metadata: { ...made.metadata, annotations: { ...made.metadata.annotations, [APPLIED]: copy } } };
}

describe('the plan', () => {
  describe('for a claim that kubectl apply restored', () => {
    itPlansClaims([
      {
        name: 'removes the owner reference for which the garbage collector would delete it',
        given: { claims: [applied()] },
        expect: ['update vm1.data for former-uid: annotations ownerReferences'],
      },
      {
        name: 'gives it to the VM that was restored',
        given: { vm: restoredVm, claims: [applied()] },
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
        name: 'keeps it although the garbage collector has deleted it just after its owner reference was removed',
        given: { claims: [deletedAfterwards('2026-01-01T12:01:00Z')] },
        expect: ['wait for vm1.data, RestoredIPAMClaimWaiting on the claim'],
      },
      {
        name: 'releases it if a user deletes it later',
        given: { claims: [deletedAfterwards('2026-01-01T12:01:01Z')] },
        expect: ['release vm1.data'],
      },
      {
        name: 'releases it if it is deleted with its namespace',
        given: { claims: [applied({ deleting: true })], isNamespaceDeleted: true },
        expect: ['release vm1.data'],
      },
      {
        name: 'replaces it for its VM if the garbage collector has deleted it',
        given: { vm: restoredVm, claims: [applied({ deleting: true })] },
        expect: ['release vm1.data, then create it'],
      },
      {
        name: 'keeps it while a launcher of an earlier VM runs',
        given: { vm: restoredVm, launchers: [oldLauncher], claims: [applied({ deleting: true })] },
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
      ...['not JSON', '{"metadata":{"uid":"saved-uid"', ''].map((copy) => ({
        name: `releases it if the copy is ${JSON.stringify(copy)}`,
        given: { claims: [withCopy(applied(), copy)] },
        expect: ['release vm1.data'],
      })),
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
      expect(addressesOf({ vm: restoredVm, claims: [applied()] })).to.equal(expected);
      expect(addressesOf({ vm: restoredVm, claims: [applied({ deleting: true, ips: ['10.0.0.9/24'] })] })).to.equal(
        expected,
      );
    });

    it('does not make the request in the name of the VM', () => {
      const [action] = plan(observationOf({ vm: restoredVm, claims: [applied()] }));
      const annotations = action?.kind === 'update' ? action.set.annotations : {};
      expect(annotations).to.include({ 'ipam.holdfast.dev/request-origin': 'former' });
    });

    it('requests no addresses that cannot be addresses', () => {
      for (const ips of ['10.0.0.5/24', [{}], ['x'.repeat(50)], []]) {
        expect(addressesOf({ vm: restoredVm, claims: [applied({}, { status: { ips } })] })).to.equal(undefined);
      }
    });
  });
});
