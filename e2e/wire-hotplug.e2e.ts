import { expect } from 'chai';
import { podInterfaceName } from '../api/pod-interface.js';
import { describeStory } from './story/describe.js';
import { until } from './bed/wait.js';
import { itOnTheWire } from './story/wire-story.js';

const DATA = podInterfaceName('data');
const EXTRA = podInterfaceName('extra');

describeStory('An interface that is plugged into a VM on the wire', (story) => {
  itOnTheWire(
    'has its claim’s address until it is unplugged, and again when it is plugged again',
    story,
    async (wire) => {
      await story().addresses.network('blue', ['10.72.0.0/24']);
      await story().addresses.network('green', ['10.72.1.0/24']);
      await story().createVm('vm1', { data: 'blue' });
      await story().running('vm1');
      const launcher = await wire.launcher('vm1');
      const kept = await story().addresses.of('vm1.data');
      const neighbour = await wire.neighbour('green');

      await story().plug('vm1', 'extra', 'green');
      await story().attached('vm1', 'extra');
      const plugged = await story().addresses.of('vm1.extra');
      await wire.has(launcher, EXTRA, plugged);
      await wire.has(launcher, DATA, kept);
      await wire.reaches(neighbour, plugged);

      await story().unplug('vm1', 'extra');
      await story().detached('vm1', 'extra');
      await until(`${EXTRA} to be gone`, async () => (await wire.on.wire.interface(launcher, EXTRA)) === undefined);
      await story().waitForClaims(['vm1.data']);
      expect(await wire.isSilent(neighbour, plugged[0]!)).to.equal(true);
      await wire.has(launcher, DATA, kept);

      await story().plug('vm1', 'extra', 'green');
      await story().attached('vm1', 'extra');
      const again = await story().addresses.of('vm1.extra');
      await wire.has(launcher, EXTRA, again);
      await wire.boots(launcher, EXTRA);
      await wire.reaches(neighbour, again);
      expect((await wire.launcher('vm1')).metadata.uid).to.equal(launcher.metadata.uid);
    },
  );

  itOnTheWire('keeps its address when the VM moves', story, async (wire) => {
    await story().addresses.network('blue', ['10.72.2.0/24']);
    await story().createVm('vm1', { data: 'blue' });
    await story().running('vm1');
    await story().plug('vm1', 'extra', 'blue');
    await story().attached('vm1', 'extra');
    const [data, extra] = [await story().addresses.of('vm1.data'), await story().addresses.of('vm1.extra')];
    expect(data).not.to.deep.equal(extra);
    await story().migrate('vm1', 'Succeeded');
    const target = await wire.launcher('vm1');
    await wire.has(target, DATA, data);
    await wire.has(target, EXTRA, extra);
  });
});

describeStory('Two interfaces of a VM on one NAD', (story) => {
  itOnTheWire(
    'have an address each, on the interface that it belongs to, wherever the VM runs',
    story,
    async (wire) => {
      await story().addresses.network('blue', ['10.72.3.0/24']);
      await story().createVm('vm1', { data: 'blue', extra: 'blue' });
      await story().running('vm1');
      const [data, extra] = [await story().addresses.of('vm1.data'), await story().addresses.of('vm1.extra')];
      expect(data).not.to.deep.equal(extra);
      const before = await wire.launcher('vm1');
      const neighbour = await wire.neighbour('blue', wire.otherNode(before.spec!.nodeName!));
      const look = async () => {
        const launcher = await wire.launcher('vm1');
        await wire.has(launcher, DATA, data);
        await wire.has(launcher, EXTRA, extra);
        for (const name of [DATA, EXTRA]) await wire.boots(launcher, name);
        await wire.reaches(neighbour, [...data, ...extra]);
      };
      await look();
      await story().restart('vm1');
      await look();
      await story().unplug('vm1', 'extra');
      await story().waitForClaims(['vm1.data']);
      const launcher = await wire.launcher('vm1');
      expect(await wire.on.wire.interface(launcher, EXTRA)).to.equal(undefined);
      await wire.has(launcher, DATA, data);
    },
  );
});
