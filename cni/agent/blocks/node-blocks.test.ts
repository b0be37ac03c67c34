import { expect } from 'chai';
import { BlockRelease, ReleaseReason } from '../../../api/address-block.js';
import { StatusError, TransportError } from '../../../kube/errors.js';
import { BlockAgentWorld, isIn } from '../testing/model/block-agent-world.js';
import { BLOCK_FEED, COLLECT_AFTER_MS } from '../testing/model/lease-agent.js';
import { NODE } from '../testing/model/lease-agent-world.js';
import { compiledPool } from '../../../test/objects/lease-objects.js';
import { ANSWER_INTERVAL_MS } from './node-blocks.js';

/** The open addresses are 10.0.0.1 to 10.0.0.30. */
const POOL = compiledPool({ cidr: '10.0.0.0/27' });
/** 10.0.0.8 to 10.0.0.11. */
const ONE = '10.0.0.8/30';
const TWO = '10.0.0.16/30';
const MARKED = { release: BlockRelease.Marked, reason: ReleaseReason.Excess };
const PRESSED = { release: BlockRelease.Marked, reason: ReleaseReason.Pressure };
const BROKEN = { error: new TransportError('broken', 'the connection broke'), applied: true };
const UNSENT = { error: new TransportError('unsent', 'nobody listens'), applied: false };
const CONFLICT = {
  error: new StatusError({ request: 'PATCH', status: 409, reason: 'Conflict', message: 'changed' }),
  applied: false,
};

