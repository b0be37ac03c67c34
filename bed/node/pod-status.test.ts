import { expect } from 'chai';
import { addressStatus, runningStatus } from './pod-status.js';
import type { KubeletPod } from './pod.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const IPS = ['10.244.1.7'];
const POD: KubeletPod = {
  metadata: { namespace: 'vms', name: 'source', uid: 'pod-uid' },
  spec: {
    nodeName: 'node-1',
    containers: [{ name: 'compute', image: 'registry.test:5000/virt-launcher:v1' }],
    initContainers: [{ name: 'log', restartPolicy: 'Always' }, { name: 'copy' }],
  },
};

describe('The status that the kubelet reports', () => {
  it('names images by digest, which virt-controller needs for the target of a migration', () => {
    const { containerStatuses } = runningStatus(POD, IPS, NOW);
    expect(containerStatuses?.[0])
      .to.have.property('imageID')
      .that.matches(/^registry\.test:5000\/virt-launcher@sha256:[0-9a-f]{64}$/);
  });

  it('keeps sidecars running and completes the other init containers', () => {
    const states = runningStatus(POD, IPS, NOW).initContainerStatuses as { state: object }[];
    expect(states.map(({ state }) => Object.keys(state))).to.deep.equal([['running'], ['terminated']]);
  });

  it('replaces all addresses that the pod had', () => {
    expect(addressStatus(['10.244.1.7', 'fd00::7'])).to.deep.equal({
      podIP: '10.244.1.7',
      podIPs: [{ ip: '10.244.1.7' }, { ip: 'fd00::7' }, { $patch: 'replace' }],
    });
  });
});
