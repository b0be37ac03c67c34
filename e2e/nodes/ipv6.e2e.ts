import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { describeOnNodes } from '../../bed/story/nodes.js';
import { bareAddress } from '../../test/bare-address.js';

describeOnNodes('An IPv6-only network of real nodes', (story, nodes) => {
  it('gives IPv6 addresses alone to pods and a VM, which reach each other', async () => {
    await nodes().createNetwork('six', ['fd00:86::/64']);
    const networks = [{ name: 'six' }];
    await story().createVm('web', { data: 'six' });
    const pods = await Promise.all(
      nodes().names.map((node, index) => nodes().createPod(`pod-${String(index)}`, { networks, node })),
    );
    await story().waitRunning('web');
    const [ofVm = ''] = await story().addresses.waitForIPs('web.data');
    const [launcher] = await story().launchers('web');
    expect(await nodes().addressOf(launcher!, podInterfaceName('data'))).to.equal(ofVm);
    const addresses = [...(await Promise.all(pods.map((pod) => nodes().addressOf(pod, 'net1')))), ofVm];
    expect(new Set(addresses).size).to.equal(3);
    for (const address of addresses) expect(address).to.match(/^fd00:86::.*\/64$/);
    for (const pod of [...pods, launcher!])
      for (const address of addresses) await nodes().ping(pod, bareAddress(address));
    await story().addresses.waitHeld(addresses.map(bareAddress));
  });
});
