import { expect } from 'chai';
import { AgentPods } from '../../bed/faults/agent-pods.js';
import { describeStory, itOnWire } from '../../bed/story/describe.js';
import { untilValue } from '../../bed/processes/wait.js';

const NODE = 'node-1';
const PODS = ['pod1', 'pod2', 'pod3'];

describeStory('A node that is rebooted', (story) => {
  itOnWire('gives its pods the same addresses, and frees those of deleted pods', async (on) => {
    const { bed, wire, agents } = on;
    const pods = new AgentPods(story(), wire);
    await story().addresses.createNetwork('blue', ['10.64.0.0/24', 'fd00:64::/64'], { cooldownSeconds: 60 });
    for (const name of [...PODS, 'goes']) await pods.create(name, NODE);
    const before = await Promise.all(PODS.map((name) => pods.waitRunning(name)));
    await pods.waitRunning('goes');
    const found = await Promise.all([...PODS, 'goes'].map((name) => pods.get(name)));
    const sandboxes = found.map((pod) => wire.sandboxOf(pod).containerId);

    bed.switches.loseNode(NODE);
    await agents.on(NODE).kill();
    const ends = await wire.reboot(found);
    await pods.delete('goes', true);
    await pods.waitGone('goes');
    expect(await story().addresses.heldAddresses()).to.have.length(8);
    await agents.on(NODE).start();
    bed.switches.recoverNode(NODE);

    await untilValue(
      'pods to have what they had',
      async () => {
        return Promise.all(PODS.map(async (name) => pods.waitForInterface(await pods.get(name))));
      },
      (after) => JSON.stringify(after) === JSON.stringify(before),
    );
    const again = await Promise.all(PODS.map(async (name) => wire.sandboxOf(await pods.get(name)).containerId));
    expect(sandboxes).not.to.include.members(again);
    await story().addresses.waitHeld(before.flat());
    await ends(); // the runtime removes the old sandboxes
    await story().addresses.waitHeld(before.flat());
    expect(await Promise.all(PODS.map((name) => pods.waitRunning(name)))).to.deep.equal(before);
  });

  itOnWire('and never comes back leaves no lease after its pods are gone', async ({ bed, wire, agents }) => {
    const pods = new AgentPods(story(), wire);
    await story().addresses.createNetwork('blue', ['10.64.1.0/24']);
    await pods.create('lost', NODE);
    await pods.create('stays', 'node-2');
    const [[lost = ''], stays] = await Promise.all([pods.waitRunning('lost'), pods.waitRunning('stays')]);
    bed.switches.loseNode(NODE);
    await agents.on(NODE).kill();
    try {
      expect(await story().addresses.heldAddresses()).to.have.members([lost, ...stays]);
      await pods.delete('lost', true);
      await story().addresses.waitHeld(stays);
    } finally {
      await agents.on(NODE).start();
      bed.switches.recoverNode(NODE);
    }
  });
});
