import { expect } from 'chai';
import fc from 'fast-check';
import type { AddressPool } from '../../api/address-pool.js';
import { silentLogger } from '../../kube/log.js';
import { ControllerLoop } from '../../kube/controller-loop.js';
import { WorkQueue } from '../../kube/workqueue.js';
import { ManualClock } from '../../test/manual-clock.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { PoolsWorld } from './testing/pools-world.js';
import { PoolStatusWriter } from './status-writer.js';

const COUNTS = { capacity: 9, heldByStopped: 0, cooling: 0, reserved: 0 };
const READY = { type: 'Ready', status: 'True' as const, reason: 'Serving', message: 'serves' };

/** An API server that stores a status, and a cache that may lag behind it. */
class OnePool {
  readonly clock = new ManualClock(1_000_000);
  readonly sentAt: number[] = [];
  stored: AddressPool = { ...adminPool('p') };
  cached: AddressPool = this.stored;
  failing = false;
  pools = 1;
  readonly writer = new PoolStatusWriter({ patch: (...args: unknown[]) => this.#patch(args) as never }, this.clock, {
    countsIntervalMs: 60_000,
    poolCount: () => this.pools,
    random: () => 0,
  });

  write(leased: number, findings = [READY]) {
    const ipv4 = { ...COUNTS, leased, free: 9 - leased };
    return this.writer.write(this.cached, { ...ipv4, free: 99, ipv4, conditions: findings });
  }

  /** The conditions that changed, or how long the write was delayed. */
  async writeLater(ms: number, leased: number, findings = [READY]): Promise<string[] | number> {
    this.clock.advanceTo(this.clock.now() + ms);
    const written = await this.write(leased, findings);
    return 'earlyByMs' in written ? written.earlyByMs : written.transitions.map(({ reason }) => reason);
  }

  #patch([, , patch]: unknown[]): Promise<AddressPool> {
    this.sentAt.push(this.clock.now());
    if (this.failing) return Promise.reject(new Error('the server is away'));
    const { status } = (patch as { body: AddressPool }).body;
    const resourceVersion = String(Number(this.stored.metadata.resourceVersion) + 1);
    this.stored = { ...this.stored, metadata: { ...this.stored.metadata, resourceVersion }, ...(status && { status }) };
    return Promise.resolve(this.stored);
  }
}

