import { expect } from 'chai';
import { guestMoves } from './guest-moves.js';
import type { MigrationState, Vmi } from './virtual-machine-instance.js';

const HANDED_OVER: MigrationState = { migrationUid: 'migration', sourcePod: 'source', targetPod: 'target' };
const PREPARED = { ...HANDED_OVER, targetNodeAddress: '192.0.2.2' };
const COPYING = { ...PREPARED, startTimestamp: '2026-01-01T00:00:00Z' };

function vmi(migrationState?: MigrationState): Vmi {
  return { metadata: { namespace: 'vms', name: 'vm1' }, status: { ...(migrationState && { migrationState }) } };
}

describe('The guest of a VMI on the networks of its launchers', () => {
  const cases: { name: string; before?: MigrationState; after?: MigrationState; leaves?: string; arrives?: string }[] =
    [
      { name: 'stays where it is without a migration' },
      { name: 'is not in the target that is prepared', before: HANDED_OVER, after: PREPARED, leaves: 'target' },
      { name: 'stays while it is copied', before: PREPARED, after: COPYING },
      {
        name: 'leaves the source and arrives at the target at the end',
        before: COPYING,
        after: { ...COPYING, completed: true },
        leaves: 'source',
        arrives: 'target',
      },
      { name: 'stays when the migration fails', before: COPYING, after: { ...COPYING, completed: true, failed: true } },
      {
        name: 'stays after a migration that is over',
        before: { ...COPYING, completed: true },
        after: { ...COPYING, completed: true },
      },
    ];
  for (const { name, before, after, leaves, arrives } of cases) {
    it(name, () => {
      const moves = guestMoves(vmi(before), vmi(after));
      expect([moves.leaving.join(), moves.arriving.join()]).to.deep.equal([leaves ?? '', arrives ?? '']);
    });
  }
});
