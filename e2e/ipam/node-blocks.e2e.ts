import { expect } from 'chai';
import { ReleaseReason } from '../../api/address-block.js';
import { createLease } from '../../addressing/lease/lease.js';
import { type Address, parseAddress } from '../../addressing/address/address.js';
import { blockName } from '../../addressing/block/block.js';
import { parseCidr } from '../../addressing/address/cidr.js';
import { ADDRESS_BLOCKS, ADDRESS_LEASES, NODES, PODS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import { withAgentProxy } from '../../bed/faults/api-proxy.js';
import { BlockScenario } from '../../bed/faults/block-scenario.js';
import { environment } from '../../bed/story/hooks.js';
import { isIn } from '../../bed/story/blocks.js';
import { describeStory, requireWire, type WireContext } from '../../bed/story/describe.js';
import { until, untilValue } from '../../bed/processes/wait.js';

const GATE = '--feature-gates=NodeBlocks=true';
const DELAY = '--excess-release-delay=1s';
const IPAM_ARGS = [GATE, DELAY, '--block-min-free=2', '--block-max-free=9'];
const WHOLE_WAY = ['', 'marked-for-release', 'ready-for-release', 'released', 'gone'];

describeStory('Nodes with blocks of a pool', (story) => {
  const cleanUps: (() => Promise<unknown>)[] = [];

  afterEach('clean up', async () => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  });

  before('turn the feature gate on', async function () {
    await restart(requireWire(this), true);
  });

  after('turn the feature gate off', async () => {
    const { bed } = environment();
    if (bed?.agents === undefined) return;
    const names = async () => (await bed.client.list(ADDRESS_BLOCKS)).items.map(({ metadata }) => metadata.name);
    await untilValue('all blocks to be gone', names, (left) => left.length === 0, { timeoutMs: 90_000 });
    await restart({ bed, wire: bed.wire!, agents: bed.agents }, false);
  });

  it('lease addresses of pods from their blocks without watching other leases, and VMs get addresses from elsewhere', async function () {
    const on = requireWire(this);
    const scene = await BlockScenario.begin(story(), on, ['10.70.1.0/26']);
    const [one = '', two = ''] = on.bed.nodes;
    const { blocks, pods } = scene;
    await pods.untilAlone();
    await scene.observed(async () => {
      await pods.create('first-one', one);
      await pods.create('first-two', two);
      await Promise.all(['first-one', 'first-two'].map((name) => pods.waitRunning(name)));
      for (const node of [one, two]) await blocks.waitAssigned(node, (count) => count > 0);
      await withAgentProxy({ ...on, node: one, args: [GATE] }, async ({ proxy }) => {
        await Promise.all([0, 1, 2].map((n) => pods.create(`one${String(n)}`, one)));
        const ofOne = await Promise.all([0, 1, 2].map((n) => pods.waitRunning(`one${String(n)}`)));
        const lent = await blocks.waitAssigned(one, (count) => count > 0);
        expect(ofOne.flat().filter((address) => !isIn(address, lent))).to.deep.equal([]);
        const leaseWrites = proxy.writes.filter((what) => what.includes('/addressleases'));
        expect(leaseWrites, leaseWrites.join('\n')).to.have.length(3);
        expect(proxy.requests.filter((what) => what.includes('addressSpace'))).to.deep.equal([]);
        expect(proxy.requests.filter((what) => /addressblocks.*watch=true/.test(what))).to.have.length(1);
      });
      await on.agents.on(one).stop();
      await on.agents.on(one).start({ args: [GATE] });
      await Promise.all([0, 1, 2].map((n) => pods.create(`two${String(n)}`, two)));
      const ofTwo = await Promise.all([0, 1, 2].map((n) => pods.waitRunning(`two${String(n)}`)));
      const lentToTwo = await blocks.waitAssigned(two, (count) => count > 0);
      expect(ofTwo.flat().filter((address) => !isIn(address, lentToTwo))).to.deep.equal([]);
      await story().createVm('vm1', { data: 'blue' }, { running: false });
      const claimed = (await story().addresses.waitForIPs('vm1.data')).map(bareAddress);
      const lent = (await blocks.all()).map(({ spec }) => spec.cidr);
      expect(claimed.filter((address) => isIn(address, lent))).to.deep.equal([]);
      await story().addresses.waitForPool(
        scene.pool,
        `to show ${String(lent.length)} lent blocks of 8`,
        ({ status }) => {
          return (
            status?.blocks?.total === 8 && status.blocks.lent === lent.length && status.blocks.current !== undefined
          );
        },
      );
    });
  });

  it('return blocks when their pods are gone, and keep blocks with addresses in use', async function () {
    const on = requireWire(this);
    const scene = await BlockScenario.begin(story(), on, ['10.70.2.0/26']);
    const [one = '', two = ''] = on.bed.nodes;
    const { blocks } = scene;
    const observer = await scene.observed(async () => {
      for (const node of [one, two]) await scene.podsIn(node, 2);
      const kept = (await scene.used(one))[0]!;
      // as ipam does if it has not seen the pod
      await blocks.markForRelease(kept);
      await untilValue(
        'the block to be kept, and its node’s again',
        async () => {
          const said = scene.observer.releaseStatesOf(one).map((words) => words.join(' '));
          // ipam has seen the pod, and has reverted the mark before the node answered
          if (said.some((words) => words.endsWith('marked-for-release '))) await blocks.markForRelease(kept);
          return said;
        },
        (said) => said.some((words) => words.endsWith('marked-for-release do-not-release ')),
      );
      await scene.podsGone(two);
      for (const { metadata } of await blocks.ofNode(two)) await blocks.waitGone(metadata.name);
      expect((await blocks.ofNode(one)).map(({ metadata }) => metadata.name)).to.include(kept);
      await scene.podsIn(one, 3);
    });
    for (const said of observer.releaseStatesOf(two)) expect(said).to.deep.equal(WHOLE_WAY);
    expect(observer.reasonsOf(two)).to.deep.equal([ReleaseReason.Excess]);
  });

  it('lose no block and complete each handshake although agent and ipam are killed between its steps', async function () {
    const on = requireWire(this);
    const scene = await BlockScenario.begin(story(), on, ['10.70.3.0/26']);
    const [node = ''] = on.bed.nodes;
    const agent = on.agents.on(node);
    const observer = await scene.observed(async () => {
      await scene.podsIn(node, 1);
      const [name = ''] = (await scene.blocks.ofNode(node)).map(({ metadata }) => metadata.name);
      await scene.podsGone(node);
      await agent.kill();
      await scene.blocks.waitForReleaseState(name, 'marked-for-release');
      await on.bed.ipam.kill();
      await agent.start({ args: [GATE] });
      await scene.blocks.waitForReleaseState(name, 'ready-for-release');
      await on.bed.ipam.start({ args: IPAM_ARGS });
      await scene.blocks.waitGone(name);
      await scene.podsIn(node, 2);
    });
    expect(observer.releaseStatesOf(node)[0]).to.deep.equal(WHOLE_WAY);
  });

  it('that were deleted keep their blocks until the leases of their pods are gone', async function () {
    const on = requireWire(this);
    const { client } = on.bed;
    const scene = await BlockScenario.begin(story(), on, ['10.70.4.0/26']);
    const node = `${story().namespace}-node`;
    const removeNode = () => client.delete(NODES, { name: node });
    // no kubelet removes it
    const removePod = () => client.delete(PODS, story().ref('left-behind'), { gracePeriodSeconds: 0 });
    cleanUps.push(removeNode, removePod);
    await client.create(NODES, { metadata: { name: node } });
    const observer = await scene.observed(async () => {
      const pod = await scene.pods.create('left-behind', node);
      const uid = pod.metadata.uid ?? '';
      await lease(scene, { uid, node }, parseAddress('10.70.4.5'));
      const [used = ''] = await scene.blocks.waitAssigned(node, (count) => count > 0);
      const { base } = parseCidr(used);
      for (let value = base + 1n; value < base + 8n; value++) await lease(scene, { uid, node }, { family: 4, value });
      const lent = await scene.blocks.waitAssigned(node, (count) => count > 1);
      const nameOf = (cidr: string) => blockName(scene.pool, parseCidr(cidr));
      await removeNode();
      for (const cidr of lent) if (cidr !== used) await scene.blocks.waitGone(nameOf(cidr));
      expect(await scene.blocks.ofNode(node)).to.have.length(1);
      await removePod();
      await scene.blocks.waitGone(nameOf(used));
      expect(await story().addresses.heldAddresses()).to.deep.equal([]);
    });
    expect(observer.reasonsOf(node)).to.deep.equal([ReleaseReason.NodeGone]);
    for (const said of observer.releaseStatesOf(node))
      expect(said).to.deep.equal(['', 'marked-for-release', 'released', 'gone']);
  });

  it('return unused blocks of a full pool, and VMs get addresses of assigned blocks at once', async function () {
    const on = requireWire(this);
    const { ipam, nodes } = on.bed;
    await ipam.stop();
    // two blocks for each node, of which one pod uses at most one
    await ipam.start({ args: [...IPAM_ARGS, '--block-min-free=5'] });
    cleanUps.push(async () => {
      await ipam.stop();
      await ipam.start({ args: IPAM_ARGS });
    });
    const scene = await BlockScenario.begin(story(), on, ['10.70.5.0/28'], { blockSize: { ipv4: 30 } });
    const observer = await scene.observed(async () => {
      for (const node of nodes) await scene.podsIn(node, 0);
      await until('all blocks to be assigned', async () => (await scene.blocks.all()).length === 4);
      const ofPods = await story().addresses.heldAddresses();
      expect(ofPods).to.have.length(2);
      const names = Array.from({ length: 12 }, (_, index) => `vm${String(index)}`);
      const claimedBy = async (some: readonly string[]) => {
        await Promise.all(some.map((name) => story().createVm(name, { data: 'blue' }, { running: false })));
        return Promise.all(some.map((name) => story().addresses.waitForIPs(`${name}.data`)));
      };
      // so few that a block stays unused
      const first = await claimedBy(names.slice(0, 2));
      const reasons = () => nodes.flatMap((node) => scene.observer.reasonsOf(node));
      await untilValue('a block to be marked for release because of a shortage', reasons, (all) =>
        all.includes(ReleaseReason.Pressure),
      );
      const claimed = [...first, ...(await claimedBy(names.slice(2)))];
      expect(new Set([...claimed.flat().map(bareAddress), ...ofPods]).size).to.equal(14);
    });
    expect(observer.violations).to.deep.equal([]);
  });
});

/** Restarts ipam and the agents with the feature gate on, or as the bed runs them. */
async function restart({ bed, agents }: WireContext, isOpen: boolean): Promise<void> {
  await Promise.all([bed.ipam.stop(), ...agents.all.map((agent) => agent.stop())]);
  await Promise.all([
    bed.ipam.start(isOpen ? { args: IPAM_ARGS } : {}),
    ...agents.all.map((agent) => agent.start(isOpen ? { args: [GATE] } : {})),
  ]);
  await until('agents to be ready', async () =>
    (await Promise.all(agents.all.map((agent) => agent.isReady()))).every(Boolean),
  );
}

/** Creates a lease as an agent on a node without one. */
async function lease(
  { story, pool }: BlockScenario,
  { uid, node }: { uid: string; node: string },
  address: Address,
): Promise<void> {
  const owner = { kind: 'Pod', namespace: story.namespace, name: 'left-behind', uid } as const;
  const addressSpace = `${story.namespace}-blue`;
  const write = createLease({ address, addressSpace, pool, owner, node, containerID: 'c1', interface: 'net1' });
  await story.client.create(ADDRESS_LEASES, write.object);
}
