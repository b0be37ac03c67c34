import { expect } from 'chai';
import { AllocationReason } from '../../api/names.js';
import {
  type ClaimScenario,
  ALLOCATED_CONDITION,
  lease,
  observationOf,
  describeStep,
} from './testing/claim-observation.js';
import type { AllocationRefusal } from '../core/allocator.js';
import { type Findings, plan, planEarlierClaims } from './plan.js';

const FULL: AllocationRefusal = { reason: AllocationReason.Exhausted, message: 'pool blue is full: 254 of 254 leased' };
const HELD_BY_OTHER: AllocationRefusal = {
  reason: AllocationReason.Conflict,
  message: '10.0.0.9 is held by IPAMClaim vms/other',
};
const LIVE: Findings = { isLive: true, arePodsLive: true };

interface Row {
  name: string;
  given: ClaimScenario;
  found?: Partial<Findings>;
  expect: string;
}

function checkRows(rows: Row[]): void {
  for (const { name, given, found, expect: expected } of rows) {
    it(name, () => {
      const step = plan(observationOf(given), { isLive: false, arePodsLive: false, ...found });
      expect(describeStep(step)).to.equal(expected);
    });
  }
}

describe('the next step of a claim', () => {
  describe('that has no addresses yet', () => {
    checkRows([
      { name: 'is to take one of each family of the pool', given: {}, expect: 'take for need: any v4, any v6' },
      { name: 'is to take the one family that the pool has', given: { pool: 'v4' }, expect: 'take for need: any v4' },
      {
        name: 'is to take what it asks for, and any of the other family',
        given: { request: '["10.0.0.9"]' },
        expect: 'take for need: 10.0.0.9, any v6',
      },
      {
        name: 'is to take what it asks for with the prefix length of an earlier pool',
        given: { pool: 'v4', request: '["10.0.0.9/16"]' },
        expect: 'take for need: 10.0.0.9',
      },
      {
        name: 'is to take the other family where a crash has left it one',
        given: { held: ['10.0.0.5'] },
        expect: 'take for need: any v6',
      },
      {
        name: 'is to show the addresses that a crash has left it',
        given: { held: ['10.0.0.5', '2001:db8::5'] },
        expect: 'write [10.0.0.5/24, 2001:db8::5/64] SuccessfulAllocation',
      },
      {
        name: 'is to show the oldest of the addresses that two processes have taken for it',
        given: { pool: 'v4', held: ['10.0.0.7', '10.0.0.5'] },
        expect: 'write [10.0.0.7/24] SuccessfulAllocation',
      },
      {
        name: 'is to say that there are none, without any addresses',
        given: {},
        found: { need: FULL },
        expect: 'write [] SubnetExhausted',
      },
      {
        name: 'is to look at it again before the one of two that could be had is released',
        given: { held: ['10.0.0.5'], ips: [], conditions: [refused(FULL)] },
        found: { need: FULL },
        expect: 'look',
      },
      {
        name: 'is to release the one of two that could be had, though its pod waits',
        given: { held: ['10.0.0.5'], ips: [], conditions: [refused(FULL)], pods: ['p1'], ownerPod: 'p1' },
        found: { need: FULL, isLive: true },
        expect: 'release 10.0.0.5',
      },
      {
        name: 'is to say that nobody serves it',
        given: { pool: null },
        expect: 'write [] PoolNotFound',
      },
      {
        name: 'is nothing where that was said',
        given: {
          pool: null,
          ips: [],
          conditions: [
            refused({ reason: AllocationReason.PoolNotFound, message: 'no AddressPool serves network blue' }),
          ],
        },
        expect: 'none: all is as it shall be',
      },
      {
        name: 'is to say that its request cannot be read',
        given: { request: 'nonsense' },
        expect: 'write [] InvalidRequest',
      },
      {
        name: 'is nothing where the network is somebody else’s',
        given: { isForeign: true, ips: ['10.0.0.5/24'] },
        expect: 'none: NAD vms/blue delegates IPAM to host-local',
      },
      {
        name: 'is nothing, not even a status, while nobody knows whose the network is',
        given: { isUncertain: true, ips: ['10.0.0.5/24'] },
        expect: 'none: the API server serves no NetworkAttachmentDefinitions',
      },
      {
        name: 'is nothing where it is being deleted',
        given: { deleting: true },
        expect: 'none: it ends without ever having had an address',
      },
    ]);
  });

  describe('that shows addresses', () => {
    const served: ClaimScenario = {
      pool: 'v4',
      held: ['10.0.0.5'],
      ips: ['10.0.0.5/24'],
      conditions: [ALLOCATED_CONDITION],
    };
    checkRows([
      { name: 'is nothing where it has them', given: served, expect: 'none: all is as it shall be' },
      {
        name: 'is nothing where its pool has a second family by now',
        given: { ...served, pool: 'dual' },
        expect: 'none: all is as it shall be',
      },
      {
        name: 'is nothing where no pool serves it any more',
        given: { ...served, pool: null },
        expect: 'none: all is as it shall be',
      },
      {
        name: 'is to take exactly these where it has none: restored, or deleted by hand',
        given: { ips: ['10.0.0.5/24'] },
        expect: 'take for need: 10.0.0.5',
      },
      {
        name: 'is to take exactly these though it is being deleted',
        given: { ips: ['10.0.0.5/24'], deleting: true },
        expect: 'take for need: 10.0.0.5',
      },
      {
        name: 'is to go on showing them where they cannot be had',
        given: { ips: ['10.0.0.5/24', '2001:db8::5/64'], held: ['2001:db8::5'] },
        found: { need: HELD_BY_OTHER },
        expect: 'write [10.0.0.5/24, 2001:db8::5/64] IPAddressConflict',
      },
      {
        name: 'is to take them back first where it has lost them, whatever its annotation says',
        given: { ips: ['10.0.0.5/24', '2001:db8::5/64'], request: '["10.0.0.9"]' },
        expect: 'take for need: 10.0.0.5, 2001:db8::5',
      },
      {
        name: 'is to look whether it may have what its annotation says where they cannot be had back',
        given: { pool: 'v4', ips: ['10.0.0.5/24'], request: '["10.0.0.9"]' },
        found: { need: HELD_BY_OTHER },
        expect: 'look',
      },
      {
        name: 'is to take what its annotation says where they cannot be had back, and no pod uses it',
        given: { pool: 'v4', ips: ['10.0.0.5/24'], request: '["10.0.0.9"]' },
        found: { ...LIVE, need: HELD_BY_OTHER },
        expect: 'take for move: 10.0.0.9',
      },
      {
        name: 'is to go on showing them where neither these nor others can be had',
        given: { pool: 'v4', ips: ['10.0.0.5/24'], request: '["10.0.0.9"]' },
        found: { ...LIVE, need: HELD_BY_OTHER, move: HELD_BY_OTHER },
        expect: 'write [10.0.0.5/24] IPAddressConflict',
      },
      {
        name: 'is to go on showing them while a pod uses it, whatever its annotation says',
        given: { pool: 'v4', ips: ['10.0.0.5/24'], request: '["10.0.0.9"]', pods: ['p1'], ownerPod: 'p1' },
        found: { ...LIVE, need: HELD_BY_OTHER },
        expect: 'write [10.0.0.5/24] IPAddressConflict; owner p1',
      },
      {
        name: 'is to take them back while a pod uses it, whatever its annotation says',
        given: { pool: 'v4', ips: ['10.0.0.5/24'], request: '["10.0.0.9"]', pods: ['p1'] },
        expect: 'take for need: 10.0.0.5',
      },
      {
        name: 'is to say that its status cannot be read, and to leave it',
        given: { ips: ['10.0.0.5/24', 'garbage'] },
        expect: 'write [10.0.0.5/24, garbage] InternalError',
      },
      {
        name: 'is to correct a status that cannot be read by what it has',
        given: { pool: 'v4', held: ['10.0.0.5'], ips: ['garbage'] },
        expect: 'write [10.0.0.5/24] SuccessfulAllocation',
      },
      {
        name: 'is to name the pod that has them',
        given: { ...served, pods: ['p1'] },
        expect: 'write [10.0.0.5/24] SuccessfulAllocation; owner p1',
      },
      {
        name: 'is to name no pod once it is gone',
        given: { ...served, ownerPod: 'p1' },
        expect: 'write [10.0.0.5/24] SuccessfulAllocation',
      },
    ]);
  });

  describe('that asks for others', () => {
    const moving: ClaimScenario = {
      pool: 'v4',
      held: ['10.0.0.5'],
      ips: ['10.0.0.5/24'],
      conditions: [ALLOCATED_CONDITION],
      request: '["10.0.0.9"]',
    };
    const inUse =
      'ClaimInUse: 10.0.0.9 is asked for, and pod p1 uses 10.0.0.5: stop the VM to change its addresses, or take the request back';
    checkRows([
      { name: 'is to look whether it still does', given: moving, expect: 'look' },
      { name: 'is to look whether a pod uses it', given: moving, found: { isLive: true }, expect: 'look-at-pods' },
      { name: 'is to take them', given: moving, found: LIVE, expect: 'take for move: 10.0.0.9' },
      {
        name: 'is to show them once it has them',
        given: { ...moving, held: ['10.0.0.5', '10.0.0.9'] },
        found: LIVE,
        expect: 'write [10.0.0.9/24] SuccessfulAllocation',
      },
      {
        name: 'is to release the old ones once it shows the new ones',
        given: { ...moving, held: ['10.0.0.5', '10.0.0.9'], ips: ['10.0.0.9/24'] },
        found: LIVE,
        expect: 'release 10.0.0.5',
      },
      {
        name: 'is to keep the old ones, too, while a pod may have them',
        given: { ...moving, held: ['10.0.0.5', '10.0.0.9'], ips: ['10.0.0.9/24'], pods: ['p1'], ownerPod: 'p1' },
        found: LIVE,
        expect: 'none: a pod may use what is too much',
      },
      {
        name: 'is to say that it must be stopped first',
        given: { ...moving, pods: ['p1'], ownerPod: 'p1' },
        expect: `write [10.0.0.5/24] SuccessfulAllocation; ${inUse}; owner p1`,
      },
      {
        name: 'is to say who has them, and to keep its own',
        given: moving,
        found: { ...LIVE, move: HELD_BY_OTHER },
        expect: `write [10.0.0.5/24] SuccessfulAllocation; IPAddressConflict: ${HELD_BY_OTHER.message}`,
      },
      {
        name: 'is to release the one of two that it has taken where the other one cannot be had',
        given: {
          ...moving,
          pool: 'dual',
          held: ['10.0.0.5', '10.0.0.9'],
          request: '["10.0.0.9", "2001:db8::9"]',
          conditions: [
            ALLOCATED_CONDITION,
            { type: 'RequestHonoured', status: 'False', reason: FULL.reason, message: FULL.message },
          ],
        },
        found: { ...LIVE, move: FULL },
        expect: 'release 10.0.0.9',
      },
      {
        name: 'is to take a second family that it asks for',
        given: { ...moving, pool: 'dual', request: '["2001:db8::9"]' },
        found: LIVE,
        expect: 'take for move: 2001:db8::9',
      },
      {
        name: 'is nothing where it is being deleted',
        given: { ...moving, deleting: true },
        expect: 'none: all is as it shall be',
      },
      {
        name: 'is to say that the request cannot be read',
        given: { ...moving, request: '[]' },
        expect:
          'write [10.0.0.5/24] SuccessfulAllocation; InvalidRequest: ipam.holdfast.dev/requested-addresses: an empty list asks for nothing: write one like ["10.0.0.5"], or remove it',
      },
      {
        name: 'is to take the complaint back once the request is',
        given: {
          ...moving,
          request: '["10.0.0.5"]',
          conditions: [ALLOCATED_CONDITION, { type: 'RequestHonoured', status: 'False', reason: 'x', message: 'y' }],
        },
        expect: 'write [10.0.0.5/24] SuccessfulAllocation',
      },
    ]);
  });

  describe('whose name others had before', () => {
    it('is to look whether those are gone', () =>
      expect(planEarlierClaims([lease('10.0.0.5')], new Set())?.kind).to.equal('look'));
    it('is to release what those had that are gone, and nothing else', () => {
      const theirs = lease('10.0.0.5');
      const owner = { kind: 'IPAMClaim' as const, namespace: 'vms', name: 'vm1.data', uid: 'next' };
      const step = planEarlierClaims([theirs, { ...lease('10.0.0.6'), owner }], new Set(['c1']));
      expect(step).to.deep.include({ kind: 'release', leases: [theirs] });
    });
    it('is its own where they had nothing', () => expect(planEarlierClaims([], new Set(['x']))).to.equal(undefined));
  });
});

function refused({ reason, message }: AllocationRefusal) {
  return { type: 'IPsAllocated', status: 'False' as const, reason, message };
}
