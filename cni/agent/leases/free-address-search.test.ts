import { expect } from 'chai';
import { BlockAgentWorld, isIn } from '../testing/model/block-agent-world.js';
import { BLOCK_FEED } from '../testing/model/lease-agent.js';
import { LeaseAgentWorld, NODE, OTHER } from '../testing/model/lease-agent-world.js';
import { ADDRESS_LEASES } from '../../../kube/resources.js';
import { REUSE_MS } from '../../../addressing/lease/lease-times.js';
import { compiledPool } from '../../../test/objects/lease-objects.js';
import { BLOCK_TAKEN_TTL_MS } from '../blocks/block-candidates.js';
import { MAX_ALLOCATION_ATTEMPTS, MAX_BLIND_ATTEMPTS } from './free-address-search.js';

/** The open addresses are 10.0.0.1 to 10.0.0.30. */
const POOL = compiledPool({ cidr: '10.0.0.0/27' });
const SPACE = 'spec.addressSpace=blue';
/** 10.0.0.8 to 10.0.0.11. */
const ONE = '10.0.0.8/30';
const TWO = '10.0.0.16/30';
const COOLDOWN_MS = 60_000;

describe('addresses from the blocks of the node', () => {
  let scene: BlockAgentWorld;

  beforeEach(() => {
    scene = new BlockAgentWorld(POOL, ONE);
  });

  it('cost one create each, without a watch of other leases', async () => {
    scene = new BlockAgentWorld(POOL, ONE, TWO);
    const found: string[] = [];
    for (let n = 0; n < 8; n++) found.push(...(await scene.add({ pod: `p${n}` })));
    expect(found.filter(isIn(ONE))).to.have.length(4);
    expect(found.filter(isIn(TWO))).to.have.length(4);
    expect(scene.requests().map((text) => text.split(' ')[0])).to.deep.equal(Array(8).fill('POST'));
    expect([...scene.agent.feeds.keys()].sort()).to.deep.equal([BLOCK_FEED, `spec.node=${NODE}`]);
  });

  it('are followed by random picks outside, without a watch, once the blocks are exhausted', async () => {
    for (let n = 0; n < 8; n++) await scene.add({ pod: `p${n}` });
    expect(scene.held.filter(isIn(ONE))).to.have.length(4);
    expect(scene.requests()).to.have.length(8);
    expect(scene.agent.feeds.has(SPACE)).to.equal(false);
    const picks = await scene.agent.metrics.registry.getSingleMetric('holdfast_agent_picks_total')?.get();
    expect(picks?.values.map(({ labels, value }) => [labels.source, value])).to.deep.equal([
      ['block', 4],
      ['blind', 4],
    ]);
  });

  it('are followed by addresses that a watch shows as free, once random picks have failed', async () => {
    scene = new BlockAgentWorld(compiledPool({ cidr: '10.0.0.0/24' }));
    for (let last = 1; last < 254; last++) await scene.leaseTo(OTHER, `10.0.0.${last}`);
    const granted = scene.add();
    await scene.turn();
    expect(scene.requests()).to.have.length.within(MAX_BLIND_ATTEMPTS, MAX_ALLOCATION_ATTEMPTS);
    expect(scene.agent.feeds.has(SPACE)).to.equal(true);
    scene.follow();
    expect(await granted).to.deep.equal(['10.0.0.254']);
  });

  it('are tried once per half hour if an owner outside of the node has them', async () => {
    for (const last of [8, 9, 10]) await scene.leaseTo(OTHER, `10.0.0.${last}`);
    expect(await scene.add({ pod: 'first' })).to.deep.equal(['10.0.0.11']);
    await scene.del({ pod: 'first' });
    scene.requests();
    expect((await scene.add({ pod: 'second' })).filter(isIn(ONE))).to.deep.equal([]);
    expect(scene.requests()).to.have.length(1);
    expect(scene.agent.feeds.has(SPACE)).to.equal(false);
    scene.cluster.server.tracker.remove(ADDRESS_LEASES, { name: 'blue.10-0-0-9' });
    await scene.pass(BLOCK_TAKEN_TTL_MS);
    scene.cluster.server.tracker.remove(ADDRESS_LEASES, { name: 'blue.10-0-0-11' });
    expect((await scene.add({ pod: 'third' })).filter(isIn(ONE))).to.have.length(1);
  });

  it('are skipped if the watch of all leases shows that they are taken', async () => {
    for (let last = 1; last <= 30; last++) {
      if (last !== 7 && !isIn(ONE)(`10.0.0.${last}`)) await scene.leaseTo(OTHER, `10.0.0.${last}`);
    }
    for (let n = 0; n < 4; n++) expect((await scene.add({ pod: `p${n}` })).filter(isIn(ONE))).to.have.length(1);
    scene.watch();
    expect(await scene.add({ pod: 'outside' })).to.deep.equal(['10.0.0.7']);
    for (const last of [8, 9, 10, 11])
      scene.cluster.server.tracker.remove(ADDRESS_LEASES, { name: `blue.10-0-0-${last}` });
    for (const last of [8, 9, 10]) await scene.leaseTo(OTHER, `10.0.0.${last}`);
    scene.follow();
    scene.requests();
    expect(await scene.add({ pod: 'late' })).to.deep.equal(['10.0.0.11']);
    expect(scene.requests()).to.have.length(1);
  });

  it('are given up after a few that are taken', async () => {
    scene = new BlockAgentWorld(POOL, ONE, TWO, '10.0.0.20/30');
    for (const last of [8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23]) await scene.leaseTo(OTHER, `10.0.0.${last}`);
    await scene.add();
    expect(scene.requests().length).to.be.within(9, 12);
  });

  it('include those that this node has released and that have cooled down', async () => {
    for (let n = 0; n < 4; n++) await scene.add({ pod: `p${n}` });
    await scene.del({ pod: 'p2' });
    const [, , third] = scene.held;
    scene.requests();
    await scene.pass(COOLDOWN_MS - 1);
    expect((await scene.add({ pod: 'early' })).filter(isIn(ONE))).to.deep.equal([]);
    await scene.pass(1);
    scene.requests();
    expect((await scene.add({ pod: 'late' })).filter(isIn(ONE))).to.have.length(1);
    expect(scene.requests().map((text) => text.split(' ')[0])).to.deep.equal(['PATCH']);
    expect(third).to.not.equal(undefined);
  });

  it('include released ones only after free ones once ipam has deleted them', async () => {
    for (let n = 0; n < 3; n++) await scene.add({ pod: `p${n}` });
    await scene.del({ pod: 'p1' });
    await scene.pass(COOLDOWN_MS + REUSE_MS);
    for (const { metadata, spec } of [...scene.cluster.server.leases.values()])
      if (spec.releasedAt !== undefined) scene.cluster.server.tracker.remove(ADDRESS_LEASES, { name: metadata.name });
    scene.requests();
    for (const pod of ['free', 'last']) expect((await scene.add({ pod })).filter(isIn(ONE))).to.have.length(1);
    const verbs = scene.requests().map((text) => text.split(' ')[0]);
    expect(verbs, 'the last one is found deleted, and created').to.deep.equal(['POST', 'PATCH', 'POST']);
  });

  for (const step of [-300_000, 300_000]) {
    it(`include those after their whole cool-down if the clock is set by ${step / 60_000} min, and then back`, async () => {
      for (let n = 0; n < 4; n++) await scene.add({ pod: `p${n}` });
      scene.clock.setBack(-step);
      await scene.del({ pod: 'p2' });
      scene.clock.setBack(2 * step);
      await scene.pass(COOLDOWN_MS - 1);
      expect((await scene.add({ pod: 'early' })).filter(isIn(ONE))).to.deep.equal([]);
      await scene.pass(1);
      expect((await scene.add({ pod: 'late' })).filter(isIn(ONE))).to.have.length(1);
    });
  }

  it('exclude leases that have cooled down outside of the blocks, or in a released block', async () => {
    for (let n = 0; n < 5; n++) await scene.add({ pod: `p${n}` });
    for (const pod of ['p2', 'p4']) await scene.del({ pod });
    await scene.setStatus(ONE, { release: 'marked-for-release' });
    await scene.pass(COOLDOWN_MS);
    scene.requests();
    await scene.add({ pod: 'late' });
    expect(scene.requests().map((text) => text.split(' ')[0]))
      .to.include('POST')
      .and.not.to.include('PATCH');
  });

  it('are tried once if they have cooled down and another owner was faster', async () => {
    for (let n = 0; n < 4; n++) await scene.add({ pod: `p${n}` });
    const gone = (await scene.add({ pod: 'p0' }))[0]!;
    await scene.del({ pod: 'p0' });
    await scene.pass(COOLDOWN_MS);
    scene.cluster.server.tracker.remove(ADDRESS_LEASES, { name: `blue.${gone.replaceAll('.', '-')}` });
    await scene.leaseTo(OTHER, gone);
    scene.requests();
    expect((await scene.add({ pod: 'late' })).filter(isIn(ONE))).to.deep.equal([]);
    expect(scene.requests().map((text) => text.split(' ')[0])).to.deep.equal(['PATCH', 'POST']);
  });

  it('wait until the blocks are known', async () => {
    scene.start();
    scene.agent.feeds.get(`spec.node=${NODE}`)?.list();
    const granted = scene.add();
    await scene.turn();
    expect(scene.requests()).to.deep.equal([]);
    scene.agent.catchUp();
    expect((await granted).filter(isIn(ONE))).to.have.length(1);
  });

  it('are not used while the feature gate NodeBlocks is off', async () => {
    const world = new LeaseAgentWorld(POOL);
    world.cluster.blocks.set(ONE, NODE);
    await world.add();
    expect([...world.agent.feeds.keys()]).to.deep.equal([`spec.node=${NODE}`]);
    expect(world.agent.metrics.registry.getSingleMetric('holdfast_agent_blocks')).to.equal(undefined);
  });
});
