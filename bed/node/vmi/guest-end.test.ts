import { expect } from 'chai';
import { Switches } from '../../switches.js';
import type { KubeletPod } from '../pod.js';
import type { MigrationState, Vmi } from './virtual-machine-instance.js';
import { stepVmi } from './vmi-machine.js';

const VMI: Vmi = { metadata: { name: 'vm1' }, status: { phase: 'Running', nodeName: 'node-1' } };

/** virt-launcher has ended; its sidecars run. */
function phaseAfter(exitCode: number, migrationState?: MigrationState): string | undefined {
  const containerStatuses = [{ name: 'compute', state: { terminated: { exitCode } } }, { name: 'volumeroot' }];
  const launcher: KubeletPod = {
    metadata: { name: 'source' },
    spec: { nodeName: 'node-1' },
    status: { phase: 'Running', containerStatuses },
  };
  const switches = new Switches().of('vms', 'vm1');
  const vmi = { ...VMI, status: { ...VMI.status, ...(migrationState && { migrationState }) } };
  const step = stepVmi(vmi, { launchers: [launcher], switches, isNodeUp: () => true, now: 0 });
  return 'next' in step ? step.next.status?.phase : undefined;
}

describe('A guest whose launcher has not ended', () => {
  it('has succeeded when it shut itself down', () => {
    expect(phaseAfter(0)).to.equal('Succeeded');
  });

  it('has failed when QEMU crashed', () => {
    expect(phaseAfter(1)).to.equal('Failed');
  });

  it('runs on the target of a migration if its source has succeeded', () => {
    const started = { sourcePod: 'source', targetNode: 'node-2', startTimestamp: '2026-01-01T00:00:00Z' };
    const migrationState = { migrationUid: 'migration', ...started };
    expect(phaseAfter(0, migrationState)).to.equal('Running');
    expect(phaseAfter(1, migrationState)).to.equal('Failed');
  });
});
