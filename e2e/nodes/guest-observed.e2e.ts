import { expect } from 'chai';
import { until } from '../../bed/processes/wait.js';
import { describeWithGuests } from '../../bed/story/nodes.js';
import { isOfGuest } from '../../cni/agent/guard/drop-reasons.js';
import { bareAddress } from '../../test/bare-address.js';

const COUNT =
  'timeout 2 /opt/cni/bin/holdfast count-drops /run/holdfast/guards; cat /run/holdfast/guards/counters.json';

describeWithGuests('A guest of QEMU whose port only observes', (story, nodes) => {
  it('sends nothing that Enforce would drop, from its boot to a migration', async function () {
    this.timeout(400_000);
    await nodes().createNetwork('blue', ['10.89.0.0/28'], { guard: { mode: 'Observe' } });
    const client = await nodes().createPod('client', { networks: [{ name: 'blue' }] });
    const created = Date.now();
    await story().createVm('web', { data: 'blue' });
    const guest = nodes().guest(await story().waitRunning('web'));
    const [address = ''] = (await story().addresses.waitForIPs('web.data')).map(bareAddress);
    await until('the guest to answer', () => guest.run('true').then(() => true));
    await guest.waitAddress('eth1', address);
    await story().migrate('web', 'Succeeded');
    await nodes().node(client.spec?.nodeName).runInPod(client, 'sh', '-c', `busybox ping -c 3 ${address}`);
    for (const node of nodes().cluster.nodes) {
      const counters = JSON.parse(await node.run('sh', '-c', COUNT)) as Record<string, Record<string, number>>;
      process.stdout.write(`        ${node.name}: ${JSON.stringify(counters)}\n`);
      for (const { held: _held, source_mac: ofLauncher = 0, ...others } of Object.values(counters)) {
        expect(others).to.deep.equal({});
        expect(isOfGuest('source_mac', ofLauncher, (Date.now() - created) / 1000)).to.equal(false);
      }
    }
  });
});
