import { expect } from 'chai';
import { until } from '../../bed/processes/wait.js';
import { describeWithGuests } from '../../bed/story/nodes.js';
import { bareAddress } from '../../test/bare-address.js';
import { misdeliveredTo, observeTraffic, serveTcp } from '../../bed/story/real-nodes/migration-traffic.js';

const MAC = '02:00:00:00:83:07';
/** A target has up to this time to start, and the guest to move. */
const FOR_MS = 40_000;

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
  async function observe(title: string, macs: Record<string, string>, fixed?: string) {
    const client = await nodes().createPod('client', { networks: [{ name: fixed === undefined ? 'blue' : 'client' }] });
    const vmi = await story().runVm('web', { data: 'blue' }, { macs });
    const guest = nodes().guest(vmi);
    const address = fixed ?? (await story().addresses.waitForIPs('web.data'))[0]!;
    await until('the guest to answer', () => guest.run('true').then(() => true));
    if (fixed !== undefined) await guest.run(`killall udhcpc; ip address add ${fixed} dev eth1`);
    await guest.waitAddress('eth1', bareAddress(address));
    await serveTcp(guest);
    await guest.run('echo kept > /run/memory');
    const [source] = await story().launchers('web');

    const observed = observeTraffic(nodes(), { client, address: bareAddress(address), forMs: FOR_MS });
    await story().migrate('web', 'Succeeded');
    const [launcher] = await story().launchers('web');
    expect(launcher?.spec?.nodeName).not.to.equal(source?.spec?.nodeName);
    const misdelivered = await misdeliveredTo(nodes(), launcher!);
    expect(await nodes().guest(vmi).run('cat /run/memory')).to.equal('kept\n');
    const figures = { ...(await observed), misdelivered };
    process.stdout.write(`        ${title}: ${JSON.stringify(figures)}\n`);
    return figures;
  }
});
