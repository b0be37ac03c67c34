import { expect } from 'chai';
import { launcher } from '../test/workload-objects.js';
import { transformLauncher } from './caches.js';

describe('a cached launcher', () => {
  it('keeps its identity, owner, networks and phase', () => {
    const full = launcher([{ nad: 'blue' }], { status: [{ nad: 'blue' }] });
    const { annotations, ownerReferences } = full.metadata;
    full.metadata = { ...full.metadata, annotations: { ...annotations, big: 'x' } };
    Object.assign(full, { spec: { containers: ['x'], nodeName: 'node1' } });
    expect(transformLauncher(full)).to.deep.equal({
      metadata: {
        name: 'virt-launcher-vm1-abcde',
        namespace: 'vms',
        uid: 'virt-launcher-vm1-abcde-uid',
        annotations,
        ownerReferences,
      },
      spec: { nodeName: 'node1' },
      status: { phase: 'Running' },
    });
  });
});
