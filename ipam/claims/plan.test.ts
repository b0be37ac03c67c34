import { expect } from 'chai';
import { AllocationReason } from '../../api/names.js';
import {
  type ClaimScenario,
  ALLOCATED_CONDITION,
  SERVED_CLAIM,
  describeStep,
  lease,
  observationOf,
} from './testing/claim-observation.js';
import type { AllocationRefusal } from '../../addressing/allocator/allocator.js';
import type { ClaimObservation } from './observe.js';
import { plan, planEarlierClaims } from './plan.js';
import type { Findings } from './sync-state.js';

const FULL: AllocationRefusal = { reason: AllocationReason.Exhausted, message: 'Pool blue is full: 254 of 254 leased' };
const HELD: AllocationRefusal = {
  reason: AllocationReason.Conflict,
  message: '10.0.0.9 is allocated to IPAMClaim vms/b',
};
const ALLOCATED = 'write [10.0.0.5/24] SuccessfulAllocation';
const NO_POOL: AllocationRefusal = {
  reason: AllocationReason.PoolNotFound,
  message: 'No AddressPool serves network blue',
};
const LIVE: Findings = { isLive: true, arePodsLive: true };

function check(name: string, given: ClaimScenario, expected: string, found: Partial<Findings> = {}): void {
  it(name, () => {
    const step = plan(observationOf(given), { isLive: false, arePodsLive: false, ...found });
    expect(describeStep(step)).to.equal(expected);
  });
}

