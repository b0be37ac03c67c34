import { expect } from 'chai';
import { PoolCondition } from '../../api/conditions.js';
import { parsePool } from '../../addressing/directory/pool-state.js';
import { compilePool } from '../../addressing/pool/pool.js';
import { ManualClock } from '../../test/manual-clock.js';
import { TurnCounter } from '../../test/turn-counter.js';
import { adminPool, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';
import { COMPARE_INTERVAL_MS, SegmentOverlapTracker } from './segment-overlap.js';

const ofNetwork = (network: string, more: object = {}) => ({
  ...holdfastConfig({ subnets: [{ cidr: '10.100.0.0/24' }], ...more }, network),
  bridge: 'br0',
});

describe('pools of networks that share a layer-2 segment', () => {
  let world: PoolsWorld;
  const overlap = (pool: string) => world.condition(pool, PoolCondition.OverlapsOnWire);

  beforeEach(async () => {
    world = new PoolsWorld();
    world.putNads(nad('tenant-a/red', ofNetwork('red')), nad('tenant-b/blue', ofNetwork('blue')));
    await settle();
  });

  /** Waits until segments have been compared again. */
  async function settle(): Promise<void> {
    await world.settle();
    world.clock.advanceTo(world.clock.now() + COMPARE_INTERVAL_MS);
    await world.settle();
  }

  it('report that their addresses can be leased twice, name no foreign namespace, and keep serving', () => {
    const said = /^True OtherAddressSpace: Addresses from 10\.100\.0\.1 on can be leased twice on bridge br0: another/;
    for (const pool of ['red.tenant-a', 'blue.tenant-b']) {
      expect(overlap(pool))
        .to.match(said)
        .and.not.to.match(/tenant/);
      expect(world.condition(pool, 'Ready')).to.match(/^True Serving/);
    }
    const told = world.events.filter((event) => event.includes('AddressPoolOverlapsOnWire'));
    expect(told).to.have.lengthOf(2);
  });

  it('stop reporting it once they have one address space', async () => {
    world.dropNad('tenant-b/blue');
    await settle();
    expect(overlap('red.tenant-a')).to.equal('none');
    world.putNads(nad('tenant-b/other', ofNetwork('other', { addressSpace: 'red' })));
    await settle();
    expect(overlap('red.tenant-a')).to.equal('none');
    expect(overlap('other.tenant-b')).to.equal('none');
  });

  it('are compared at most once in ten seconds, and written only if the result has changed', async () => {
    const writes = world.writes.length;
    for (let i = 0; i < 50; i++) {
      world.putNads(nad(`tenant-c/${i}`, { ...ofNetwork(`n${i}`), bridge: `br-${i}` }));
      await Promise.resolve();
    }
    expect(world.comparisons).to.be.at.most(4);
    await settle();
    const again = world.writes.slice(writes).filter((write) => /tenant-a|tenant-b/.test(write));
    expect(again).to.deep.equal([]);
  });

  it('are compared in slices, between which the event loop does other work', async () => {
    const pools = ['red', 'blue'].map((network, index) => {
      const addressed = adminPool(network, { network, cidr: `10.100.0.0/2${4 + index}` });
      const compiled = compilePool(addressed);
      if (!compiled.ok) throw new TypeError(network);
      return { ...parsePool(addressed), state: { kind: 'served' as const, pool: compiled.pool } };
    });
    const slow = new ManualClock(0);
    // each look at the clock is 15 ms later
    const clock = { now: () => (slow.advanceTo(slow.now() + 15), slow.now()), setTimer: slow.setTimer.bind(slow) };
    const told: string[][] = [];
    const directory = { poolsBySegment: new Map([['bridge br0', new Set(pools)]]), onChange: () => undefined };
    const tracker = new SegmentOverlapTracker(directory, clock, (names) => told.push([...names]));
    const started = tracker.start();
    const counter = new TurnCounter();
    await started;
    counter.stop();
    tracker.stop();
    expect(told).to.deep.equal([['red', 'blue']]);
    expect(counter.turns).to.be.at.least(1);
  });

  it('are still reported by a process that becomes the leader just after its caches have synced one after the other', async () => {
    const started = new PoolsWorld();
    for (const name of ['red.tenant-a', 'blue.tenant-b']) started.putPool(world.pools.get(name)!);
    await Promise.resolve();
    started.putNads(...world.nads.list());
    await Promise.resolve();
    await started.settle(started.elect());
    expect(started.condition('red.tenant-a', PoolCondition.OverlapsOnWire)).to.equal(overlap('red.tenant-a'));
    expect(started.events).to.deep.equal([]);
  });

  it("report it of an administrator's pool as well, whose NAD names no subnets", async () => {
    world.putNads(nad('tenant-c/green', { ...holdfastConfig({}, 'green'), bridge: 'br0' }));
    world.putPool(adminPool('green', { network: 'green', cidr: '10.100.0.64/26' }));
    await settle();
    expect(overlap('green')).to.match(/^True OtherAddressSpace: Addresses from 10\.100\.0\.65 on/);
  });

  it('are not reported if they are on different bridges', async () => {
    world.putNads(nad('tenant-b/blue', { ...ofNetwork('blue'), bridge: 'br1' }));
    await settle();
    expect(overlap('red.tenant-a')).to.equal('none');
    expect(overlap('blue.tenant-b')).to.equal('none');
  });
});