describe('the status writer of a pool', () => {
  it('writes at once, and then not for a second', async () => {
    const one = new OnePool();
    await one.write(1);
    expect(one.stored.status).to.include({ leased: 1, free: 99 });
    expect(one.writer.msUntilDue(one.cached)).to.equal(1_000);
    one.clock.advanceTo(one.clock.now() + 400);
    expect(one.writer.msUntilDue(one.cached)).to.equal(600);
    one.clock.advanceTo(one.clock.now() + 600);
    expect(one.writer.msUntilDue(one.cached)).to.equal(0);
  });

  it('writes counts at once after a quiet time, then once in an interval', async () => {
    const one = new OnePool();
    await one.write(1);
    expect(await one.writeLater(60_000, 2)).to.deep.equal([]);
    expect(await one.writeLater(1_000, 3)).to.equal(59_000);
    expect(one.stored.status?.leased).to.equal(2);
    expect(one.writer.msUntilDue(one.cached), 'counted once a second at most').to.equal(1_000);
    expect(await one.writeLater(59_000, 4)).to.deep.equal([]);
    expect(one.stored.status?.leased).to.equal(4);
  });

  it('writes condition transitions at once, with the current counts', async () => {
    const one = new OnePool();
    await one.write(1);
    const serving = { ...READY, reason: 'LeasedOutside' };
    expect(await one.writeLater(1_000, 2, [serving])).to.deep.equal(['LeasedOutside']);
    expect(one.stored.status?.leased).to.equal(2);
    expect(await one.writeLater(1_000, 2, [serving, { ...READY, type: 'Conflict' }])).to.deep.equal(['Serving']);
    expect(await one.writeLater(1_000, 2, [serving])).to.deep.equal([]);
    expect(one.stored.status?.conditions).to.have.length(1);
    expect(await one.writeLater(1_000, 2, [{ ...serving, message: 'other leases' }])).to.equal(59_000);
  });

  it('writes at once that a family of the pool is full, or no longer full', async () => {
    const one = new OnePool();
    await one.write(1);
    expect(await one.writeLater(1_000, 9)).to.deep.equal([]);
    expect(one.stored.status?.ipv4?.free).to.equal(0);
    expect(await one.writeLater(1_000, 8)).to.deep.equal([]);
    expect(await one.writeLater(1_000, 7)).to.equal(59_000);
  });

  it('writes repeated transitions after a minute, however many pools there are', async () => {
    const one = Object.assign(new OnePool(), { pools: 6_000 });
    await one.write(1);
    const turning = (n: number) => [{ ...READY, reason: n % 2 === 0 ? 'Serving' : 'LeasedOutside' }];
    for (let n = 1; n <= 4; n++) expect(await one.writeLater(1_000, 1, turning(n))).to.have.length(1);
    expect(await one.writeLater(1_000, 1, turning(5))).to.equal(59_000);
    expect(await one.writeLater(59_000, 1, turning(5))).to.have.length(1);
    expect(await one.writeLater(1_000, 1, turning(6))).to.have.length(1);
  });

  it('writes counts less often if there are many pools', async () => {
    const one = new OnePool();
    one.pools = 500;
    await one.write(1);
    expect(await one.writeLater(1_000, 2)).to.equal(499_000);
  });

  it('does not wait longer after the wall clock is set back', async () => {
    const one = new OnePool();
    await one.write(1);
    one.clock.setBack(3_600_000);
    one.clock.advanceTo(one.clock.now() + 1_000);
    expect(one.writer.msUntilDue(one.cached)).to.equal(0);
    await one.write(2);
    expect(one.writer.msUntilDue(one.cached)).to.equal(1_000);
  });

  it('writes nothing twice, even if the cache does not show the first write yet', async () => {
    const one = new OnePool();
    await one.write(1);
    await one.write(1);
    one.cached = one.stored;
    await one.write(1);
    expect(one.sentAt).to.have.lengthOf(1);
  });

  it('restores what another client has changed', async () => {
    const one = new OnePool();
    await one.write(1);
    const metadata = { ...one.stored.metadata, resourceVersion: '99' };
    one.cached = { ...one.stored, metadata, status: { ...one.stored.status!, leased: 5 } };
    one.stored = one.cached;
    await one.writeLater(60_000, 1);
    expect(one.stored.status?.leased).to.equal(1);
  });

  it('waits after a failed write as well, and then writes', async () => {
    const one = new OnePool();
    one.failing = true;
    const error: unknown = await one.write(1).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(Error);
    expect(one.writer.msUntilDue(one.cached)).to.equal(1_000);
    one.failing = false;
    await one.write(1);
    expect(one.stored.status?.leased).to.equal(1);
  });

  it('returns which conditions have changed, once', async () => {
    const one = new OnePool();
    expect(await one.writeLater(0, 1)).to.deep.equal(['Serving']);
    expect(await one.writeLater(60_000, 2)).to.deep.equal([]);
    const outside = [{ ...READY, reason: 'LeasedOutside' }];
    expect(await one.writeLater(0, 2, outside)).to.deep.equal(['LeasedOutside']);
  });

  it('does not confuse a pool with an earlier one of the same name', async () => {
    const one = new OnePool();
    await one.write(1);
    one.cached = { ...adminPool('p'), metadata: { ...adminPool('p').metadata, uid: 'another' } };
    expect(one.writer.msUntilDue(one.cached)).to.equal(0);
    await one.write(1);
    expect(one.sentAt).to.have.lengthOf(2);
  });
});

describe('the status of pools, which every agent receives', () => {
  /** Status writes within a minute if each of 5 pools gains a lease every second. */
  async function writesAMinute(statusIntervalMs: number): Promise<number> {
    const world = new PoolsWorld();
    world.statusIntervalMs = statusIntervalMs;
    const sync = world.elect();
    const pools = Array.from({ length: 5 }, (_, n) => `p${n}`);
    for (const [n, name] of pools.entries()) {
      const pool = adminPool(name, { cidr: `10.0.${n}.0/24`, network: name, addressSpace: name });
      world.putPool({ ...pool, metadata: { ...pool.metadata, finalizers: ['x'] } });
    }
    const start = world.clock.now();
    for (let second = 0; second < 60; second++) {
      for (const [n, name] of pools.entries()) {
        world.lease(name, `10.0.${n}.${second + 2}`, `vms/c${n}-${second}`, name);
        await sync(name);
      }
      world.clock.advanceTo(start + (second + 1) * 1_000);
    }
    return world.writes.filter((write) => write.startsWith('status')).length;
  }

  it('is written once a minute for each pool under churn, a sixtieth of the writes with an interval of 1 s', async () => {
    const [spaced, before] = [await writesAMinute(60_000), await writesAMinute(1_000)];
    expect(spaced).to.equal(5);
    expect(before / spaced).to.equal(60);
  });
});

