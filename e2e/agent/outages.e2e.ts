import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { type Pod, podInterfaceName } from '../../api/pod.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { parseAddress } from '../../addressing/address/address.js';
import { withAgentProxy } from '../../bed/faults/api-proxy.js';
import { AgentPods } from '../../bed/faults/agent-pods.js';
import { describeStory, itOnWire, type WireContext } from '../../bed/story/describe.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { bareAddress } from '../../test/bare-address.js';

const DATA = podInterfaceName('data');
/** Long, because calls take longer on a busy machine. */
const STALENESS_MS = 15_000;

describeStory('A VM whose launcher is bound when the API server stops', (story) => {
  itOnWire(
    'gets its address from the cache of the agent for a limited time, and later from the API server',
    async (on) => {
      const { bed, wire } = on;
      const pods = new AgentPods(story(), wire);
      const network = await story().addresses.createNetwork('blue', ['10.66.0.0/24', 'fd00:66::/64']);
      bed.switches.set({ holdNetworks: true }, { namespace: story().namespace });
      await story().createVm('vm1', { data: 'blue' });
      const claimed = await story().addresses.waitForIPs('vm1.data');
      const pod = (await untilValue(
        'the launcher to be bound',
        async () => (await story().launchers('vm1'))[0],
        (found) => found?.spec?.nodeName !== undefined,
        { timeoutMs: 60_000 },
      ))!;
      const node = pod.spec?.nodeName ?? '';
      await wire.wire.join(node, bridgeOf(network));
      const config = await pods.config('blue');
      const args = [`--max-staleness=${String(STALENESS_MS)}ms`, '--add-timeout=2s'];
      await withAgentProxy({ ...on, node, args }, async ({ proxy }) => {
        const leases = claimed.map((ip) => `/${leaseName(network, parseAddress(bareAddress(ip)))}`);
        const isPrefetched = () => leases.every((lease) => proxy.requests.some((what) => what.endsWith(lease)));
        await until('its leases to be read ahead', isPrefetched);
        await bed.apiServer.kill();
        try {
          expect(await attached(on, pod, config)).to.deep.equal({ addresses: [...claimed].sort() });
          const refused = await untilValue(
            'nothing to be given any more',
            () => attached(on, pod, config),
            ({ code }) => code !== undefined,
            { timeoutMs: 3 * STALENESS_MS, everyMs: 1_000 },
          );
          expect(refused.code).to.equal(11);
          expect(refused.msg).to.match(/API server is not available/);
        } finally {
          await bed.apiServer.start();
        }
      });
      bed.switches.clear();
      await story().waitRunning('vm1');
      expect(await pods.waitRunning(pod.metadata.name, DATA)).to.deep.equal(claimed.map(bareAddress).sort());
      await story().addresses.waitHeld(claimed.map(bareAddress));
    },
  );
});

/** Calls the bridge plugin for a new sandbox of a pod, as a runtime does without the API server, and removes the sandbox. */
async function attached(
  { wire }: WireContext,
  pod: Pod,
  config: object,
): Promise<{ addresses: string[] } & { code?: number; msg?: string }> {
  const node = pod.spec?.nodeName ?? '';
  const containerId = randomBytes(32).toString('hex');
  const netns = await wire.wire.addPod(node, containerId);
  const call = { plugin: 'bridge', config, pod, containerId, netns, interfaceName: DATA };
  const { exitCode, answer } = await wire.callPlugin(node, { ...call, verb: 'ADD' });
  const interfaces = await wire.wire.interfaces(`pod/${containerId}`);
  const found = interfaces.find(({ name }) => name === DATA)?.addresses ?? [];
  const addresses = found.filter(({ linkLocal }) => !linkLocal).map(({ address }) => address);
  const { exitCode: ended } = await wire.callPlugin(node, { ...call, verb: 'DEL' });
  expect(ended).to.equal(0);
  await wire.wire.removePod(containerId);
  const { code, msg } = answer as { code?: number; msg?: string };
  return { addresses: addresses.sort(), ...(exitCode !== 0 && { code, msg }) };
}
