import { expect } from 'chai';
import { Switches } from '../../switches.js';
import { stepMigration } from './migration-machine.js';
import type { MigrationState, Vmi } from './virtual-machine-instance.js';
import type { GuestCopy, VmiView } from './vmi-view.js';

const STARTED: MigrationState = {
  migrationUid: 'migration',
  sourceNode: 'node-1',
  sourcePod: 'source',
  targetNode: 'node-2',
  targetPod: 'target',
  targetNodeAddress: '192.0.2.2',
  startTimestamp: '2026-01-01T00:00:00Z',
  mode: 'PreCopy',
};
const ARRIVED = { ...STARTED, targetNodeDomainDetected: true };
const AFTER_COPY = { ...ARRIVED, mode: 'PostCopy' };

function outcome(migrationState: MigrationState, copy: Partial<GuestCopy>): { said: string; next: Vmi | undefined } {
  const vmi = { metadata: { name: 'vm1' }, status: { phase: 'Running' as const, nodeName: 'node-1', migrationState } };
  const view: VmiView = {
    launchers: [],
    switches: new Switches().of('vms', 'vm1'),
    isNodeUp: () => true,
    now: Date.parse('2026-01-01T00:10:00Z'),
    copy: { state: 'active', mode: 'PreCopy', reason: 'no reason', ...copy },
  };
  const step = stepMigration(vmi, migrationState, view);
  return 'next' in step
    ? { said: step.reason, next: step.next }
    : { said: `wait for ${step.waitFor}`, next: undefined };
}

describe('A migration whose guest QEMU copies', () => {
  it('has the domain on the target before it runs there', () => {
    const { said, next } = outcome(STARTED, {});
    expect(said).to.equal('domain on target');
    expect(next?.status?.migrationState).not.to.have.property('targetNodeDomainReadyTimestamp');
    expect(outcome(ARRIVED, {}).said).to.equal('wait for QEMU to copy the guest');
  });

  it('is completed when QEMU has copied the guest', () => {
    const { said, next } = outcome(ARRIVED, { state: 'completed' });
    expect(said).to.equal('migration completed, now on node-2');
    expect(next?.status?.migrationState).to.have.property('targetNodeDomainReadyTimestamp');
  });

  it('leaves the guest on the source when QEMU cannot copy it', () => {
    const { said, next } = outcome(ARRIVED, { state: 'failed', reason: 'QEMU has ended' });
    expect(said).to.equal('migration failed: QEMU has ended');
    expect(next?.status).to.include({ phase: 'Running', nodeName: 'node-1' });
    expect(next?.status?.migrationState).to.include({ failed: true });
  });

  it('reports that the guest runs on the target while its memory follows', () => {
    const { said, next } = outcome(ARRIVED, { mode: 'PostCopy' });
    expect(said).to.equal('the guest runs on the target: PostCopy');
    expect(next?.status?.migrationState).to.have.property('targetNodeDomainReadyTimestamp');
  });

  it('fails a VMI whose memory is on both nodes when the copy breaks off', () => {
    const { next } = outcome(AFTER_COPY, { mode: 'PostCopy', state: 'failed' });
    expect(next?.status?.phase).to.equal('Failed');
  });

  it('can be aborted only while the guest runs on the source', () => {
    expect(outcome({ ...ARRIVED, abortRequested: true }, {}).said).to.equal('migration aborted');
    expect(outcome({ ...AFTER_COPY, abortRequested: true }, { mode: 'PostCopy' }).said).to.equal(
      'wait for QEMU to copy the guest',
    );
    expect(outcome({ ...ARRIVED, abortRequested: true }, { state: 'completed' }).said).to.match(/completed/);
  });
});
