import { expect } from 'chai';
import { isNetworkStatusStale, networkStatus } from './network-status.js';
import type { KubeletPod } from '../pod.js';

function pod(networks?: string, more: Record<string, string> = {}): KubeletPod {
  const annotations = { ...(networks === undefined ? {} : { 'k8s.v1.cni.cncf.io/networks': networks }), ...more };
  return { metadata: { namespace: 'vms', name: 'pod', uid: 'uid', annotations } };
}

function attachments(of: KubeletPod): Record<string, unknown>[] {
  return JSON.parse(networkStatus(of)) as Record<string, unknown>[];
}

describe('The network-status of a simulated pod', () => {
  it('names the pod network first', () => {
    expect(attachments(pod())).to.have.length(1);
    expect(attachments(pod())[0]).to.include({ name: 'cluster-net', interface: 'eth0', default: true });
  });

  it('names the network that replaces the pod network', () => {
    expect(attachments(pod(undefined, { 'v1.multus-cni.io/default-network': 'vms/green' }))[0]).to.include({
      name: 'vms/green',
      interface: 'eth0',
    });
  });

  const cases = [
    {
      name: 'JSON elements with and without namespace and interface',
      given: '[{"name":"blue"},{"name":"green","namespace":"other","interface":"podx"}]',
      expect: [
        { name: 'vms/blue', interface: 'net1' },
        { name: 'other/green', interface: 'podx' },
      ],
    },
    {
      name: 'requested addresses, which it names without prefix length',
      given: '[{"name":"blue","mac":"02:00:00:00:00:22","ips":["192.0.2.7/24"]}]',
      expect: [{ name: 'vms/blue', interface: 'net1', mac: '02:00:00:00:00:22', ips: ['192.0.2.7'] }],
    },
    {
      name: 'the comma form',
      given: 'blue, other/green@podx',
      expect: [
        { name: 'vms/blue', interface: 'net1' },
        { name: 'other/green', interface: 'podx' },
      ],
    },
  ];
  for (const { name, given, expect: expected } of cases) {
    it(`follows ${name}`, () => {
      const secondary = attachments(pod(given)).slice(1);
      expect(secondary).to.have.length(expected.length);
      expected.forEach((attachment, index) => expect(secondary[index]).to.deep.include(attachment));
    });
  }

  it('is stale only if other interfaces are requested', () => {
    const attached = { 'k8s.v1.cni.cncf.io/network-status': networkStatus(pod('blue')) };
    expect(isNetworkStatusStale(pod('blue', attached))).to.equal(false);
    expect(isNetworkStatusStale(pod('[{"name":"blue","ipam-claim-reference":"vm1.blue"}]', attached))).to.equal(false);
    expect(isNetworkStatusStale(pod('blue,green', attached))).to.equal(true);
    expect(isNetworkStatusStale(pod(undefined, attached))).to.equal(true);
  });
});
