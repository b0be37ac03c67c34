import { expect } from 'chai';
import type { Pod } from '../../api/pod.js';
import { TCP_CLIENT, TCP_PORT } from '../../bed/network/migration/tcp-connection.js';
import { until } from '../../bed/processes/wait.js';
import { describeWithGuests } from '../../bed/story/nodes.js';
import { bareAddress } from '../../test/bare-address.js';

const MAC = '02:00:00:00:83:07';
const EVERY_MS = 10;
/** A target has up to this time to start, and the guest to move. */
const FOR_MS = 40_000;

/** What a third host sees of a migration. */
interface Figures {
  readonly sent: number;
  /** Echo requests without an answer. */
  readonly lost: number;
  /** The longest time without an answer. */
  readonly longestGapMs: number;
  /** Echo requests that the kernel of the target's launcher received. The guest has another one. */
  readonly misdelivered: number;
  /** `kept`, or the error that ended a TCP connection. */
  readonly connection: string;
}

describeWithGuests('A live migration by QEMU', (story, nodes) => {
  it('keeps address, memory and connections of a guest, and misdelivers nothing, if its MAC address is not in the spec', async function () {
    this.timeout(300_000);
    await nodes().createNetwork('blue', ['10.83.0.0/28']);
    const figures = await observe('bridge, own MACs', {});
    expect(figures.misdelivered).to.equal(0);
    expect(figures.connection).to.equal('kept');
  });

  it('misdelivers packets until the target is prepared, if the MAC address is in the spec', async function () {
    this.timeout(300_000);
    await nodes().createNetwork('blue', ['10.83.1.0/28']);
    const figures = await observe('bridge, MAC in the spec', { data: MAC });
    expect(figures.misdelivered).to.be.greaterThan(0);
  });

  it('misdelivers nothing with a MAC address in the spec, if the interface of the target is down', async function () {
    this.timeout(300_000);
    const network = `${story().namespace}-flat`;
    const bridge = await nodes().connectBridge(network);
    const plugin = { type: 'bridge', bridge };
    const vms = { ...plugin, disableContainerInterface: true, allowPersistentIPs: false };
    await story().network('blue', { config: { cniVersion: '1.0.0', name: network, ...vms } });
    const ipam = { type: 'static', addresses: [{ address: '10.83.2.2/24' }] };
    await story().network('client', { config: { cniVersion: '1.0.0', name: network, ...plugin, ipam } });
    const figures = await observe('layer 2, disableContainerInterface', { data: MAC }, '10.83.2.7/24');
    expect(figures.misdelivered).to.equal(0);
    expect(figures.connection).to.equal('kept');
  });

  /** @param fixed the address that the guest gives itself, without IPAM */
  async function observe(title: string, macs: Record<string, string>, fixed?: string): Promise<Figures> {
    const client = await nodes().createPod('client', { networks: [{ name: fixed === undefined ? 'blue' : 'client' }] });
    await story().createVm('web', { data: 'blue' }, { macs });
    const vmi = await story().waitRunning('web');
    const guest = nodes().guest(vmi);
    const address = fixed ?? (await story().addresses.waitForIPs('web.data'))[0]!;
    await until('the guest to answer', () => guest.run('true').then(() => true));
    if (fixed !== undefined) await guest.run(`killall udhcpc; ip address add ${fixed} dev eth1`);
    await guest.waitAddress('eth1', bareAddress(address));
    await guest.run(`nc -ll -p ${String(TCP_PORT)} -e cat > /dev/null 2>&1 & echo kept > /run/memory`);
    const [source] = await story().launchers('web');

    const node = nodes().node(client.spec?.nodeName);
    const count = String(FOR_MS / EVERY_MS);
    const pinged = node.runInPod(
      client,
      'sh',
      '-c',
      `busybox ping -i 0.01 -c ${count} -W 2 ${bareAddress(address)} || true`,
    );
    const connection = node.runInPod(client, process.execPath, '-e', TCP_CLIENT, bareAddress(address), String(FOR_MS));
    await story().migrate('web', 'Succeeded');
    const [launcher] = await story().launchers('web');
    expect(launcher?.spec?.nodeName).not.to.equal(source?.spec?.nodeName);
    const misdelivered = await echoesIn(launcher!);
    expect(await nodes().guest(vmi).run('cat /run/memory')).to.equal('kept\n');
    const answered = sequenceNumbers(await pinged);
    const figures = {
      sent: Number(count),
      lost: Number(count) - answered.size,
      longestGapMs: longestGap([...answered], Number(count)) * EVERY_MS,
      misdelivered,
      connection: await connection,
    };
    process.stdout.write(`        ${title}: ${JSON.stringify(figures)}\n`);
    return figures;
  }

  /** Echo requests that the kernel of a pod has received. */
  async function echoesIn(pod: Pod): Promise<number> {
    const text = await nodes().node(pod.spec?.nodeName).runInPod(pod, 'cat', '/proc/net/snmp');
    const [names = '', counts = ''] = text.split('\n').filter((line) => line.startsWith('Icmp:'));
    return Number(counts.split(' ')[names.split(' ').indexOf('InEchos')]);
  }
});

function sequenceNumbers(output: string): Set<number> {
  return new Set([...output.matchAll(/ seq=(\d+) /g)].map(([, number]) => Number(number)));
}

/** The longest run of numbers without an answer. */
function longestGap(answered: readonly number[], count: number): number {
  const sorted = [-1, ...answered.toSorted((a, b) => a - b), count];
  return Math.max(...sorted.slice(1).map((number, index) => number - sorted[index]! - 1));
}
