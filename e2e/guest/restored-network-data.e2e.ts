import { expect } from 'chai';
import {
  EXCLUDE_FROM_BACKUP_LABEL,
  NETWORK_DATA_SECRET_TYPE,
  NETWORK_DATA_WRITTEN,
  REQUESTED_ADDRESSES_ANNOTATION,
} from '../../api/names.js';
import { IPAM_CLAIMS, SECRETS, type Secret, VIRTUAL_MACHINES } from '../../kube/resources.js';
import { VMIS } from '../../bed/node/vmi/virtual-machine-instance.js';
import { HoldfastProcess } from '../../bed/holdfast/process.js';
import { until } from '../../bed/processes/wait.js';
import { backUp, Velero } from '../../bed/story/backup-tools.js';
import { describeStory, itOnBed } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { bareAddress } from '../../test/bare-address.js';
import { environment } from '../../bed/story/hooks.js';

const SECRET = 'vm1-network';
const STALE = { networkdata: Buffer.from('version: 2').toString('base64') };
/** It has no annotation: its pool makes network data the default. */
const DEFAULT_DATA = {
  macs: { default: '02:00:00:00:07:20', data: '02:00:00:00:07:21' },
  networkData: { secret: SECRET },
  running: false,
};

describeStory('A VM with network data that is restored from a backup', (story) => {
  let guest: HoldfastProcess | undefined;
  let velero: Velero;

  before('start the guest process', async () => {
    const { bed } = environment();
    if (bed === undefined) return;
    guest = new HoldfastProcess(bed, 'guest', bed.controller.ports);
    await guest.start();
  });

  after('stop the guest process', () => guest?.stop());

  beforeEach('create the network', async () => {
    const network = `${story().namespace}-flat`;
    const config = { cniVersion: '0.4.0', name: network, type: 'bridge', bridge: bridgeOf(network) };
    await story().network('flat', { config: { ...config, allowPersistentIPs: true, disableContainerInterface: true } });
    const subnets = [{ cidr: '10.77.0.0/24' }];
    const guestOptions = { networkData: { default: true } };
    await story().addresses.createPool(network, { network, subnets, guest: guestOptions, cooldownSeconds: 1 });
  });

  beforeEach('install Velero', async () => {
    velero = await Velero.install(environment(), await story().otherNamespace());
  });

  afterEach('remove Velero', () => velero.remove());

  function secret(): Promise<Secret> {
    return story().client.get(SECRETS, story().ref(SECRET));
  }

  async function textOfSecret(): Promise<string> {
    return Buffer.from((await secret()).data?.networkdata ?? '', 'base64').toString();
  }

  async function removeVm(): Promise<void> {
    await story().deleteVm('vm1', 'Background');
    await story().claims.waitGone('vm1.data');
    await until('the Secret to be deleted with its VM', async () => {
      return (await story().client.find(SECRETS, story().ref(SECRET))) === undefined;
    });
  }

  itOnBed('gets a new Secret with its former address, because Velero saves no Secret with network data', async () => {
    const { client, namespace, addresses } = story();
    await story().createVm('first', { data: 'flat' }, { running: false });
    await addresses.waitForIPs('first.data');
    await story().createVm('vm1', { data: 'flat' }, DEFAULT_DATA);
    const mine = await addresses.waitForIPs('vm1.data');
    await addresses.waitForCondition('vm1.data', NETWORK_DATA_WRITTEN, 'True');
    await client.create(SECRETS, { metadata: story().ref('password'), data: { text: 'c2VjcmV0' } });
    const backup = await backUp(client, namespace);
    const saved = backup.filter(({ resource }) => resource === SECRETS).map(({ object }) => object.metadata.name);
    expect(saved).to.include('password').and.not.to.include(SECRET);

    await removeVm();
    // without its request, the restored claim would get this address
    await story().deleteVm('first', 'Background');
    await story().claims.waitGone('first.data');
    await velero.restore(backup, namespace);
    await addresses.waitForExactIPs('vm1.data', mine);
    await until('the Secret to have the address', async () => {
      return (
        (await client.find(SECRETS, story().ref(SECRET))) !== undefined &&
        (await textOfSecret()).includes(mine[0] ?? '')
      );
    });
    const vm = await client.get(VIRTUAL_MACHINES, story().ref('vm1'));
    expect((await secret()).metadata.ownerReferences?.map(({ uid }) => uid)).to.deep.equal([vm.metadata.uid]);
  });

  itOnBed(
    'does not start with the address of another VM in a Secret that its tool restored, although its claim does not exist yet',
    async ({ controller }) => {
      const { client, addresses } = story();
      await story().createVm('vm1', { data: 'flat' }, DEFAULT_DATA);
      const [former = ''] = await addresses.waitForIPs('vm1.data');
      await addresses.waitForCondition('vm1.data', NETWORK_DATA_WRITTEN, 'True');
      const { metadata, ...saved } = await secret();
      expect(await textOfSecret()).to.include(former);
      expect(metadata.labels).to.include({ [EXCLUDE_FROM_BACKUP_LABEL]: 'true' });
      const vm = await client.get(VIRTUAL_MACHINES, story().ref('vm1'));
      await removeVm();
      const requested = { [REQUESTED_ADDRESSES_ANNOTATION]: JSON.stringify({ data: [bareAddress(former)] }) };
      await story().createVm('vm2', { data: 'flat' }, { annotations: requested, running: false });
      await addresses.waitForExactIPs('vm2.data', [former]);

      await controller.stop();
      try {
        const { labels = {} } = metadata;
        await client.create(SECRETS, { ...saved, metadata: { ...story().ref(SECRET), labels } });
        await client.create(VIRTUAL_MACHINES, { ...vm, metadata: story().ref('vm1') });
        await until('the former address to be removed', async () => (await textOfSecret()) === '');
        await story().start('vm1');
        expect(await textOfSecret()).to.equal('');
        expect(await client.find(IPAM_CLAIMS, story().ref('vm1.data'))).to.equal(undefined);
      } finally {
        await controller.start();
      }
      const [address = ''] = await addresses.waitForIPs('vm1.data');
      expect(address).not.to.equal(former);
      await addresses.waitForCondition('vm1.data', NETWORK_DATA_WRITTEN, 'True');
      expect(await textOfSecret())
        .to.include(address)
        .and.not.to.include(former);
    },
  );

  itOnBed(
    'without user data does not start with a Secret that lost its data, and starts with its claim in a new launcher',
    async ({ controller }) => {
      const { client } = story();
      await controller.stop();
      try {
        await client.create(SECRETS, { metadata: story().ref(SECRET), type: NETWORK_DATA_SECRET_TYPE, data: STALE });
        const networkData = { ...DEFAULT_DATA.networkData, hasUserData: false };
        await story().createVm('vm1', { data: 'flat' }, { ...DEFAULT_DATA, networkData, running: true });
        await until('virt-launcher to fail', async () => {
          const vmi = (await client.find(VMIS, story().ref('vm1')))?.status;
          return vmi?.conditions?.some(({ type, status }) => type === 'Synchronized' && status === 'False') === true;
        });
      } finally {
        await controller.start();
      }
      await story().addresses.waitForCondition('vm1.data', NETWORK_DATA_WRITTEN, 'True');
      expect((await client.get(VMIS, story().ref('vm1'))).status?.phase).to.equal('Scheduled');
      await story().stop('vm1');
      await story().start('vm1');
    },
  );
});
