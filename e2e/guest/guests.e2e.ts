import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import { SECRETS } from '../../kube/resources.js';
import { guestLocation } from '../../bed/node/wired-guests.js';
import type { GuestInterface } from '../../bed/node/vmi/virtual-machine-instance.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { describeStory } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { waitForVmi } from '../../bed/story/vms/vm.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';

const MAC = '02:00:00:00:07:07';
const ADDRESS = '10.75.0.7';

/** Simulated guests behave as real ones where the plugin leaves the launcher's interface down. */
describeStory('A guest on a network without IPAM', (story) => {
  const flat = (network: string) => ({
    cniVersion: '0.4.0',
    name: network,
    type: 'bridge',
    bridge: bridgeOf(network),
    disableContainerInterface: true,
  });
  const reported = (vmi: VirtualMachineInstance): GuestInterface | undefined =>
    vmi.status?.interfaces?.find(({ name }) => name === 'data');
  const untilReported = (isRight: (data: GuestInterface) => boolean) =>
    waitForVmi(story().client, story().ref('vm1'), 'to report the interface', (vmi) => {
      const data = reported(vmi);
      return data !== undefined && isRight(data);
    });

  itWithWireStory(
    'starts when the Secret of its network data exists, and keeps its address in a migration',
    story,
    async (wire) => {
      const network = `${story().namespace}-flat`;
      await story().network('flat', { config: flat(network) });
      await story().createVm('vm1', { data: 'flat' }, { macs: { data: MAC }, networkData: { secret: 'vm1-net' } });
      const [pending] = await until('a launcher', async () => {
        const found = await story().launchers('vm1');
        return found.length > 0 && found;
      });
      await story().waitForEvent(pending!.metadata.name, 'FailedMount', /secret "vm1-net" not found/);
      expect((await wire.launcher('vm1')).status?.phase).to.equal('Pending');
      await story().client.create(SECRETS, { metadata: story().ref('vm1-net'), data: { networkdata: '' } });
      const vmi = await story().waitRunning('vm1');
      const launcher = await wire.launcher('vm1');
      expect(await wire.context.wire.interfaceOf(launcher, podInterfaceName('data'))).to.include({ up: true });

      const guest = guestLocation(vmi);
      const ends = wire.context.wire.wire;
      expect((await ends.interfaces(guest)).map(({ name, mac }) => [name, mac])).to.deep.equal([['eth1', MAC]]);
      await untilReported(({ infoSource, ipAddress }) => {
        return infoSource === 'domain, guest-agent, multus-status' && ipAddress === undefined;
      });
      await ends.run(guest, { command: '/sbin/ip', args: ['link', 'set', 'eth1', 'up'] });
      await ends.addAddress(guest, 'eth1', `${ADDRESS}/24`);
      await untilReported(({ ipAddress, interfaceName }) => ipAddress === ADDRESS && interfaceName === 'eth1');

      const client = `${story().namespace}-client`;
      await ends.addHost(client, bridgeOf(network), ['10.75.0.100/24']);
      const watched = await ends.startPing(`host/${client}`, ADDRESS, { intervalMs: 20 });
      await story().migrate('vm1', 'Succeeded');
      await untilValue(
        'the guest to answer always',
        () => ends.ping(`host/${client}`, ADDRESS),
        ({ lost, duplicates }) => lost === 0 && duplicates === 0,
      );
      expect((await watched.stop()).received).to.be.greaterThan(0);
      await ends.removeHost(client);

      wire.context.bed.switches.set({ guestAgent: false }, story().ref('vm1'));
      await untilReported(({ infoSource, ipAddress }) => {
        return infoSource === 'domain, multus-status' && ipAddress === undefined;
      });
      await story().stop('vm1');
      await until('the guest to be gone', async () => !(guest in (await ends.inventory())));
    },
  );
});
