import { expect } from 'chai';
import type { Pod } from '../../api/pod.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import type { PluginCall } from '../../bed/node/bed-wire.js';
import { withAgentProxy } from '../../bed/faults/api-proxy.js';
import { AgentPods, NET1 } from '../../bed/faults/agent-pods.js';
import { describeStory, itOnWire, type WireContext } from '../../bed/story/describe.js';
import { until, untilValue } from '../../bed/processes/wait.js';

const NODE = 'node-1';

interface Failure {
  code?: number;
  msg?: string;
}

/** The error of a call of our plugin; undefined if it succeeds. */
async function failureOf({ wire }: WireContext, call: PluginCall, node = NODE): Promise<Failure> {
  const { exitCode, answer } = await wire.callPlugin(node, call);
  return exitCode === 0 ? {} : (answer as Failure);
}

describeStory('CHECK', (story) => {
  itOnWire('succeeds without a write while the pod has its lease, and fails when the lease is gone', async (on) => {
    const pods = new AgentPods(story(), on.wire);
    await pods.untilAlone();
    const network = await story().addresses.createNetwork('blue', ['10.63.0.0/24', 'fd00:63::/64']);
    await withAgentProxy({ ...on, node: NODE }, async ({ proxy }) => {
      await pods.create('pod1', NODE);
      const [first = '', second = ''] = await pods.waitRunning('pod1');
      const pod = await pods.get('pod1');
      const check = await checkOf(pods, pod, [`${first}/24`, `${second}/64`]);
      const before = [...proxy.writes];
      for (let count = 0; count < 5; count++) expect(await failureOf(on, check)).to.deep.equal({});
      const strange = await failureOf(on, await checkOf(pods, pod, ['10.63.0.0/24']));
      expect(strange.msg).to.match(/has 10\.63\.0\.0, and its lease could not be checked/);
      expect(proxy.writes).to.deep.equal(before);

      const lease = (await story().addresses.leases()).get(first);
      await on.bed.client.delete(ADDRESS_LEASES, { name: lease!.metadata.name });
      const isLost = ({ code }: Failure) => code !== undefined;
      const lost = await untilValue('CHECK to fail', () => failureOf(on, check), isLost);
      expect(lost.msg).to.include(`interface ${NET1} of pod ${story().namespace}/pod1 has ${first}`);
      expect(proxy.writes, network).to.deep.equal(before);
    });
  });
});

describeStory('GC', (story) => {
  itOnWire('frees only the addresses of sandboxes of its node that no longer exist', async (on) => {
    const { bed, wire } = on;
    const pods = new AgentPods(story(), wire);
    await story().addresses.createNetwork('blue', ['10.63.1.0/24'], { cooldownSeconds: 60 });
    await Promise.all([pods.create('stays', NODE), pods.create('lost', NODE), pods.create('far', 'node-2')]);
    const [stays = '', lost = '', far = ''] = (
      await Promise.all(['stays', 'lost', 'far'].map((name) => pods.waitRunning(name)))
    ).flat();
    const valid = await attachmentsOf(['stays']);
    bed.switches.set({ holdNetworks: true }, { namespace: story().namespace });
    const end = await wire.loseSandbox(await pods.get('lost'));
    const config = { ...(await pods.config('blue')), cniVersion: '1.1.0' };
    const collect = (more: object, node: string) => failureOf(on, { verb: 'GC', config: { ...config, ...more } }, node);

    expect(await collect({}, NODE)).to.deep.equal({});
    expect(await collect({ 'cni.dev/valid-attachments': await attachmentsOf(['far']) }, 'node-2')).to.deep.equal({});
    expect(await collect({ 'cni.dev/valid-attachments': [], name: 'another' }, NODE)).to.deep.equal({});
    expect(await story().addresses.heldAddresses()).to.have.members([stays, lost, far]);
    expect(await collect({ 'cni.dev/valid-attachments': valid }, NODE)).to.deep.equal({});
    expect(await story().addresses.heldAddresses()).to.have.members([stays, far]);

    bed.switches.clear();
    expect(await pods.waitRunning('lost')).to.deep.equal([lost]);
    await end(); // the late DEL of the lost sandbox
    await story().addresses.waitHeld([stays, lost, far]);

    async function attachmentsOf(names: readonly string[]): Promise<object[]> {
      const found = await Promise.all(names.map((name) => pods.get(name)));
      return found.map((pod) => ({ containerID: wire.sandboxOf(pod).containerId, ifname: NET1 }));
    }
  });
});

describeStory('STATUS', (story) => {
  itOnWire('reports that the agent starts, or that the pool of an administrator is full', async (on) => {
    const pods = new AgentPods(story(), on.wire);
    const network = await story().addresses.createNetwork('blue', []);
    await story().addresses.createPool(network, { network, subnets: [{ cidr: '10.63.2.0/30' }] });
    const config = { ...(await pods.config('blue')), cniVersion: '1.1.0' };
    const status = (more: object = {}) => failureOf(on, { verb: 'STATUS', config: { ...config, ...more } });
    await withAgentProxy({ ...on, node: NODE }, async ({ proxy, launch }) => {
      await on.agents.on(NODE).stop();
      proxy.disconnect();
      await launch();
      const isAnswered = ({ msg = '' }: Failure) => !msg.includes('does not answer');
      const starting = await untilValue('the agent to answer', () => status(), isAnswered);
      expect(starting).to.include({ code: 50 });
      expect(starting.msg).to.match(/not/);
      proxy.reconnect();
      await on.agents.on(NODE).waitReady();
      await until('all to be well', async () => (await status()).code === undefined);
    });
    // a derived pool may serve it
    expect(await status({ name: 'nobodys' })).to.deep.equal({});

    await pods.create('pod1', NODE);
    await pods.create('pod2', 'node-2');
    await Promise.all([pods.waitRunning('pod1'), pods.waitRunning('pod2')]);
    const full = await untilValue(
      'the pool to be full',
      () => status(),
      ({ code }) => code !== undefined,
    );
    expect(full.code).to.equal(50);
    expect(full.msg).to.match(/^pool \S+ is full: 2 of 2 leased$/);
    await pods.delete('pod1');
    await until('an address to be free', async () => (await status()).code === undefined);
  });
});

async function checkOf(pods: AgentPods, pod: Pod, addresses: readonly string[]): Promise<PluginCall> {
  const config = await pods.config('blue');
  const ips = addresses.map((address) => ({ version: address.includes(':') ? '6' : '4', address, interface: 0 }));
  const prevResult = { cniVersion: '0.4.0', interfaces: [{ name: NET1, sandbox: '/' }], ips };
  return { verb: 'CHECK', config: { ...config, prevResult }, pod, interfaceName: NET1 };
}
