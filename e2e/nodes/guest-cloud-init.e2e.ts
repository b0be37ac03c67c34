import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { GUEST_CONFIGURED, NETWORK_DATA_ANNOTATION } from '../../api/names.js';
import { CloudInit } from '../../guest/network-data/testing/cloud-init.js';
import { describeWithGuests } from '../../bed/story/nodes.js';
import { bareAddress } from '../../test/bare-address.js';

const MACS = { default: '02:00:00:00:84:01', data: '02:00:00:00:84:02' };
const NAMES = { [MACS.default]: 'eth0', [MACS.data]: 'eth1' };
const SECRET = 'web-network';

/** Python takes too long on an emulated processor, so cloud-init runs beside the guest, which brings its files into effect. */
describeWithGuests('A guest that reads its network data from the disk of cloud-init', (story, nodes) => {
  let folder: string;

  beforeEach('make a folder', async () => {
    folder = await mkdtemp(join(tmpdir(), 'cloud-init-'));
  });
  afterEach('remove the folder', () => rm(folder, { recursive: true }));

  it('gets the addresses of its claim by the files of Debian that cloud-init makes of it', async function () {
    this.timeout(200_000);
    const cloudInit = await CloudInit.get().catch(() => this.skip());
    const network = `${story().namespace}-flat`;
    const bridge = await nodes().connectBridge(network);
    const config = { cniVersion: '1.0.0', name: network, type: 'bridge', bridge, disableContainerInterface: true };
    await story().network('flat', { config: { ...config, allowPersistentIPs: true } });
    const subnets = [{ cidr: '10.84.0.0/24', gateway: '10.84.0.1' }, { cidr: 'fd00:84::/64' }];
    await story().addresses.createPool(network, { network, subnets, guest: { mtu: 1400 } });
    const annotations = { [NETWORK_DATA_ANNOTATION]: SECRET };
    const data = { networkData: { secret: SECRET }, macs: MACS, annotations };
    await story().createVm('web', { data: 'flat' }, data);
    const guest = nodes().guest(await story().waitRunning('web'));
    const addresses = await story().addresses.waitForIPs('web.data');
    await guest.waitAddress('eth0', '10.0.2.2');

    const onDisk = await guest.run('mkdir -p /mnt && mount -t iso9660 -o ro /dev/vda /mnt && cat /mnt/network-config');
    const files = await interfacesFile(cloudInit, onDisk);
    const encoded = Buffer.from(files).toString('base64');
    await guest.run('mkdir -p /etc/network/if-pre-up.d /etc/network/if-up.d /run/network && killall udhcpc');
    await guest.run(`echo ${encoded} | base64 -d > /etc/network/interfaces && /sbin/ifup eth1`);
    for (const address of addresses) await guest.waitAddress('eth1', bareAddress(address));
    expect(await guest.run('cat /sys/class/net/eth1/mtu')).to.equal('1400\n');
    await story().addresses.waitForCondition('web.data', GUEST_CONFIGURED, 'True');
  });

  /** What cloud-init writes for ifupdown. */
  async function interfacesFile(cloudInit: CloudInit, networkConfig: string): Promise<string> {
    const file = join(folder, 'network-config');
    await writeFile(file, networkConfig);
    const out = join(folder, 'out');
    await cloudInit.convert(NAMES, [{ file, kind: 'yaml', renderer: 'eni', distro: 'debian', out }]);
    return readFile(join(out, 'etc/network/interfaces.d/50-cloud-init'), 'utf8');
  }
});
