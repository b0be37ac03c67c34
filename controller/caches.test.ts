import { expect } from 'chai';
import { NETWORK_STATUS_ANNOTATION } from '../api/names.js';
import { launcher } from '../test/objects/workload-objects.js';
import { transformLauncher } from './caches.js';

describe('a cached launcher', () => {
  it('keeps its identity, age, owner, networks and phase', () => {
    const created = '2026-01-01T00:00:00Z';
    const full = launcher([{ nad: 'blue' }], { status: [{ nad: 'blue' }], created });
    const { annotations, ownerReferences } = full.metadata;
    full.metadata = { ...full.metadata, annotations: { ...annotations, big: 'x' } };
    Object.assign(full, { spec: { containers: ['x'], nodeName: 'node1' } });
    expect(transformLauncher(full)).to.deep.equal({
      metadata: {
        name: 'virt-launcher-vm1-abcde',
        namespace: 'vms',
        uid: 'virt-launcher-vm1-abcde-uid',
        creationTimestamp: created,
        annotations,
        ownerReferences,
      },
      spec: { nodeName: 'node1' },
      status: { phase: 'Running' },
    });
  });

  it('keeps of what Multus reports only networks of NADs, interfaces and addresses', () => {
    const pod = launcher([{ nad: 'blue' }]);
    const read = { name: 'vms/blue', interface: 'net1', ips: ['10.0.0.5'] };
    const all = [
      { ...read, mac: '02:00:00:00:00:01', dns: {}, gateway: ['10.0.0.1'] },
      { name: 'cbr0', interface: 'eth0', ips: ['10.244.1.7'] },
      'no object',
      { interface: 'x' },
    ];
    pod.metadata.annotations = { [NETWORK_STATUS_ANNOTATION]: JSON.stringify(all, undefined, 4) };
    const { annotations } = transformLauncher(pod).metadata;
    expect(JSON.parse(annotations?.[NETWORK_STATUS_ANNOTATION] ?? '')).to.deep.equal([read]);
  });
});
