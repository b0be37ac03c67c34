import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { AgentPods, NET1, pendingDeletesOn } from '../../bed/faults/agent-pods.js';
import { withAgentProxy } from '../../bed/faults/api-proxy.js';
import { describeStory, itOnWire } from '../../bed/story/describe.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { bareAddress } from '../../test/bare-address.js';

const DATA = podInterfaceName('data');

describeStory('While the agent of a node is down', (story) => {
  itOnWire(
    'no pod of the node gets an address, its event says why, and it starts when the agent is back',
    async (on) => {
      const { wire, agents } = on;
      const pods = new AgentPods(story(), wire);
      await story().addresses.createNetwork('blue', ['10.60.0.0/24']);
      const { containerId, netns } = wire.sandboxOf(await running(pods, 'before'));
      await agents.on('node-1').stop();
      try {
        const pod = await pods.create('pod1', 'node-1');
        await story().waitForEvent('pod1', 'FailedCreatePodSandBox', /the agent of this node does not answer/);
        const config = await pods.config('blue');
        const call = { config, pod, containerId, netns, interfaceName: NET1 };
        for (const verb of ['ADD', 'CHECK', 'GC'] as const) {
          const { exitCode, answer } = await wire.callPlugin('node-1', { ...call, verb });
          expect({ exitCode, ...(answer as object) }).to.include({ exitCode: 1, code: 11 });
        }
        const { answer } = await wire.callPlugin('node-1', { ...call, verb: 'STATUS' });
        expect(answer).to.include({ code: 50 });
      } finally {
        await agents.on('node-1').start();
      }
      expect(await pods.waitRunning('pod1')).to.have.length(1);
    },
  );

  itOnWire(
    'pods still terminate, and their addresses are freed when the agent is back',
    async ({ bed, wire, agents }) => {
      const pods = new AgentPods(story(), wire);
      await pods.untilAlone();
      await story().addresses.createNetwork('blue', ['10.60.1.0/24', 'fd00:60:1::/64']);
      for (const name of ['goes', 'stays']) await pods.create(name, 'node-1');
      const [went, stays] = await Promise.all([pods.waitRunning('goes'), pods.waitRunning('stays')]);
      await agents.on('node-1').kill();
      try {
        const { containerId } = wire.sandboxOf(await pods.get('goes'));
        await pods.delete('goes');
        await pods.waitGone('goes');
        expect(pendingDeletesOn(bed, 'node-1')).to.deep.equal([`${containerId}-${NET1}.json`]);
        expect(await story().addresses.heldAddresses()).to.have.members([...went, ...stays]);
      } finally {
        // so that the note is all that frees them
        await agents.on('node-1').start({ args: ['--collect-after=1h'] });
      }
      await story().addresses.waitHeld(stays);
      await untilValue('the note to be gone', () => pendingDeletesOn(bed, 'node-1'), isEmpty);
      await agents.on('node-1').stop();
      await agents.on('node-1').start();
    },
  );
});

describeStory('While the agent of a node cannot reach the API server', (story) => {
  itOnWire('pods still terminate, addresses of pods are freed later, and that of a VM is kept', async (on) => {
    const { bed, wire } = on;
    const pods = new AgentPods(story(), wire);
    await story().addresses.createNetwork('blue', ['10.60.2.0/24', 'fd00:60:2::/64']);
    await story().runVm('vm1', { data: 'blue' });
    const claimed = (await story().addresses.waitForIPs('vm1.data')).map(bareAddress);
    const [launcher] = await story().launchers('vm1');
    const node = launcher?.spec?.nodeName ?? '';
    await pods.create('pod1', node);
    const own = await pods.waitRunning('pod1');
    await withAgentProxy({ ...on, node, args: ['--collect-after=1h'] }, async ({ proxy }) => {
      proxy.disconnect();
      const { containerId } = wire.sandboxOf(await pods.get('pod1'));
      await pods.delete('pod1');
      await story().stop('vm1');
      await pods.waitGone('pod1');
      expect(pendingDeletesOn(bed, node)).to.include(`${containerId}-${NET1}.json`);
      expect(await story().addresses.heldAddresses()).to.have.members([...claimed, ...own]);
      proxy.reconnect();
      await story().addresses.waitHeld(claimed);
      await untilValue('the notes to be gone', () => pendingDeletesOn(bed, node), isEmpty);
    });
    await story().start('vm1');
    const [again] = await story().launchers('vm1');
    expect(await pods.waitRunning(again!.metadata.name, DATA)).to.have.members(claimed);
  });
});

describeStory('While the API server is down', (story) => {
  itOnWire('sandboxes of pods and VMs are removed, and new ones get the same addresses', async (on) => {
    const { bed, wire } = on;
    const pods = new AgentPods(story(), wire);
    await story().addresses.createNetwork('blue', ['10.60.3.0/24'], { cooldownSeconds: 60 });
    await story().runVm('vm1', { data: 'blue' });
    const claimed = (await story().addresses.waitForIPs('vm1.data')).map(bareAddress);
    const [launcher] = await story().launchers('vm1');
    const own = await running(pods, 'pod1', launcher?.spec?.nodeName);
    const before = await pods.waitForInterface(own);
    const sandboxes = [own, launcher!].map((pod) => wire.sandboxOf(pod).containerId);
    await bed.apiServer.kill();
    try {
      await Promise.all([own, launcher!].map((pod) => wire.restartSandbox(pod)));
      expect(pendingDeletesOn(bed, own.spec!.nodeName!)).to.include(`${sandboxes[0]!}-${NET1}.json`);
    } finally {
      await bed.apiServer.start();
    }
    await until(
      'both to be on the wire again',
      async () => {
        const found = await Promise.all([pods.waitForInterface(own), pods.waitForInterface(launcher!, DATA)]);
        return found.flat().join() === [...before, ...claimed].join();
      },
      { timeoutMs: 60_000 },
    );
    await untilValue('the notes to be gone', () => pendingDeletesOn(bed, own.spec!.nodeName!), isEmpty, {
      timeoutMs: 60_000,
    });
    await story().addresses.waitHeld([...before, ...claimed]);
  });
});

async function running(pods: AgentPods, name: string, node = 'node-1') {
  await pods.create(name, node);
  await pods.waitRunning(name);
  return pods.get(name);
}

function isEmpty(list: readonly string[]): boolean {
  return list.length === 0;
}
