import { expect } from 'chai';
import { type Pod, podInterfaceName } from '../../api/pod.js';
import { type ApiProxy, withAgentProxy } from '../../bed/faults/api-proxy.js';
import { AgentPods } from '../../bed/faults/agent-pods.js';
import { describeStory, itOnWire, type WireContext } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { untilValue } from '../../bed/processes/wait.js';

const DATA = podInterfaceName('data');

/** Runs a test in which the agents of both nodes are behind proxies. */
async function behindProxies(on: WireContext, run: (proxies: readonly ApiProxy[]) => Promise<void>): Promise<void> {
  await withAgentProxy({ ...on, node: 'node-1' }, (first) =>
    withAgentProxy({ ...on, node: 'node-2' }, (second) => run([first.proxy, second.proxy])),
  );
}

function asking(address: string): Record<string, string> {
  return { 'network.kubevirt.io/addresses': JSON.stringify({ data: [address] }) };
}

/** Gives the address of the VM to another owner. */
async function giveAway(story: Story, address: string): Promise<void> {
  await story.createVm('heir', { data: 'blue' }, { running: false, annotations: asking(address) });
  await story.addresses.waitForExactIPs('heir.data', [`${address}/24`]);
}

async function launcherOnWire(story: Story, pods: AgentPods): Promise<string[]> {
  const [launcher] = await story.launchers('vm1');
  return pods.waitRunning(launcher!.metadata.name, DATA);
}

describeStory('An agent whose watches deliver no events', (story) => {
  itOnWire('never gives the address of a deleted claim to a new VM of the same name', async (on) => {
    const pods = new AgentPods(story(), on.wire);
    await story().addresses.createNetwork('blue', ['10.65.0.0/24']);
    await behindProxies(on, async (proxies) => {
      await story().runVm('vm1', { data: 'blue' }, { annotations: asking('10.65.0.10') });
      expect(await launcherOnWire(story(), pods)).to.deep.equal(['10.65.0.10']);
      for (const proxy of proxies) proxy.pauseWatches();
      await story().deleteVm('vm1', 'Background');
      await story().waitGone('vm1');
      await story().waitForClaims([]);
      await giveAway(story(), '10.65.0.10');
      await story().runVm('vm1', { data: 'blue' }, { annotations: asking('10.65.0.20') });
      expect(await launcherOnWire(story(), pods)).to.deep.equal(['10.65.0.20']);
      for (const proxy of proxies) proxy.resumeWatches();
    });
  });

  itOnWire('gives a VM the address to which its claim has changed', async (on) => {
    const pods = new AgentPods(story(), on.wire);
    await story().addresses.createNetwork('blue', ['10.65.1.0/24']);
    await behindProxies(on, async (proxies) => {
      await story().runVm('vm1', { data: 'blue' }, { annotations: asking('10.65.1.10') });
      await story().stop('vm1');
      for (const proxy of proxies) proxy.pauseWatches();
      await story().requestAddresses('vm1', { data: ['10.65.1.20'] });
      await story().addresses.waitForExactIPs('vm1.data', ['10.65.1.20/24']);
      await giveAway(story(), '10.65.1.10');
      await story().start('vm1');
      expect(await launcherOnWire(story(), pods)).to.deep.equal(['10.65.1.20']);
      for (const proxy of proxies) proxy.resumeWatches();
    });
  });
});

describeStory('An agent without a connection to the API server', (story) => {
  itOnWire('answers that the kubelet retries if its cached address may have another owner', async (on) => {
    const pods = new AgentPods(story(), on.wire);
    await story().addresses.createNetwork('blue', ['10.65.2.0/24']);
    on.bed.switches.set({ holdNetworks: true }, { namespace: story().namespace, name: 'vm1' });
    await behindProxies(on, async (proxies) => {
      await story().createVm('vm1', { data: 'blue' }, { annotations: asking('10.65.2.10') });
      await story().addresses.waitForExactIPs('vm1.data', ['10.65.2.10/24']);
      const launcher = await untilValue(
        'the launcher to be bound',
        async () => (await story().launchers('vm1'))[0],
        (pod) => pod?.spec?.nodeName !== undefined,
        { timeoutMs: 60_000 },
      );
      expect(await added(on, pods, launcher!)).to.deep.include({ exitCode: 0, addresses: ['10.65.2.10/24'] });
      for (const proxy of proxies) proxy.disconnect();
      await story().deleteVm('vm1', 'Background');
      await story().waitGone('vm1');
      await giveAway(story(), '10.65.2.10');
      expect(await added(on, pods, launcher!)).to.deep.include({ exitCode: 1, code: 11 });
      for (const proxy of proxies) proxy.reconnect();
    });
  });
});

/** Calls ADD of our plugin for a launcher with its own container id. */
async function added({ wire }: WireContext, pods: AgentPods, pod: Pod): Promise<object> {
  const config = await pods.config('blue');
  const { exitCode, answer } = await wire.callPlugin(pod.spec?.nodeName ?? '', {
    verb: 'ADD',
    config,
    pod,
    containerId: 'c'.repeat(64),
    netns: '/proc/self/ns/net',
    interfaceName: DATA,
  });
  const { code, ips = [] } = answer as { code?: number; ips?: { address: string }[] };
  return { exitCode, code, addresses: ips.map(({ address }) => address) };
}
