import { expect } from 'chai';
import type { Pod } from '../../api/pod.js';
import { bareAddress } from '../../test/bare-address.js';
import { until } from '../../bed/processes/wait.js';
import { describeStory } from '../../bed/story/describe.js';
import { type WireStory, itWithWireStory } from '../../bed/story/wire/wire-story.js';

const IP = '/usr/sbin/ip';

async function runInPod(wire: WireStory, pod: Pod, args: readonly string[]): Promise<void> {
  await wire.context.wire.wire.run(wire.context.wire.locationOf(pod), { command: IP, args });
}

/** Gives a pod another address, as its owner could with the right NET_ADMIN, and asks a neighbour from it until it answers, if it may. */
async function expectAnswer(
  wire: WireStory,
  pod: Pod,
  { taken, neighbour, passes }: { taken: string; neighbour: string; passes: boolean },
): Promise<void> {
  await runInPod(wire, pod, ['address', 'add', `${taken}/24`, 'dev', 'net1']);
  await runInPod(wire, pod, ['route', 'add', `${bareAddress(neighbour)}/32`, 'dev', 'net1', 'src', taken]);
  if (passes) await until('the neighbour to answer', async () => !(await wire.isSilent(pod, bareAddress(neighbour))));
  else expect(await wire.isSilent(pod, bareAddress(neighbour))).to.equal(true);
}

describeStory('Interfaces with a guard', (story) => {
  for (const [mode, passes] of [
    ['Enforce', false],
    ['Observe', true],
  ] as const) {
    const what = passes ? 'may use addresses of others while it only observes' : 'cannot use addresses of others';
    itWithWireStory(`reach each other with their own addresses, and ${what}`, story, async (wire) => {
      await story().addresses.createNetwork('blue', ['10.73.9.0/24', 'fd00:7309::/64'], { guard: { mode } });
      const one = await wire.createNeighbour('blue', 'node-1', 'one');
      const two = await wire.createNeighbour('blue', 'node-2', 'two');
      const addresses = await wire.context.wire.addressesOf(two, 'net1');
      await wire.waitReachable(one, addresses);
      await expectAnswer(wire, one, { taken: '10.73.9.200', neighbour: addresses[0]!, passes });
      await wire.deletePod('two');
      const next = await wire.createNeighbour('blue', 'node-2', 'next');
      const third = await wire.createNeighbour('blue', 'node-1', 'third');
      await wire.waitReachable(third, await wire.context.wire.addressesOf(next, 'net1'));
    });
  }
});
