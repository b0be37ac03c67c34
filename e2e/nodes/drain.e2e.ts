import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import { until } from '../../bed/processes/wait.js';
import { waitHoldfast } from '../../bed/real-nodes/real-cluster.js';
import { DEPLOYMENTS } from '../../bed/real-nodes/rollout.js';
import { describeOnNodes } from '../../bed/story/nodes.js';
import type { Client } from '../../kube/client.js';
import { PODS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';

const networks = [{ name: 'blue' }];

describeOnNodes('A real node with VMs and pods', (story, nodes) => {
  it('is drained: VMs migrate with their addresses, and no deployment of Holdfast is without a ready pod', async () => {
    await nodes().createNetwork('blue', ['10.85.0.0/24']);
    const { addresses, client } = story();
    const kubectl = await story().kubectl();
    await story().runVm('web', { data: 'blue' }, { evictionStrategy: 'LiveMigrate' });
    const [address = ''] = await addresses.waitForIPs('web.data');
    const node = (await story().launchers('web'))[0]?.spec?.nodeName ?? '';
    await nodes().createPod('bare', { networks, node });

    const availability = new Availability(client);
    try {
      await kubectl.succeed([
        'drain',
        node,
        '--ignore-daemonsets',
        '--delete-emptydir-data',
        '--force',
        '--timeout=100s',
      ]);
      await story().migrations.waitForOneLauncher('web');
      const [launcher] = await story().launchers('web');
      expect(launcher?.spec?.nodeName).not.to.equal(node);
      expect(await nodes().addressOf(launcher!, podInterfaceName('data'))).to.equal(address);
      await addresses.waitHeld([bareAddress(address)]);
    } finally {
      await kubectl.succeed(['uncordon', node]);
      await waitHoldfast(nodes().cluster);
      await availability.stop();
    }
    expect(availability.outages).to.deep.equal([]);
  });

  it('evicts them by a taint: VMs run elsewhere with their addresses, and those of pods are free', async () => {
    await nodes().createNetwork('blue', ['10.85.1.0/24']);
    const { addresses, client } = story();
    const kubectl = await story().kubectl();
    const before = await story().runVm('web', { data: 'blue' });
    const [address = ''] = await addresses.waitForIPs('web.data');
    const node = (await story().launchers('web'))[0]?.spec?.nodeName ?? '';
    await nodes().createPod('bare', { networks, node });
    await kubectl.succeed(['taint', 'node', node, 'story=evicts:NoExecute']);
    try {
      await story().waitReplaced('web', before);
      const [launcher] = await story().launchers('web');
      expect(launcher?.spec?.nodeName).not.to.equal(node);
      expect(await nodes().addressOf(launcher!, podInterfaceName('data'))).to.equal(address);
      await until('the pod to be gone', async () => (await client.find(PODS, story().ref('bare'))) === undefined);
      await addresses.waitHeld([bareAddress(address)]);
    } finally {
      await kubectl.succeed(['taint', 'node', node, 'story-']);
      await waitHoldfast(nodes().cluster);
    }
  });
});

/** Observes from its creation on which of Holdfast's deployments have no ready pod. */
class Availability {
  readonly outages: string[] = [];
  readonly #ended: Promise<void>;
  #isStopped = false;

  constructor(client: Client) {
    this.#ended = this.#observe(client);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#ended;
  }

  async #observe(client: Client): Promise<void> {
    await until(
      'the end of the observation',
      async () => {
        const { items } = await client.list(DEPLOYMENTS, { namespace: HOLDFAST_NAMESPACE });
        for (const { metadata, status } of items)
          if ((status?.readyReplicas ?? 0) === 0) this.outages.push(`${metadata.name} had no ready pod`);
        return this.#isStopped;
      },
      { timeoutMs: 180_000 },
    );
  }
}
