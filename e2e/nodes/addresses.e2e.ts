import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { until } from '../../bed/processes/wait.js';
import { describeOnNodes } from '../../bed/story/nodes.js';
import { bareAddress } from '../../test/bare-address.js';

const SUBNET = '10.81.0.0/28';

describeOnNodes('Pods and VMs on real nodes', (story, nodes) => {
  it('get addresses from kubelet, containerd, Multus and the bridge plugin, and reach each other', async () => {
    await nodes().createNetwork('blue', [SUBNET]);
    const pods = await Promise.all(
      nodes().names.map((node, index) =>
        nodes().createPod(`pod-${String(index)}`, { networks: [{ name: 'blue' }], node }),
      ),
    );
    const addresses = await Promise.all(pods.map((pod) => nodes().addressOf(pod, 'net1')));
    expect(new Set(addresses).size).to.equal(pods.length);
    pods.forEach((pod, index) => expect(nodes().reported(pod, 'net1')).to.deep.equal([bareAddress(addresses[index]!)]));
    await nodes().ping(pods[0]!, bareAddress(addresses[1]!));
  });

  it('keep the addresses of a VM while it is stopped, started, restarted and migrated', async () => {
    await nodes().createNetwork('blue', [SUBNET]);
    await story().runVm('web', { data: 'blue' });
    const [address = ''] = await story().addresses.waitForIPs('web.data');
    const launcher = async () => (await story().launchers('web'))[0]!;
    const hasAddress = async () => {
      const pod = await launcher();
      expect(await nodes().addressOf(pod, podInterfaceName('data'))).to.equal(address);
      return pod.spec?.nodeName;
    };
    await hasAddress();
    await story().stop('web');
    await story().start('web');
    await hasAddress();
    await story().restart('web');
    const before = await hasAddress();
    await story().migrate('web', 'Succeeded');
    const after = await hasAddress();
    expect(after).not.to.equal(before);
    await story().deleteVm('web', 'Background');
    await story().waitGone('web');
    for (const { message, count } of await nodes().startedContainers()) expect(count, message).to.equal(1);
    await until('the claim to be gone', async () => (await story().claimNames()).length === 0);
  });
});
