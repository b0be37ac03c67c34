import { expect } from 'chai';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { podInterfaceName } from '../../api/pod.js';
import { arp, ethernet } from '../../bed/network/frames.js';
import { nodeFolder } from '../../bed/network/open-pod-networks.js';
import { guestLocation } from '../../bed/node/wired-guests.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { describeStory } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import type { Story } from '../../bed/story/story.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';
import { bareAddress } from '../../test/bare-address.js';

const DATA = podInterfaceName('data');
const ARP = 0x0806;
const MAC = '02:00:00:79:20:07';
const CHAINED = { type: 'holdfast' };

/** Creates a layer-2 network with a guard, for VMs, and a NAD with IPAM for pods. @returns the name of the network */
async function createNetwork(story: Story): Promise<string> {
  const network = `${story.namespace}-flat`;
  const subnets = [{ cidr: '10.79.20.0/24' }];
  const spec = { network, subnets, guest: {}, namespaces: [story.namespace], guard: { mode: 'Enforce' as const } };
  await story.addresses.createPool(network, spec);
  const bridge = { type: 'bridge', bridge: bridgeOf(network), disableContainerInterface: true };
  const config = { cniVersion: '0.4.0', name: network, allowPersistentIPs: true, plugins: [bridge, CHAINED] };
  await story.network('vms', { config });
  await story.network('pods', { network, subnets: [] });
  return network;
}

describeStory('A VM on a layer-2 network whose NAD has Holdfast as a chained plugin', (story) => {
  itWithWireStory('sends only with the address of its claim, and leaves no rules behind', story, async (wire) => {
    const network = await createNetwork(story());
    const { wire: segment } = wire.context.wire;
    const vmi = await story().runVm('vm1', { data: 'vms' }, { macs: { data: MAC } });
    const [own = ''] = (await story().addresses.waitForIPs('vm1.data')).map(bareAddress);
    const launcher = await wire.launcher('vm1');
    const node = launcher.spec?.nodeName ?? '';
    const neighbour = await wire.createNeighbour('pods', node);
    const guest = guestLocation(vmi);
    const { mac } = await until('the interface of the guest', async () =>
      (await segment.interfaces(guest)).find(({ name }) => name === 'eth1'),
    );
    await segment.run(guest, { command: '/usr/sbin/ip', args: ['link', 'set', 'eth1', 'up'] });
    const capture = await segment.capture(wire.context.wire.locationOf(neighbour), 'net1', '');
    const send = (ip: string) => {
      const body = arp({ operation: 'request', mac, ip, targetIp: '10.79.20.250' });
      return segment.sendFrames(guest, 'eth1', [ethernet({ from: mac, type: ARP, body })]);
    };
    const hasArpOf = (ip: string) => capture.frames.some((frame) => frame.includes(arpSender(mac, ip)));
    await until('the own ARP to arrive', async () => {
      await send('10.79.20.200');
      await send(own);
      return hasArpOf(own);
    });
    expect(hasArpOf('10.79.20.200')).to.equal(false);
    await capture.stop();

    const prevResult = { cniVersion: '0.4.0', interfaces: [{ name: DATA }], ips: [] };
    const config = { cniVersion: '0.4.0', name: network, ...CHAINED, prevResult };
    const check = { verb: 'CHECK' as const, config, pod: launcher, interfaceName: DATA };
    expect(await wire.context.wire.callPlugin(node, check)).to.deep.equal({ exitCode: 0, answer: undefined });
    const notes = () => notesOf(nodeFolder(wire.context.bed, node));
    expect(await notes()).to.have.length(2);
    await story().stop('vm1');
    await wire.deletePod('neighbour');
    await untilValue('no rules to be left', notes, (names) => names.length === 0);
  });

  itWithWireStory('is refused if no pool serves the network, because its guard is not known', story, async (wire) => {
    const config = { cniVersion: '0.4.0', name: `${story().namespace}-nobody`, plugins: [bridgeOfNobody(), CHAINED] };
    await story().network('nobody', { config });
    await wire.createPod('pod', { networks: [{ name: 'nobody' }] });
    const failure = await wire.waitForSandboxFailure('pod', /Holdfast does not serve network/);
    expect(failure).to.include('no AddressPool with spec.guest serves network');
  });

  function bridgeOfNobody(): object {
    return { type: 'bridge', bridge: bridgeOf('nobody'), disableContainerInterface: true };
  }
});

/** The part of an ARP message with its sender. */
function arpSender(mac: string, ip: string): Buffer {
  return arp({ operation: 'request', mac, ip, targetIp: '0.0.0.0' }).subarray(8, 18);
}

async function notesOf(folder: string): Promise<string[]> {
  const names = await readdir(join(folder, 'run-holdfast', 'guards'));
  return names.filter((name) => name.startsWith('holdfast_'));
}
