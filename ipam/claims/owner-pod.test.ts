import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { claim } from '../../test/workload-objects.js';
import { ownerPodOf } from './owner-pod.js';
import type { ClaimPod } from './claim-pods.js';

interface Given extends Partial<Omit<ClaimPod, 'metadata'>> {
  /** Second of its creation. */
  at?: number;
  leaving?: boolean;
}

/** A running launcher of `vm1` with the claim, unless said otherwise. */
function pod(name: string, { at = 0, leaving = false, ...more }: Given = {}): ClaimPod {
  return {
    metadata: {
      name,
      namespace: 'vms',
      uid: `${name}-uid`,
      creationTimestamp: new Date(Date.UTC(2026, 0, 1, 0, 0, at)).toISOString(),
      ...(leaving && { deletionTimestamp: '2026-01-02T00:00:00Z' }),
    },
    terminal: false,
    claims: ['vm1.data'],
    isRunning: true,
    vmi: { name: 'vm1', uid: 'vmi-uid' },
    ...more,
  };
}

const ownedBy = (name: string): IPAMClaim => ({ ...claim(), status: { ips: [], ownerPod: { name } } });

describe('the pod that owns a claim', () => {
  const forged = { vmi: { name: 'vm1', uid: 'forged' } };
  const rows: { name: string; claim?: IPAMClaim; users: ClaimPod[]; expect: string | undefined }[] = [
    {
      name: 'is no pod whose VMI, by UID, is not shown to be of the owner',
      users: [pod('thief', forged)],
      expect: undefined,
    },
    {
      name: 'is the launcher whose VMI is, rather than an older pod whose VMI is not',
      users: [pod('thief', forged), pod('real', { at: 9, isRunning: false })],
      expect: 'real',
    },
    {
      name: 'stays one that was chosen while its VMI was there',
      claim: ownedBy('old'),
      users: [pod('old', { vmi: { name: 'vm1', uid: 'earlier' } }), pod('real', { at: 9 })],
      expect: 'old',
    },
    { name: 'is nobody where no pod uses it', users: [], expect: undefined },
    { name: 'is nobody any more once its pod is gone', claim: ownedBy('a'), users: [], expect: undefined },
    { name: 'is its only user, before that runs, too', users: [pod('a', { isRunning: false })], expect: 'a' },
    {
      name: 'stays the source while a migration is under way',
      claim: ownedBy('source'),
      users: [pod('target', { at: 9 }), pod('source')],
      expect: 'source',
    },
    {
      name: 'stays the source that is being deleted, until it has ended',
      claim: ownedBy('source'),
      users: [pod('target', { at: 9 }), pod('source', { leaving: true })],
      expect: 'source',
    },
    {
      name: 'is the target once the source has ended',
      claim: ownedBy('source'),
      users: [pod('target', { at: 9 })],
      expect: 'target',
    },
    {
      name: 'is the source where nothing says so yet',
      users: [pod('target', { at: 9 }), pod('source')],
      expect: 'source',
    },
    {
      name: 'is one that runs rather than an older one that does not',
      users: [pod('pending', { isRunning: false }), pod('running', { at: 9 })],
      expect: 'running',
    },
    {
      name: 'is one that stays rather than one that leaves',
      users: [pod('old', { leaving: true }), pod('new', { at: 9, isRunning: false })],
      expect: 'new',
    },
    { name: 'is one and the same of two as old as each other', users: [pod('b'), pod('a')], expect: 'a' },
    { name: 'is a launcher that was stripped of its reference', users: [pod('a', { claims: [] })], expect: 'a' },
    {
      name: 'is no launcher with other claims only',
      users: [pod('a', { claims: ['vm1.old'] }), pod('b', { at: 9 })],
      expect: 'b',
    },
    {
      name: 'stays a launcher that is stripped of this reference alone',
      claim: ownedBy('a'),
      users: [pod('a', { claims: ['vm1.extra'] }), pod('b', { at: 9 })],
      expect: 'a',
    },
    {
      name: "is no pod that merely names a VM's claim, whatever the status says",
      claim: ownedBy('thief'),
      users: [{ metadata: pod('thief').metadata, terminal: false, claims: ['vm1.data'], isRunning: true }],
      expect: undefined,
    },
    {
      name: 'is no launcher of another VM',
      users: [pod('other', { vmi: { name: 'vm2', uid: 'vmi-uid' } })],
      expect: undefined,
    },
    {
      name: 'of a claim that is nobody’s is any pod that names it',
      claim: claim({ owner: null }),
      users: [{ metadata: pod('web').metadata, terminal: false, claims: ['vm1.data'], isRunning: true }],
      expect: 'web',
    },
  ];
  const isForged = ({ vmi }: ClaimPod) => vmi?.uid !== 'vmi-uid';
  const vmisOf = (users: ClaimPod[]) => ({
    proven: new Set(users.filter((each) => !isForged(each)).map(({ metadata }) => metadata.uid ?? '')),
  });
  for (const row of rows) {
    it(row.name, () => expect(ownerPodOf(row.claim ?? claim(), row.users, vmisOf(row.users))).to.equal(row.expect));
    it(`${row.name}, in whatever order they come`, () =>
      expect(ownerPodOf(row.claim ?? claim(), [...row.users].reverse(), vmisOf(row.users))).to.equal(row.expect));
  }
});
