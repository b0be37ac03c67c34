import { expect } from 'chai';
import type { Pod } from '../../api/pod.js';
import { TCP_CLIENT, TCP_PORT } from '../../bed/network/migration/tcp-connection.js';
import { until } from '../../bed/processes/wait.js';
import { describeWithGuests } from '../../bed/story/nodes.js';
import { bareAddress } from '../../test/bare-address.js';

const MAC = '02:00:00:00:87:07';
const FOR_MS = 40_000;

describeWithGuests('A live migration by QEMU to a held port', (story, nodes) => {
  it('misdelivers nothing and keeps connections in both directions, with a MAC address in the spec', async function () {
    this.timeout(400_000);
    await nodes().createNetwork('blue', ['10.87.0.0/28'], { guard: { mode: 'Observe' } });
    const client = await nodes().createPod('client', { networks: [{ name: 'blue' }] });
    await story().createVm('web', { data: 'blue' }, { macs: { data: MAC } });
    const vmi = await story().waitRunning('web');
    const guest = nodes().guest(vmi);
    const [address = ''] = (await story().addresses.waitForIPs('web.data')).map(bareAddress);
    await until('the guest to answer', () => guest.run('true').then(() => true));
    await guest.waitAddress('eth1', address);
    await guest.run(`nc -ll -p ${String(TCP_PORT)} -e cat > /dev/null 2>&1 &`);
    const node = nodes().node(client.spec?.nodeName);
    for (const direction of ['there', 'back']) {
      const count = FOR_MS / 10;
      const ping = `busybox ping -i 0.01 -c ${String(count)} -W 2 ${address} || true`;
      const pinged = node.runInPod(client, 'sh', '-c', ping);
      const connection = node.runInPod(client, process.execPath, '-e', TCP_CLIENT, address, String(FOR_MS));
      await story().migrate('web', 'Succeeded');
      const [launcher] = await story().launchers('web');
      const misdelivered = await echoesIn(launcher!);
      const answered = [...(await pinged).matchAll(/ seq=(\d+) /g)].map(([, number]) => Number(number));
      const gaps = [...answered, count].map((number, index) => number - (answered[index - 1] ?? -1) - 1);
      const losses = gaps.filter((gap) => gap > 0);
      const figures = {
        sent: count,
        lost: count - answered.length,
        losses,
        misdelivered,
        connection: await connection,
      };
      process.stdout.write(`        ${direction}: ${JSON.stringify(figures)}\n`);
      expect(misdelivered).to.equal(0);
      expect(figures.connection).to.equal('kept');
    }
  });

  async function echoesIn(pod: Pod): Promise<number> {
    const text = await nodes().node(pod.spec?.nodeName).runInPod(pod, 'cat', '/proc/net/snmp');
    const [names = '', counts = ''] = text.split('\n').filter((line) => line.startsWith('Icmp:'));
    return Number(counts.split(' ')[names.split(' ').indexOf('InEchos')]);
  }
});
