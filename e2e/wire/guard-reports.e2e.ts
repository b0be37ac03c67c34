import { expect } from 'chai';
import { join } from 'node:path';
import { podInterfaceName } from '../../api/pod.js';
import { arp, ethernet } from '../../bed/network/frames.js';
import { cniBinFolder } from '../../bed/network/open-pod-networks.js';
import { untilValue } from '../../bed/processes/wait.js';
import { describeStory } from '../../bed/story/describe.js';
import { KubectlPlugin } from '../../bed/story/kubectl/kubectl-plugin.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';
import { bareAddress } from '../../test/bare-address.js';

const ARP = 0x0806;
/** Where a node has the notes of the plugin. */
const GUARDS = '/run/holdfast/guards';
/** Of the counters, and of the agent that reads them. */
const ROUNDS_MS = 60_000;
const NETWORKS = {
  seen: { mode: 'Observe', subnet: '10.74.0.0/24' },
  barred: { mode: 'Enforce', subnet: '10.74.1.0/24' },
};

describeStory('A guest that uses the address of a neighbour', (story) => {
  itWithWireStory('is seen in the metrics of the agent, an event of its VM, and trace', story, async (wire) => {
    const { bed, agents } = wire.context;
    const { wire: segment } = wire.context.wire;
    for (const [nad, { mode, subnet }] of Object.entries(NETWORKS))
      await story().addresses.createNetwork(nad, [subnet], { guard: { mode } });
    await story().runVm('vm1', { seen: 'seen', barred: 'barred' });
    const launcher = await wire.launcher('vm1');
    const node = launcher.spec?.nodeName ?? '';
    const counting = { command: join(cniBinFolder(bed), 'holdfast'), args: ['count-drops', GUARDS] };
    const counter = await segment.start(`node/${node}`, counting);
    try {
      const metrics = (isDone: (text: string) => boolean) =>
        untilValue('the metrics of guards', () => agents.on(node).metrics(), isDone, { timeoutMs: ROUNDS_MS });
      await metrics((text) => /^holdfast_guard_counters_status 1$/m.test(text));
      for (const nad of Object.keys(NETWORKS)) {
        const name = podInterfaceName(nad);
        const { mac = '' } = (await wire.context.wire.interfaceOf(launcher, name)) ?? {};
        const [own = ''] = (await wire.context.wire.addressesOf(launcher, name)).map(bareAddress);
        const ip = own.replace(/\d+$/, '200');
        const body = arp({ operation: 'request', mac, ip, targetIp: ip });
        await segment.sendFrames(wire.context.wire.locationOf(launcher), name, [
          ethernet({ from: mac, type: ARP, body }),
        ]);
      }
      const dropped = (mode: string) =>
        new RegExp(`^holdfast_guard_dropped_packets_total\\{.*mode="${mode}",reason="arp_sender"\\} 1$`, 'm');
      await metrics((text) => dropped('Observe').test(text) && dropped('Enforce').test(text));
      for (const [nad, { mode }] of Object.entries(NETWORKS)) {
        const { message } = await story().waitForEvent('vm1', 'TrafficNotOfClaim', new RegExp(podInterfaceName(nad)));
        expect(message).to.include(mode === 'Enforce' ? ' drops: ARP for another address' : 'Enforce of AddressPool');
        expect(message, 'what the guest itself sent').not.to.match(/source_mac|ipv4_source|ipv6_source/);
      }
      const { stdout } = await new KubectlPlugin(bed.kubeconfig, ['trace', 'vm', 'vm1', '-n', story().namespace])
        .result;
      expect(stdout).to.include('TrafficNotOfClaim: Interface');
    } finally {
      await counter.stop();
    }
  });
});
