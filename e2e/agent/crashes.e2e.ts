import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { crashAfterEachWrite } from '../../bed/faults/crash-after-write.js';
import { AgentPods } from '../../bed/faults/agent-pods.js';
import { describeStory, itOnWire, requireWire, type WireContext } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { bareAddress } from '../../test/bare-address.js';

const DATA = podInterfaceName('data');
const NODE = 'node-1';
/** Longer than the cool-down on the bed, because the restart of an agent takes longer. */
const COOLING = { cooldownSeconds: 60 };

const isLeaseWrite = (_method: string, path: string) => path.includes('/addressleases');

describeStory('An agent killed right after any of its writes', (story) => {
  it('leaves each pod with its own address and no address without a pod', async function () {
    this.timeout(6 * 60_000);
    const on = requireWire(this);
    await nothingHeldByOthers(story());
    const options = { bed: on.bed, process: on.agents.on(NODE), counts: isLeaseWrite };
    const crashes = await crashAfterEachWrite(options, (nth) => runPod(nth, story(), on));
    const kinds = crashes.map((what) => what.replace(/ .*/, ''));
    // both families are leased, freed with the sandbox, leased again for the next one, and freed with the pod
    expect(kinds.filter((kind) => kind === 'POST')).to.have.length.of.at.least(2);
    expect(crashes).to.have.length.of.at.least(8);
  });
});

describeStory('An agent killed while an ADD waits for a claim', (story) => {
  itOnWire('is called again, and the VM starts with the address of its claim', async ({ bed, wire, agents }) => {
    const pods = new AgentPods(story(), wire);
    await story().addresses.createNetwork('blue', ['10.61.200.0/24']);
    await bed.ipam.stop();
    try {
      await story().createVm('vm1', { data: 'blue' });
      const node = await until('the launcher to be bound', async () => {
        return (await story().launchers('vm1'))[0]?.spec?.nodeName;
      });
      const inFlight = async () => (await agents.on(node).metrics()).includes('holdfast_cni_requests_in_flight 1');
      await until('ADD to wait', inFlight);
      await agents.on(node).kill();
      await agents.on(node).start();
      await until('another ADD to wait', inFlight);
    } finally {
      await bed.ipam.start();
    }
    await story().waitRunning('vm1');
    const claimed = (await story().addresses.waitForIPs('vm1.data')).map(bareAddress);
    const [launcher] = await story().launchers('vm1');
    expect(await pods.waitRunning(launcher!.metadata.name, DATA)).to.deep.equal(claimed);
    await story().addresses.waitHeld(claimed);
  });
});

/** Waits until nothing of earlier tests is left to free, because that would count as a write of this test. */
async function nothingHeldByOthers({ client }: Story): Promise<void> {
  const held = async () => {
    const { items } = await client.list(ADDRESS_LEASES);
    return items.filter(({ spec }) => spec.owner?.kind === 'Pod' && spec.releasedAt === undefined).length;
  };
  await untilValue('addresses of earlier tests to be freed', held, (count) => count === 0, { timeoutMs: 120_000 });
}

/** Creates and deletes a pod, and replaces its sandbox in between. */
async function runPod(nth: number, story: Story, { wire }: WireContext): Promise<void> {
  const [name, nad] = [`pod${String(nth)}`, `net${String(nth)}`];
  const pods = new AgentPods(story, wire);
  await story.addresses.createNetwork(nad, [`10.61.${String(nth)}.0/24`, `fd00:61:${String(nth)}::/64`], COOLING);
  await pods.create(name, NODE, nad);
  await pods.waitRunning(name);
  const first = await settled();
  const pod = await pods.get(name);
  const { containerId } = wire.sandboxOf(pod);
  await wire.restartSandbox(pod);
  await until(
    'another sandbox',
    () => (wire.networks.find(pod.metadata.uid!)?.containerId ?? containerId) !== containerId,
  );
  expect(await settled()).to.deep.equal(first);
  await pods.delete(name);
  await pods.waitGone(name);
  await story.addresses.waitHeld([]);

  /** Waits until the addresses of the pod are the held ones. */
  async function settled(): Promise<string[]> {
    const look = async () => ({
      wire: await pods.waitForInterface(await pods.get(name)),
      held: await story.addresses.heldAddresses(),
    });
    const { held } = await untilValue(
      'the pod to have exactly the held addresses',
      look,
      ({ wire: found, held: leased }) => {
        return found.length === 2 && found.join() === leased.join();
      },
    );
    return held;
  }
}
