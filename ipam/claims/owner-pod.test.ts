import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { claim } from '../../test/objects/workload-objects.js';
import { ownerPodOf } from './owner-pod.js';
import type { ClaimPod } from './running/claim-pods.js';

interface Given extends Partial<Omit<ClaimPod, 'metadata'>> {
  /** The second of its creation. */
  at?: number;
  leaving?: boolean;
}

/** A running launcher of `vm1` that references the claim, unless a test says otherwise. */
function pod(name: string, { at = 0, leaving = false, ...more }: Given = {}): ClaimPod {
  return {
    metadata: {
      name,
      namespace: 'vms',
      uid: `${name}-uid`,
      creationTimestamp: new Date(Date.UTC(2026, 0, 1, 0, 0, at)).toISOString(),
      ...(leaving && { deletionTimestamp: '2026-01-02T00:00:00Z' }),
    },
    isTerminal: false,
    claims: ['vm1.data'],
    isRunning: true,
    vmi: { name: 'vm1', uid: 'vmi-uid' },
    ...more,
  };
}

const ownedBy = (name: string): IPAMClaim => ({ ...claim(), status: { ips: [], ownerPod: { name } } });

describe('the owner pod of a claim', () => {
  const forged = { vmi: { name: 'vm1', uid: 'forged' } };
  const isForged = ({ vmi }: ClaimPod) => vmi?.uid !== 'vmi-uid';
  const vmisOf = (pods: ClaimPod[]) => ({
    verifiedPods: new Set(pods.filter((each) => !isForged(each)).map(({ metadata }) => metadata.uid ?? '')),
  });
  function check(name: string, pods: ClaimPod[], expected: string | undefined, given = claim()): void {
    it(name, () => expect(ownerPodOf(given, pods, vmisOf(pods))).to.equal(expected));
    it(`${name}, in any order of the pods`, () =>
      expect(ownerPodOf(given, [...pods].reverse(), vmisOf(pods))).to.equal(expected));
  }

  check('is no pod whose VMI, by UID, is not known to belong to the owner', [pod('thief', forged)], undefined);
  check(
    'is the launcher whose VMI belongs to the owner, even if a pod with a forged VMI is older',
    [pod('thief', forged), pod('real', { at: 9, isRunning: false })],
    'real',
  );
  check(
    'stays the chosen pod after its VMI is gone',
    [pod('old', { vmi: { name: 'vm1', uid: 'earlier' } }), pod('real', { at: 9 })],
    'old',
    ownedBy('old'),
  );
  check('is absent if no pod uses the claim', [], undefined);
  check('is absent once the pod is gone', [], undefined, ownedBy('a'));
  check('is the only pod that uses the claim, even before it runs', [pod('a', { isRunning: false })], 'a');
  check('stays the source during a migration', [pod('target', { at: 9 }), pod('source')], 'source', ownedBy('source'));
  check(
    'stays a source that is being deleted until it has ended',
    [pod('target', { at: 9 }), pod('source', { leaving: true })],
    'source',
    ownedBy('source'),
  );
  check('is the target once the source has ended', [pod('target', { at: 9 })], 'target', ownedBy('source'));
  check('is the source if the status names no pod yet', [pod('target', { at: 9 }), pod('source')], 'source');
  check(
    'is a running pod rather than an older pending one',
    [pod('pending', { isRunning: false }), pod('running', { at: 9 })],
    'running',
  );
  check(
    'is a pending pod rather than an older pending one that is being deleted',
    [pod('old', { leaving: true, isRunning: false }), pod('new', { at: 9, isRunning: false })],
    'new',
  );
  check(
    'is a running pod rather than an older one that is being deleted',
    [pod('old', { leaving: true }), pod('new', { at: 9 })],
    'new',
  );
  check(
    'is a former migration target that is being deleted, and still runs, rather than the launcher of the next VMI',
    [pod('target', { leaving: true }), pod('next', { at: 9, isRunning: false })],
    'target',
    ownedBy('source'),
  );
  check('is always the same of two pods of the same age', [pod('b'), pod('a')], 'a');
  check('is a launcher whose reference was removed', [pod('a', { claims: [] })], 'a');
  check(
    'is no launcher that references other claims only',
    [pod('a', { claims: ['vm1.old'] }), pod('b', { at: 9 })],
    'b',
  );
  check(
    'stays a launcher that lost only this reference',
    [pod('a', { claims: ['vm1.extra'] }), pod('b', { at: 9 })],
    'a',
    ownedBy('a'),
  );
  check(
    "is no pod without a VMI that names a VM's claim, even if the status names the pod",
    [{ metadata: pod('thief').metadata, isTerminal: false, claims: ['vm1.data'], isRunning: true }],
    undefined,
    ownedBy('thief'),
  );
  check('is no launcher of another VM', [pod('other', { vmi: { name: 'vm2', uid: 'vmi-uid' } })], undefined);
  check(
    'is any pod that references a claim without an owner',
    [{ metadata: pod('web').metadata, isTerminal: false, claims: ['vm1.data'], isRunning: true }],
    'web',
    claim({ owner: null }),
  );
});