/** Leases, releases or deletes the n-th address, even while it is held; starts or stops its VM; or lets time pass. */
type Step = { kind: 'lease' | 'release' | 'expire' | 'start' | 'stop'; n: number } | { kind: 'pass'; ms: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constantFrom('lease' as const, 'release' as const, 'expire' as const, 'start' as const, 'stop' as const),
      n: fc.integer({ min: 2, max: 8 }),
    }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 1_500 }) }),
  ),
  { maxLength: 40 },
);

describe("a pool's status while leases come and go", () => {
  it('is written at most once a second, is exact in the end, and then is not written any more', async () => {
    const leasedAgain = (['lease', 'expire', 'lease'] as const).map((kind) => ({ kind, n: 6 }));
    await fc.assert(fc.asyncProperty(steps, run), { numRuns: 100, examples: [[leasedAgain]] });
  });

  async function run(given: Step[]): Promise<void> {
    const world = new PoolsWorld();
    world.putPool({
      ...adminPool('p', { cidr: '10.0.0.0/28' }),
      metadata: { ...adminPool('p').metadata, finalizers: ['x'] },
    });
    const queue = new WorkQueue({ clock: world.clock, random: () => 0.5 });
    const writtenAt: number[] = [];
    let writes = 0;
    const sync = async (key: string) => {
      const result = await world.sync(key);
      const status = world.writes.filter((write) => write.startsWith('status')).length;
      if (status > writes) writtenAt.push(world.clock.now());
      writes = status;
      return result;
    };
    const loop = new ControllerLoop({ name: 'p', queue, workers: 2, sync, log: silentLogger, clock: world.clock });
    world.book.onChange(() => queue.add('p'));
    loop.start();
    queue.add('p');
    const state = new Map<number, 'held' | 'released'>();
    for (const step of given) {
      act(step, world, state, (key) => queue.add(key));
      await settled();
    }
    for (let i = 0; i < 4; i++) {
      world.clock.advanceTo(world.clock.now() + 1_000);
      await settled();
    }
    const held = [...state].filter(([, value]) => value === 'held').map(([n]) => n);
    const cooling = state.size - held.length;
    const heldByStopped = held.filter((n) => !world.running.has(`vms/c${n}`)).length;
    expect(world.pools.get('p')?.status).to.include({
      leased: held.length,
      cooling,
      heldByStopped,
      free: 14 - state.size,
    });
    for (const [index, at] of writtenAt.entries()) {
      if (index > 0) expect(at - writtenAt[index - 1]!).to.be.at.least(1_000);
    }
    const before = world.writes.length;
    queue.add('p');
    await settled();
    expect(world.writes.length).to.equal(before);
    world.clock.advanceTo(world.clock.now() + 60_000);
    await loop.stop();
  }

  function act(
    step: Step,
    world: PoolsWorld,
    state: Map<number, 'held' | 'released'>,
    add: (key: string) => void,
  ): void {
    if (step.kind === 'pass') {
      world.clock.advanceTo(world.clock.now() + step.ms);
      return;
    }
    const { kind, n } = step;
    const [address, claim, now] = [`10.0.0.${n}`, `vms/c${n}`, state.get(n)];
    if (kind === 'lease' && now === undefined) {
      state.set(n, 'held');
      world.lease('p', address, claim);
    } else if (kind === 'release' && now === 'held') {
      state.set(n, 'released');
      world.release(address);
    } else if (kind === 'expire' && now !== undefined) {
      state.delete(n);
      world.expire(address);
    } else if (kind === 'start' || kind === 'stop') {
      if (kind === 'start') world.running.add(claim);
      else world.running.delete(claim);
      for (const key of world.usage.updateClaim(claim)) add(key);
    }
  }

  /** Waits until everything has run that does not wait for time. */
  function settled(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
});