describe('a block that is marked for release', () => {
  let scene: BlockAgentWorld;

  beforeEach(() => {
    scene = new BlockAgentWorld(POOL, ONE);
  });

  it('is released if no pod has an address of it, and none is picked from it any more', async () => {
    await scene.setStatus(ONE, MARKED);
    expect(scene.releaseStateOf(ONE)).to.equal('ready-for-release');
    expect(scene.requests()).to.deep.equal(['PATCH blue.10-0-0-8-30']);
    for (let n = 0; n < 26; n++) await scene.add({ pod: `p${n}` });
    expect(scene.held.filter(isIn(ONE))).to.deep.equal([]);
    const refused = scene.refused({ pod: 'one more' });
    await scene.turn();
    scene.follow();
    expect(await refused).to.include('11 pool blue is full');
    scene.cluster.blocks.delete(ONE);
    await scene.deliver();
    expect((await scene.add({ pod: 'one more' })).filter(isIn(ONE))).to.have.length(1);
  });

  it('is kept if a pod has an address of it, and used again once the mark is removed', async () => {
    await scene.add({ pod: 'first' });
    await scene.setStatus(ONE, MARKED);
    expect(scene.releaseStateOf(ONE)).to.equal('do-not-release');
    expect((await scene.add({ pod: 'second' })).filter(isIn(ONE))).to.deep.equal([]);
    await scene.deliver();
    expect((await scene.add({ pod: 'third' })).filter(isIn(ONE))).to.have.length(1);
    await scene.setStatus(ONE, {});
    expect((await scene.add({ pod: 'fourth' })).filter(isIn(ONE))).to.have.length(1);
  });

  it('is released if all its leases are released', async () => {
    await scene.add();
    await scene.del();
    await scene.setStatus(ONE, MARKED);
    expect(scene.releaseStateOf(ONE)).to.equal('ready-for-release');
  });

  it('is kept if a requested address lies in it', async () => {
    await scene.add({ requested: ['10.0.0.9'] });
    await scene.setStatus(ONE, MARKED);
    expect(scene.releaseStateOf(ONE)).to.equal('do-not-release');
  });

  it('is kept while a lease in it is being written', async () => {
    let goOn: () => void = () => undefined;
    scene.agent.api.before = ({ method }) =>
      method === 'POST' ? new Promise((resolve) => (goOn = () => resolve(undefined))) : undefined;
    const granted = scene.add({ requested: ['10.0.0.9'] });
    await scene.turn();
    await scene.setStatus(ONE, MARKED);
    expect(scene.releaseStateOf(ONE)).to.equal('do-not-release');
    goOn();
    expect(await granted).to.deep.equal(['10.0.0.9']);
  });

  it('is kept while the result of a write in it is unknown, and no longer', async () => {
    scene.fail({ ...BROKEN, applied: false }, UNSENT);
    expect(await scene.refused()).to.match(/^11 /);
    await scene.setStatus(ONE, MARKED);
    expect(scene.releaseStateOf(ONE)).to.equal('do-not-release');
    await scene.deliver();
    for (let look = 0; look < 4; look++) await scene.pass(COLLECT_AFTER_MS / 2);
    await scene.setStatus(ONE, MARKED);
    expect(scene.releaseStateOf(ONE)).to.equal('ready-for-release');
  });

  it('is not answered before the leases of the node are known', async () => {
    scene.start();
    scene.agent.feeds.get(BLOCK_FEED)?.list();
    scene.cluster.blocks.set(ONE, NODE, PRESSED);
    scene.agent.feeds.get(BLOCK_FEED)?.deliver();
    await scene.turn();
    expect(scene.releaseStateOf(ONE)).to.equal('marked-for-release');
    await scene.deliver();
    expect(scene.releaseStateOf(ONE)).to.equal('ready-for-release');
  });

  it('is not used after a restart of the agent', async () => {
    await scene.setStatus(ONE, MARKED);
    scene.restart();
    expect((await scene.add()).filter(isIn(ONE))).to.deep.equal([]);
  });

  it('is answered again and not used if the answer got no reply', async () => {
    for (const fault of [BROKEN, UNSENT]) {
      scene = new BlockAgentWorld(POOL, ONE);
      scene.fail(fault);
      scene.cluster.blocks.set(ONE, NODE, MARKED);
      scene.agent.feeds.get(BLOCK_FEED)?.deliver();
      await scene.turn();
      expect((await scene.add()).filter(isIn(ONE))).to.deep.equal([]);
      for (const wait of [1_000, ANSWER_INTERVAL_MS]) await scene.pass(wait);
      expect(scene.releaseStateOf(ONE)).to.equal('ready-for-release');
    }
  });

  it('is left to the watch if ipam has changed it first', async () => {
    scene.fail(CONFLICT);
    await scene.setStatus(ONE, PRESSED);
    await scene.pass(ANSWER_INTERVAL_MS);
    expect(scene.releaseStateOf(ONE)).to.equal('marked-for-release');
    await scene.setStatus(ONE, {});
    expect((await scene.add()).filter(isIn(ONE))).to.have.length(1);
    const sent = await scene.agent.metrics.registry.getSingleMetric('holdfast_agent_block_answers_total')?.get();
    expect(sent?.values.map(({ labels }) => labels)).to.deep.equal([{ answer: 'ready-for-release', outcome: 'lost' }]);
  });

  it('is answered in the next round, or at once if somebody waits for it', async () => {
    scene = new BlockAgentWorld(POOL, ONE, TWO, '10.0.0.20/30');
    await scene.setStatus(ONE, MARKED);
    await scene.setStatus(TWO, MARKED);
    await scene.setStatus('10.0.0.20/30', PRESSED);
    expect(['ready-for-release', 'marked-for-release', 'ready-for-release']).to.deep.equal(
      [ONE, TWO, '10.0.0.20/30'].map((cidr) => scene.releaseStateOf(cidr)),
    );
    await scene.pass(ANSWER_INTERVAL_MS - 1);
    expect(scene.releaseStateOf(TWO)).to.equal('marked-for-release');
    await scene.pass(1);
    expect(scene.releaseStateOf(TWO)).to.equal('ready-for-release');
  });

  it('is answered in parallel with only a few others', async () => {
    const cidrs = [0, 4, 8, 12, 16, 20, 24].map((last) => `10.0.0.${last}/30`);
    scene = new BlockAgentWorld(POOL, ...cidrs);
    const waiting: (() => void)[] = [];
    scene.agent.api.before = () => new Promise((resolve) => waiting.push(() => resolve(undefined)));
    for (const cidr of cidrs) scene.cluster.blocks.set(cidr, NODE, MARKED);
    await scene.deliver();
    expect(waiting).to.have.length(4);
    while (waiting.length > 0) {
      waiting.shift()?.();
      await scene.turn();
      expect(waiting.length).to.be.at.most(4);
    }
    expect(cidrs.map((cidr) => scene.releaseStateOf(cidr))).to.deep.equal(Array(7).fill('ready-for-release'));
  });

  it('is counted by state in the metrics', async () => {
    scene = new BlockAgentWorld(POOL, ONE, TWO, '10.0.0.20/30', '10.0.0.24/30');
    await scene.add();
    await scene.setStatus(scene.held.some(isIn(ONE)) ? TWO : ONE, MARKED);
    await scene.setStatus('10.0.0.20/30', { release: 'asked-politely' });
    await scene.deliver();
    const blocks = await scene.agent.metrics.registry.getSingleMetric('holdfast_agent_blocks')?.get();
    expect(blocks?.values.map(({ labels, value }) => [labels.state, value])).to.deep.equal([
      ['usable', 2],
      ['marked', 1],
      ['other', 1],
    ]);
  });

  it('is not answered any more after the agent stops, even if its leases were never known', async () => {
    await scene.agent.leases.stop();
    await scene.setStatus(ONE, PRESSED);
    expect(scene.releaseStateOf(ONE)).to.equal('marked-for-release');
    scene.start();
    await scene.agent.leases.stop();
  });
});
