import { expect } from 'chai';
import { parse } from 'yaml';
import {
  GUEST_CONFIGURED,
  NETWORK_DATA_ANNOTATION,
  NETWORK_DATA_WRITTEN,
  REQUESTED_ADDRESSES_ANNOTATION,
} from '../../api/names.js';
import { ADDRESS_POOLS, SECRETS, VIRTUAL_MACHINES } from '../../kube/resources.js';
import { until } from '../../bed/processes/wait.js';
import { HoldfastProcess } from '../../bed/holdfast/process.js';
import { environment } from '../../bed/story/hooks.js';
import { describeStory, itOnBed } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';

const MACS = { default: '02:00:00:00:07:10', data: '02:00:00:00:07:11' };
const SECRET = 'vm1-network';
/** Twice the --max-staleness of the bed. */
const COOLDOWN_MS = 1_000;
const NETWORK_DATA = {
  macs: MACS,
  networkData: { secret: SECRET },
  annotations: { [NETWORK_DATA_ANNOTATION]: SECRET },
};

/** Network data as the guest's cloud-init reads it. */
interface NetworkConfig {
  version: number;
  ethernets: Record<string, { match: { macaddress: string }; addresses?: string[]; gateway4?: string; dhcp4: boolean }>;
}

describeStory('A VM that asks for network data', (story) => {
  let guest: HoldfastProcess | undefined;

  before('start the guest process', async () => {
    const { bed } = environment();
    if (bed === undefined) return;
    guest = new HoldfastProcess(bed, 'guest', bed.controller.ports);
    await guest.start();
  });

  after('stop the guest process', () => guest?.stop());

  async function createNetwork(): Promise<string> {
    const network = `${story().namespace}-flat`;
    const config = { cniVersion: '0.4.0', name: network, type: 'bridge', bridge: bridgeOf(network) };
    const flat = { ...config, allowPersistentIPs: true, disableContainerInterface: true };
    await story().network('flat', { config: flat });
    const subnets = [{ cidr: '10.76.0.0/24' }];
    await story().addresses.createPool(network, { network, subnets, guest: {}, cooldownSeconds: COOLDOWN_MS / 1_000 });
    return network;
  }

  async function readSecret(): Promise<NetworkConfig> {
    const { data } = await story().client.get(SECRETS, story().ref(SECRET));
    return parse(Buffer.from(data?.networkdata ?? '', 'base64').toString()) as NetworkConfig;
  }

  function waitForCondition(type: string, status: 'True' | 'False') {
    return story().addresses.waitForCondition('vm1.data', type, status);
  }

  itWithWireStory(
    'starts with its addresses in the Secret, which follows the pool, and reports that its guest lacks them',
    story,
    async () => {
      const network = await createNetwork();
      await story().runVm('vm1', { data: 'flat' }, NETWORK_DATA);
      const [address = ''] = await story().addresses.waitForIPs('vm1.data');
      const { version, ethernets } = await readSecret();
      expect(version).to.equal(2);
      expect(ethernets.nic0).to.deep.include({ match: { macaddress: MACS.default }, dhcp4: true });
      expect(ethernets.nic1).to.deep.include({ match: { macaddress: MACS.data }, addresses: [address] });
      await waitForCondition(NETWORK_DATA_WRITTEN, 'True');

      const missing = await waitForCondition(GUEST_CONFIGURED, 'False');
      expect(missing).to.include({ reason: 'AddressMissing' });
      await story().waitForEvent('vm1', 'GuestMisconfigured', /The guest has no IPv4 address on "data"/);

      const subnets = [{ cidr: '10.76.0.0/24', gateway: '10.76.0.254' }];
      const annotations = { 'ipam.holdfast.dev/default-route': 'data' };
      const template = { spec: { template: { metadata: { annotations } } } };
      await story().client.patch(VIRTUAL_MACHINES, story().ref('vm1'), { type: 'merge', body: template });
      const ref = { name: network };
      await story().client.patch(ADDRESS_POOLS, ref, { type: 'merge', body: { spec: { subnets } } });
      await until(
        'the Secret to have the gateway',
        async () => (await readSecret()).ethernets.nic1?.gateway4 === '10.76.0.254',
      );
    },
  );

  itOnBed(
    'loses its address to nobody while its Secret has it, although the guest process is down for longer than the cool-down',
    async () => {
      const ask = (address: string) => ({ [REQUESTED_ADDRESSES_ANNOTATION]: JSON.stringify({ data: [address] }) });
      const [former, next] = ['10.76.0.5', '10.76.0.6'];
      await createNetwork();
      const annotations = { ...NETWORK_DATA.annotations, ...ask(former) };
      await story().createVm('vm1', { data: 'flat' }, { ...NETWORK_DATA, annotations, running: false });
      await waitForCondition(NETWORK_DATA_WRITTEN, 'True');
      await guest?.stop();

      const body = { spec: { template: { metadata: { annotations: ask(next) } } } };
      await story().client.patch(VIRTUAL_MACHINES, story().ref('vm1'), { type: 'merge', body });
      await story().claims.remove('vm1.data');
      await story().addresses.waitForExactIPs('vm1.data', [`${next}/24`]);
      const releasedAt = await until(`${former} to be released`, async () => {
        return (await story().addresses.leases()).get(former)?.spec.releasedAt;
      });
      await until('the cool-down to be over', () => Date.now() > Date.parse(releasedAt) + 2 * COOLDOWN_MS);
      await story().createVm('vm2', { data: 'flat' }, { annotations: ask(former), running: false });
      const { message } = await story().addresses.waitForRefusal('vm2.data', 'IPAddressConflict');
      expect(message).to.include(`${former} is kept until the process guest has removed it`);
      expect((await readSecret()).ethernets.nic1?.addresses).to.deep.equal([`${former}/24`]);

      await guest?.start();
      await story().addresses.waitForExactIPs('vm2.data', [`${former}/24`]);
      expect((await readSecret()).ethernets.nic1?.addresses).to.deep.equal([`${next}/24`]);
    },
  );

  itOnBed(
    'does not get a Secret of somebody else, and one that its owner deletes is written again at the next start',
    async () => {
      await createNetwork();
      const password = { metadata: story().ref(SECRET), type: 'Opaque', data: { networkdata: 'c2VjcmV0' } };
      await story().client.create(SECRETS, password);
      await story().createVm('vm1', { data: 'flat' }, { ...NETWORK_DATA, running: false });
      expect(await waitForCondition(NETWORK_DATA_WRITTEN, 'False')).to.include({ reason: 'SecretForeign' });
      expect((await story().client.get(SECRETS, story().ref(SECRET))).data).to.deep.equal({ networkdata: 'c2VjcmV0' });

      await story().client.delete(SECRETS, story().ref(SECRET));
      await story().start('vm1');
      await waitForCondition(NETWORK_DATA_WRITTEN, 'True');
      await story().stop('vm1');
      await story().client.delete(SECRETS, story().ref(SECRET));
      await story().start('vm1');
      expect(Object.keys((await readSecret()).ethernets)).to.have.length(2);
      await story().deleteVm('vm1', 'Background');
      await until('the Secret to be deleted with its VM', async () => {
        return (await story().client.find(SECRETS, story().ref(SECRET))) === undefined;
      });
    },
  );
});
