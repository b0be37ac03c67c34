import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { capacityResource } from '../../api/capacity.js';
import { CAPACITY_ENABLED, CAPACITY_LABEL } from '../../api/names.js';
import { ADDRESS_POOLS, NODES, PODS } from '../../kube/resources.js';
import { nodeObject } from '../../bed/node/node-object.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { HoldfastProcess } from '../../bed/holdfast/process.js';
import { CapacityStory, sumOf } from '../../bed/story/capacity.js';
import { describeOnBed, requireWire } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { WireStory } from '../../bed/story/wire/wire-story.js';

const CLOSED = { args: ['--feature-gates=PublishCapacity=false'] };
const BLOCKS = '--feature-gates=NodeBlocks=true';
const TEN = [{ cidr: '10.90.0.0/28', ranges: ['10.90.0.1-10.90.0.10'] }];
/** Eleven usable addresses in one block of 16 and three in the other, so few that none are withheld. */
const LENDABLE = [{ cidr: '10.90.4.0/27', ranges: ['10.90.4.5-10.90.4.18'] }];
const FOURTEEN = Array.from({ length: 14 }, (_, index) => `10.90.4.${index + 5}`);

describeOnBed('Addresses that the scheduler sees on two nodes', (current) => {
  let bed: BedWithHoldfast;
  let capacity: HoldfastProcess;
  let story: Story;
  let wire: WireStory;
  let seen: CapacityStory;

  before(async function () {
    ({ bed } = requireWire(this));
    capacity = new HoldfastProcess(bed, 'capacity', bed.webhook.ports);
    await capacity.start();
  });

  after(() => (capacity as HoldfastProcess | undefined)?.stop());

  beforeEach(async function () {
    story = current();
    await story.labelNamespace({ [CAPACITY_LABEL]: CAPACITY_ENABLED });
    wire = new WireStory(story, requireWire(this));
    seen = new CapacityStory(story);
  });

  it('let exactly as many pods run as there are addresses, and others start when addresses are freed', async () => {
    await seen.createPool(TEN);
    await seen.waitForTotal(10);
    const names = Array.from({ length: 15 }, (_, index) => `pod-${index + 1}`);
    await Promise.all(names.map((name) => wire.createPod(name, { networks: [{ name: 'blue' }] })));
    const { running, waiting } = await seen.waitForRunning(10);
    expect(waiting).to.have.length(5);
    for (const pod of waiting) await seen.waitForInsufficient(pod);
    expect(await story.addresses.heldAddresses()).to.have.length(10);
    // others, such as a slow API server, are no overcommitment
    expect((await seen.sandboxFailures()).filter((words) => words.includes('is full'))).to.deep.equal([]);
    const first = await bed.client.get(PODS, story.ref('pod-1'));
    expect(JSON.stringify(first)).to.include(`"${seen.resource}":"1"`);

    for (const name of running.slice(0, 2)) await wire.deletePod(name);
    expect((await seen.waitForRunning(10)).waiting).to.have.length(3);
    for (const name of running.slice(2, 5)) await wire.deletePod(name);
    expect((await seen.waitForRunning(10)).waiting).to.deep.equal([]);
  });

  it('are not advertised only because the NAD of a tenant says so', async () => {
    const tenant = await story.tenant();
    const network = `${story.namespace}-red`;
    await bed.ipam.stop();
    try {
      await tenant.putNetwork('red', { network, subnets: TEN, ipam: { publishCapacity: true } });
    } finally {
      await bed.ipam.start();
    }
    const { metadata } = await story.addresses.waitForDerivedPool(network);
    // capacity knows the older pool then, too
    await seen.createPool(TEN);
    await seen.waitForTotal(10);
    const nodes = await bed.client.list(NODES);
    expect(JSON.stringify(nodes)).to.not.include(capacityResource(metadata.name));
  });

  it('are assigned to a node on which a waiting pod may run', async () => {
    await seen.createPool([{ cidr: '10.90.1.0/28', ranges: ['10.90.1.1-10.90.1.2'] }]);
    await seen.waitForTotal(2);
    const affinity = seen.affinityTo('node-2');
    await Promise.all(['a', 'b'].map((name) => wire.createPod(name, { networks: [{ name: 'blue' }], affinity })));
    const { running } = await seen.waitForRunning(2);
    expect(running).to.deep.equal(['a', 'b']);
  });

  it('let the VM with the last address migrate and restart, and start no pod without an address', async () => {
    await seen.createPool([{ cidr: '10.90.2.0/28', ranges: ['10.90.2.1-10.90.2.2'] }]);
    await story.runVm('vm1', { data: 'blue' });
    const mine = await story.addresses.waitForIPs('vm1.data');
    await seen.waitForTotal(1);
    await wire.createPod('one', { networks: [{ name: 'blue' }] });
    await wire.waitRunning('one');
    await seen.waitForTotal(1); // the requested one; no address is free
    await wire.createPod('late', { networks: [{ name: 'blue' }] });
    await seen.waitForInsufficient('late');

    await story.migrate('vm1', 'Succeeded');
    await story.restart('vm1');
    expect(await story.addresses.waitForIPs('vm1.data')).to.deep.equal(mine);
    for (const launcher of await story.launchers('vm1')) expect(JSON.stringify(launcher)).not.to.include(seen.resource);
    await seen.waitForInsufficient('late');
    await story.deleteVm('vm1', 'Background');
    await wire.waitRunning('late');
  });

  it('are not advertised while the feature gate is off, and pods wait on their nodes', async () => {
    await seen.createPool([{ cidr: '10.90.3.0/28', ranges: ['10.90.3.1-10.90.3.2'] }]);
    await seen.waitForTotal(2);
    await Promise.all([capacity.stop(), bed.webhook.stop()]);
    await Promise.all([capacity.start(CLOSED), bed.webhook.start(CLOSED)]);
    try {
      await seen.waitForTotal(undefined);
      const names = ['one', 'two', 'three'];
      await Promise.all(names.map((name) => wire.createPod(name, { networks: [{ name: 'blue' }] })));
      await until('a pod to find the pool full', async () =>
        (await seen.sandboxFailures()).some((words) => words.includes('is full')),
      );
      const { waiting } = await seen.waitForRunning(2);
      const [stuck = ''] = waiting;
      expect((await bed.client.get(PODS, story.ref(stuck))).spec?.nodeName).to.match(/^node-/);
    } finally {
      await Promise.all([capacity.stop(), bed.webhook.stop()]);
      await Promise.all([capacity.start(), bed.webhook.start()]);
    }
  });

  it('are advertised again on a node that is created again', async () => {
    await seen.createPool(TEN);
    await seen.waitForTotal(10);
    await bed.client.delete(NODES, { name: 'node-2' });
    await bed.client.create(NODES, nodeObject('node-2', Date.now()));
    // its token was bound to the deleted node
    await bed.agents?.on('node-2').stop();
    await bed.agents?.on('node-2').start();
    await untilValue(
      'node-2 to show them',
      () => seen.onNode('node-2'),
      (count) => count !== undefined,
    );
    await seen.onNode('node-1', '0');
    await seen.waitForTotal(10);
  });

  it('are advertised by the next leader', async () => {
    // other tests run without leader election, because a process that loses its Lease exits and is not restarted here
    const electing = { args: ['--leader-elect'] };
    await capacity.stop();
    await capacity.start(electing);
    try {
      await seen.createPool(TEN);
      await seen.waitForTotal(10);
      await capacity.kill();
      await capacity.start(electing);
      await seen.onNode('node-1', '0');
      await seen.waitForTotal(10);
    } finally {
      await capacity.stop();
      await capacity.start();
    }
  });

  it('are never advertised as zero because the API server is down', async () => {
    await seen.createPool(TEN);
    await seen.waitForTotal(10);
    const low = await seen.missingCapacityDuring(async () => {
      await bed.apiServer.pause();
      await pause(3_000);
      bed.apiServer.resume();
      await bed.apiServer.kill();
      await bed.apiServer.start();
      await wire.createPod('one', { networks: [{ name: 'blue' }] });
      await seen.waitForPod('one', 75_000);
    });
    expect(low).to.deep.equal([]);
    expect(await seen.total()).to.equal(10);
  });

  it('are no longer advertised after their pool is deleted', async () => {
    await seen.createPool(TEN);
    await seen.waitForTotal(10);
    await bed.client.delete(ADDRESS_POOLS, { name: seen.name });
    await seen.waitForTotal(undefined);
  });

  describe('of a pool with blocks', () => {
    const restart = async (gates: readonly string[], ofIpam: readonly string[]) => {
      const agents = bed.agents?.all ?? [];
      await Promise.all([capacity, bed.ipam, ...agents].map((each) => each.stop()));
      await Promise.all([
        capacity.start({ args: gates }),
        bed.ipam.start({ args: [...gates, ...ofIpam] }),
        ...agents.map((agent) => agent.start({ args: gates })),
      ]);
    };

    before(() => restart([BLOCKS], ['--block-min-free=2']));
    after(() => restart([], []));

    it('are advertised only on the node of their block, or on all nodes without a block, and never twice', async () => {
      await seen.createPool(LENDABLE, { blockSize: { ipv4: 28 } });
      await seen.waitForTotal(FOURTEEN.length);
      const overdrawn = await seen.excessCapacityDuring(FOURTEEN, async () => {
        await wire.createPod('first', { networks: [{ name: 'blue' }], affinity: seen.affinityTo('node-1') });
        await wire.waitRunning('first');
        // an even share would be half of them
        await untilValue(
          'node-1 to show the addresses of its block, and all nodes together the others',
          async () => ({ shares: await seen.shares(), ...(await seen.freeAddresses(FOURTEEN)) }),
          ({ shares, total, own }) => {
            const ofBlock = own.get('node-1') ?? 0;
            const shows = shares.get('node-1') ?? 0;
            return own.size === 1 && ofBlock >= 10 && shows >= ofBlock && sumOf(shares) === total;
          },
        );
        const names = Array.from({ length: 15 }, (_, index) => `pod-${index + 1}`);
        await Promise.all(names.map((name) => wire.createPod(name, { networks: [{ name: 'blue' }] })));
        const { waiting } = await seen.waitForRunning(FOURTEEN.length);
        expect(waiting).to.have.length(2);
        for (const pod of waiting) await seen.waitForInsufficient(pod);
      });
      expect(overdrawn).to.deep.equal([]);
      expect(await story.addresses.heldAddresses()).to.have.length(FOURTEEN.length);
    });
  });
});