describe('the next step of a claim', () => {
  describe('without addresses in its status', () => {
    check('is to allocate one address of each family of the pool', {}, 'allocate for need: any v4, any v6');
    check('is to allocate an address of the only family of the pool', { pool: 'v4' }, 'allocate for need: any v4');
    check(
      'is to allocate the requested address, and any address of the other family',
      { request: '["10.0.0.9"]' },
      'allocate for need: 10.0.0.9, any v6',
    );
    check(
      'is to allocate the requested address even if its prefix length is that of an earlier pool',
      { pool: 'v4', request: '["10.0.0.9/16"]' },
      'allocate for need: 10.0.0.9',
    );
    check(
      'is to allocate an address that the VM requests with the prefix length of its subnet',
      { pool: 'v4', request: '["10.0.0.9/24"]', isOfTemplate: true },
      'allocate for need: 10.0.0.9',
    );
    check(
      'is to report an address that the VM requests with another prefix length',
      { ...SERVED_CLAIM, request: '["10.0.0.9/16"]', isOfTemplate: true },
      'write [10.0.0.5/24] SuccessfulAllocation; InvalidRequest: network.kubevirt.io/addresses: 10.0.0.9/16 has not the prefix length of subnet 10.0.0.0/24 of pool blue: write 10.0.0.9/24 or 10.0.0.9',
    );
    check(
      'is to allocate the second family if a crash has left a lease of the first',
      { held: ['10.0.0.5'] },
      'allocate for need: any v6',
    );
    check(
      'is to show the addresses that were leased before a crash',
      { held: ['10.0.0.5', '2001:db8::5'] },
      'write [10.0.0.5/24, 2001:db8::5/64] SuccessfulAllocation',
    );
    check(
      'is to show the address of the oldest lease if two processes have allocated one each',
      { pool: 'v4', held: ['10.0.0.7', '10.0.0.5'] },
      'write [10.0.0.7/24] SuccessfulAllocation',
    );
    check('is to report a full pool without showing an address', {}, 'write [] SubnetExhausted', { need: FULL });
    check(
      'is to read the claim live before the lease of one family is released because the other family is full',
      { held: ['10.0.0.5'], ips: [], conditions: [refused(FULL)] },
      'read-claim',
      { need: FULL },
    );
    check(
      'is to release the lease of one family if the other family is full, even while a pod waits',
      { held: ['10.0.0.5'], ips: [], conditions: [refused(FULL)], pods: ['p1'], ownerPod: 'p1' },
      'release 10.0.0.5',
      { need: FULL, ...LIVE },
    );
    describe('after it has taken over the lease of a launcher, which has a reference by now,', () => {
      const given: ClaimScenario = { held: ['10.0.0.5'], ips: [], pods: ['p1'], ownerPod: 'p1' };
      const stepWith = (changes: Partial<ClaimObservation>, refusal: AllocationRefusal) =>
        describeStep(
          plan(
            { ...observationOf({ ...given, conditions: [refused(refusal)] }), ...changes },
            { ...LIVE, need: refusal },
          ),
        );
      const launchers = (isRunning: boolean) =>
        observationOf(given).pods.map((pod) => ({ ...pod, vmi: { name: 'vm1', uid: 'u1' }, isRunning }));
      const kept = 'none: a pod may use the surplus addresses';

      it('is none if the claim cannot have the addresses of its running VM', () => {
        const running = { kind: 'refused' as const, refusal: HELD };
        expect(stepWith({ running, pods: launchers(false) }, HELD)).to.equal(kept);
      });
      it('is none if the launcher runs and no longer reports its addresses', () => {
        expect(stepWith({ pods: launchers(true) }, FULL)).to.equal(kept);
      });
      it('is to release the lease if the launcher still waits for the claim', () => {
        expect(stepWith({ pods: launchers(false) }, FULL)).to.equal('release 10.0.0.5');
      });
    });
    check('is to report that no pool serves the claim', { pool: null }, 'write [] PoolNotFound');
    check(
      'is none if the status already reports that no pool serves it',
      { pool: null, ips: [], conditions: [refused(NO_POOL)] },
      'none: nothing to do',
    );
    check('is to report an invalid request without addresses', { request: 'nonsense' }, 'write [] InvalidRequest');
    check(
      'is none if another IPAM serves the network',
      { isForeign: true, ips: ['10.0.0.5/24'] },
      'none: NAD vms/blue delegates IPAM to host-local',
    );
    check(
      'is none, not even a status, while it is unknown which IPAM serves the network',
      { isUncertain: true, ips: ['10.0.0.5/24'] },
      'none: the API server does not serve NetworkAttachmentDefinitions',
    );
    check(
      'is none while it is being deleted',
      { deleting: true },
      'none: it is being deleted and never had an address',
    );
  });

  describe('with addresses in its status', () => {
    const requesting: ClaimScenario = { pool: 'v4', ips: ['10.0.0.5/24'], request: '["10.0.0.9"]' };
    check('is none if the claim has leases of all of them', SERVED_CLAIM, 'none: nothing to do');
    check('is none if its pool has gained a second family', { ...SERVED_CLAIM, pool: 'dual' }, 'none: nothing to do');
    check('is none if no pool serves the claim any more', { ...SERVED_CLAIM, pool: null }, 'none: nothing to do');
    check(
      'is to allocate exactly these if it has no lease: after a restore, or a deletion by hand',
      { ips: ['10.0.0.5/24'] },
      'allocate for need: 10.0.0.5',
    );
    check(
      'is to allocate exactly these even while it is being deleted',
      { ips: ['10.0.0.5/24'], deleting: true },
      'allocate for need: 10.0.0.5',
    );
    check(
      'is to keep showing them if they are not available',
      { ips: ['10.0.0.5/24', '2001:db8::5/64'], held: ['2001:db8::5'] },
      'write [10.0.0.5/24, 2001:db8::5/64] IPAddressConflict',
      { need: HELD },
    );
    check(
      'is to allocate them again first, whatever it requests',
      { ips: ['10.0.0.5/24', '2001:db8::5/64'], request: '["10.0.0.9"]' },
      'allocate for need: 10.0.0.5, 2001:db8::5',
    );
    check('is to read the claim live if they are not available and it requests others', requesting, 'read-claim', {
      need: HELD,
    });
    check(
      'is to allocate the requested address if they are not available and no pod uses the claim',
      requesting,
      'allocate for move: 10.0.0.9',
      { ...LIVE, need: HELD },
    );
    check(
      'is to keep showing them if neither they nor the requested ones are available',
      requesting,
      'write [10.0.0.5/24] IPAddressConflict',
      { ...LIVE, need: HELD, move: HELD },
    );
    check(
      'is to keep showing them while a pod uses the claim, whatever it requests',
      { ...requesting, pods: ['p1'], ownerPod: 'p1' },
      'write [10.0.0.5/24] IPAddressConflict; owner p1',
      { ...LIVE, need: HELD },
    );
    check(
      'is to allocate them again while a pod uses the claim, whatever it requests',
      { ...requesting, pods: ['p1'] },
      'allocate for need: 10.0.0.5',
    );
    check(
      'is to report a status that cannot be parsed, and to keep it',
      { ips: ['10.0.0.5/24', 'garbage'] },
      'write [10.0.0.5/24, garbage] InternalError',
    );
    check(
      'is to replace an invalid status by its leases',
      { pool: 'v4', held: ['10.0.0.5'], ips: ['garbage'] },
      ALLOCATED,
    );
    check('is to name the pod that has the addresses', { ...SERVED_CLAIM, pods: ['p1'] }, `${ALLOCATED}; owner p1`);
    check('is to read the pod that it names if no cache has it', { ...SERVED_CLAIM, ownerPod: 'p1' }, 'read-owner-pod');
    check('is to remove the name of a gone pod', { ...SERVED_CLAIM, ownerPod: 'p1' }, ALLOCATED, { readOwner: 'p1' });
  });

  describe('with a request for other addresses', () => {
    const moving: ClaimScenario = { ...SERVED_CLAIM, request: '["10.0.0.9"]' };
    const inUse =
      'ClaimInUse: 10.0.0.9 is requested, but pod p1 uses 10.0.0.5: stop the VM to change its addresses, or remove the request';
    check('is to read the claim live', moving, 'read-claim');
    check('is to list its pods after the claim was read live', moving, 'list-pods', { isLive: true });
    check('is to allocate them after live reads', moving, 'allocate for move: 10.0.0.9', LIVE);
    check(
      'is to show them once they are leased',
      { ...moving, held: ['10.0.0.5', '10.0.0.9'] },
      'write [10.0.0.9/24] SuccessfulAllocation',
      LIVE,
    );
    check(
      'is to release the old leases once the new addresses are shown',
      { ...moving, held: ['10.0.0.5', '10.0.0.9'], ips: ['10.0.0.9/24'] },
      'release 10.0.0.5',
      LIVE,
    );
    check(
      'is to keep the old leases while a pod may have them',
      { ...moving, held: ['10.0.0.5', '10.0.0.9'], ips: ['10.0.0.9/24'], pods: ['p1'], ownerPod: 'p1' },
      'none: a pod may use the surplus addresses',
      LIVE,
    );
    check(
      'is to report that the VM must be stopped first',
      { ...moving, pods: ['p1'], ownerPod: 'p1' },
      `${ALLOCATED}; ${inUse}; owner p1`,
    );
    check(
      'is to report who has them, and to keep the current address',
      moving,
      `${ALLOCATED}; IPAddressConflict: ${HELD.message}`,
      { ...LIVE, move: HELD },
    );
    check(
      'is to release the new lease of one family if the other family is full',
      {
        ...moving,
        pool: 'dual',
        held: ['10.0.0.5', '10.0.0.9'],
        request: '["10.0.0.9", "2001:db8::9"]',
        conditions: [ALLOCATED_CONDITION, refused(FULL, 'RequestHonoured')],
      },
      'release 10.0.0.9',
      { ...LIVE, move: FULL },
    );
    check(
      'is to allocate an address of a second family that it requests',
      { ...moving, pool: 'dual', request: '["2001:db8::9"]' },
      'allocate for move: 2001:db8::9',
      LIVE,
    );
    check('is none while it is being deleted', { ...moving, deleting: true }, 'none: nothing to do');
    check(
      'is to report a request that cannot be parsed',
      { ...moving, request: '[]' },
      'write [10.0.0.5/24] SuccessfulAllocation; InvalidRequest: ipam.holdfast.dev/requested-addresses: the list is empty: write one like ["10.0.0.5"], or remove it',
    );
    check(
      'is to remove the condition once the request is fulfilled',
      { ...moving, request: '["10.0.0.5"]', conditions: [ALLOCATED_CONDITION, refused(FULL, 'RequestHonoured')] },
      ALLOCATED,
    );
  });

  describe('after earlier claims of the same name', () => {
    it('is to check live whether the earlier claim is gone', () =>
      expect(planEarlierClaims([lease('10.0.0.5')], new Set())?.kind).to.equal('read-claim'));
    it('is to release only the leases of claims that are gone', () => {
      const theirs = lease('10.0.0.5');
      const owner = { kind: 'IPAMClaim' as const, namespace: 'vms', name: 'vm1.data', uid: 'next' };
      const step = planEarlierClaims([theirs, { ...lease('10.0.0.6'), owner }], new Set(['c1']));
      expect(step).to.deep.include({ kind: 'release', leases: [theirs] });
    });
    it('is its own if the earlier claims left no leases', () =>
      expect(planEarlierClaims([], new Set(['x']))).to.equal(undefined));
  });
});

function refused({ reason, message }: AllocationRefusal, type = 'IPsAllocated') {
  return { type, status: 'False' as const, reason, message };
}
