import { expect } from 'chai';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import { until } from '../../bed/processes/wait.js';
import { ORDINARY_IMAGE } from '../../bed/real-nodes/images/images.js';
import { waitNodeReady } from '../../bed/real-nodes/rollout.js';
import { waitForEvent } from '../../bed/story/events.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { describeOnNodes } from '../../bed/story/nodes.js';
import { PODS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';

const networks = [{ name: 'blue' }];

describeOnNodes('A real container runtime', (story, nodes) => {
  const first = () => nodes().node(nodes().names[0]);

  it('that is killed while pods start, like its kubelet, gives each pod one address, and takes back each', async () => {
    await nodes().createNetwork('blue', ['10.83.0.0/24']);
    const { addresses, client } = story();
    const node = first();
    const names = Array.from({ length: 8 }, (_, index) => `pod-${String(index)}`);
    for (const [index, name] of names.entries()) {
      await nodes().requestPod(name, { networks, node: node.name });
      if (index === 2) await node.killService('containerd');
      if (index === 5) await node.killService('kubelet');
    }
    const pods = await Promise.all(names.map((name) => nodes().waitReady(name)));
    const found = (await Promise.all(pods.map((pod) => nodes().addressOf(pod, 'net1')))).map(bareAddress);
    expect(new Set(found).size).to.equal(names.length);
    pods.forEach((pod, index) => expect(nodes().reported(pod, 'net1')).to.deep.equal([found[index]]));
    await addresses.waitHeld(found);

    await node.stopService('containerd');
    try {
      await Promise.all(names.map((name) => client.delete(PODS, story().ref(name))));
      expect(await addresses.heldAddresses()).to.have.length(names.length);
    } finally {
      await node.startService('containerd');
    }
    await addresses.waitHeld([]);
    await waitNodeReady(nodes().cluster, node.name);
  });

  it('that loses the sandbox of a pod makes another one with the same address', async () => {
    await nodes().createNetwork('blue', ['10.83.1.0/24']);
    const { addresses } = story();
    const node = first();
    const before = await nodes().createPod('crashes', { networks, node: node.name });
    const address = await nodes().addressOf(before, 'net1');
    const ref = story().ref('crashes');
    const [sandbox = ''] = await node.containers('sandbox', ref);
    await node.killContainer(sandbox, 'SIGKILL');
    const after = await nodes().waitRestarted(before);
    expect(await nodes().addressOf(after, 'net1')).to.equal(address);
    await nodes().waitNoTrace(node, [sandbox]);
    await addresses.waitHeld([bareAddress(address)]);
  });

  it('leaves no address behind if the interface plugin fails after each ADD of Holdfast', async () => {
    const bridge = bridgeOf('broken');
    await story().network('broken', {
      config: {
        cniVersion: '1.0.0',
        name: `${story().namespace}-broken`,
        plugins: [
          { type: 'bridge', bridge, ipam: { type: 'holdfast', subnets: [{ cidr: '10.83.2.0/29' }] } },
          { type: 'tuning', sysctl: { 'net.ipv4.conf.IFNAME.no_such_setting': '1' } },
        ],
      },
    });
    await nodes().requestPod('broken', { networks: [{ name: 'broken' }], node: first().name });
    const { addresses, client } = story();
    // more sandboxes than the pool has addresses
    await waitForEvent(client, story().ref('broken'), 'FailedCreatePodSandBox', /no_such_setting/);
    await addresses.waitHeld([]); // kubelet tries again after some seconds
    await client.delete(PODS, story().ref('broken'));
    await addresses.waitHeld([]);
  });

  it('starts a static pod with its address, and takes it back when its manifest is removed', async () => {
    await nodes().createNetwork('blue', ['10.83.3.0/24']);
    const node = first();
    const name = 'static';
    const ref = story().ref(`${name}-${node.name}`);
    const path = `/etc/kubernetes/manifests/${name}.json`;
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace: story().namespace,
        annotations: { [NETWORKS_ANNOTATION]: JSON.stringify(networks) },
      },
      spec: { containers: [{ name: 'main', image: ORDINARY_IMAGE }], terminationGracePeriodSeconds: 1 },
    };
    await node.writeFile(path, JSON.stringify(pod));
    try {
      await until('the mirror pod', () => story().client.find(PODS, ref));
      const mirror = await nodes().waitReady(ref.name);
      const address = await nodes().addressOf(mirror, 'net1');
      await story().addresses.waitHeld([bareAddress(address)]);
    } finally {
      await node.run('rm', path);
    }
    await story().addresses.waitHeld([]);
    await until('the mirror pod to be gone', async () => (await story().client.find(PODS, ref)) === undefined);
  });
});
