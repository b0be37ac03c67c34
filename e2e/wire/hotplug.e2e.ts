import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { describeStory } from '../../bed/story/describe.js';
import { until } from '../../bed/processes/wait.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';

const DATA = podInterfaceName('data');
const EXTRA = podInterfaceName('extra');

describeStory('An interface that is plugged into a VM with real networks', (story) => {
  itWithWireStory(
    'has the address of its claim until it is unplugged, and again when it is plugged in again',
    story,
    async (wire) => {
      await story().addresses.createNetwork('blue', ['10.72.0.0/24']);
      await story().addresses.createNetwork('green', ['10.72.1.0/24']);
      await story().runVm('vm1', { data: 'blue' });
      const launcher = await wire.launcher('vm1');
      const kept = await story().addresses.waitForIPs('vm1.data');
      const neighbour = await wire.createNeighbour('green');

      await story().plugInterface('vm1', 'extra', 'green');
      await story().waitAttached('vm1', 'extra');
      const plugged = await story().addresses.waitForIPs('vm1.extra');
      await wire.waitForAddresses(launcher, EXTRA, plugged);
      await wire.waitForAddresses(launcher, DATA, kept);
      await wire.waitReachable(neighbour, plugged);

      await story().unplugInterface('vm1', 'extra');
      await story().waitDetached('vm1', 'extra');
      await until(
        `${EXTRA} to be gone`,
        async () => (await wire.context.wire.interfaceOf(launcher, EXTRA)) === undefined,
      );
      await story().waitForClaims(['vm1.data']);
      expect(await wire.isSilent(neighbour, plugged[0]!)).to.equal(true);
      await wire.waitForAddresses(launcher, DATA, kept);

      await story().plugInterface('vm1', 'extra', 'green');
      await story().waitAttached('vm1', 'extra');
      const again = await story().addresses.waitForIPs('vm1.extra');
      await wire.waitForAddresses(launcher, EXTRA, again);
      await wire.announceGuest(launcher, EXTRA);
      await wire.waitReachable(neighbour, again);
      expect((await wire.launcher('vm1')).metadata.uid).to.equal(launcher.metadata.uid);
    },
  );

  itWithWireStory('keeps its address when the VM moves', story, async (wire) => {
    await story().addresses.createNetwork('blue', ['10.72.2.0/24']);
    await story().runVm('vm1', { data: 'blue' });
    await story().plugInterface('vm1', 'extra', 'blue');
    await story().waitAttached('vm1', 'extra');
    const [data, extra] = [
      await story().addresses.waitForIPs('vm1.data'),
      await story().addresses.waitForIPs('vm1.extra'),
    ];
    expect(data).not.to.deep.equal(extra);
    await story().migrate('vm1', 'Succeeded');
    const target = await wire.launcher('vm1');
    await wire.waitForAddresses(target, DATA, data);
    await wire.waitForAddresses(target, EXTRA, extra);
  });
});

describeStory('Two interfaces of a VM on one NAD', (story) => {
  itWithWireStory('have one address each, on the right interface, on every node', story, async (wire) => {
    await story().addresses.createNetwork('blue', ['10.72.3.0/24']);
    await story().runVm('vm1', { data: 'blue', extra: 'blue' });
    const [data, extra] = [
      await story().addresses.waitForIPs('vm1.data'),
      await story().addresses.waitForIPs('vm1.extra'),
    ];
    expect(data).not.to.deep.equal(extra);
    const before = await wire.launcher('vm1');
    const neighbour = await wire.createNeighbour('blue', wire.otherNode(before.spec!.nodeName!));
    const look = async () => {
      const launcher = await wire.launcher('vm1');
      await wire.waitForAddresses(launcher, DATA, data);
      await wire.waitForAddresses(launcher, EXTRA, extra);
      for (const name of [DATA, EXTRA]) await wire.announceGuest(launcher, name);
      await wire.waitReachable(neighbour, [...data, ...extra]);
    };
    await look();
    await story().restart('vm1');
    await look();
    await story().unplugInterface('vm1', 'extra');
    await story().waitForClaims(['vm1.data']);
    const launcher = await wire.launcher('vm1');
    await until(
      `${EXTRA} to be gone`,
      async () => (await wire.context.wire.interfaceOf(launcher, EXTRA)) === undefined,
    );
    await wire.waitForAddresses(launcher, DATA, data);
  });
});
