import { expect } from 'chai';
import fc from 'fast-check';
import { ADDRESSES, COOLDOWN_MS, KINDS, World } from './testing/lagging-responders.js';

const VMS = 4;
const VM = fc.nat(VMS - 1);

const OPS = ['start', 'stop', 'delete', 'move', 'restartWithOtherAddress', 'ask', 'ask', 'ask'] as const;
const STEP = fc.oneof(
  { weight: 8, arbitrary: fc.record({ op: fc.constantFrom(...OPS), vm: VM }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('advance' as const),
      ms: fc.constantFrom(500, 5_000, 29_000, 31_000, 61_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('watch' as const),
      responder: fc.nat(1),
      kinds: fc.oneof(
        fc.constantFrom(...KINDS).map((kind) => [kind]),
        fc.constant(KINDS),
      ),
      stops: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('cutOff' as const), responder: fc.nat(1), isCutOff: fc.boolean() }),
  },
);

function expectNoSharedAddress(hasFixedMacs: boolean): void {
  fc.assert(
    fc.property(fc.array(STEP, { minLength: 5, maxLength: 60, size: 'max' }), (steps) => {
      const world = new World(hasFixedMacs);
      for (const step of steps) {
        world.follow();
        if (step.op === 'advance') world.advance(step.ms);
        else if (step.op === 'cutOff') world.cutOff(step.responder, step.isCutOff);
        else if (step.op !== 'watch') world[step.op](step.vm);
        else for (const kind of step.kinds) world.watch(step.responder, kind, step.stops);
      }
    }),
    { numRuns: 200 },
  );
}

describe('two responders whose watches lag and stop, or whose API server is cut off from etcd', () => {
  it('never give one address to two guests whose MAC addresses KubeVirt generates', () => expectNoSharedAddress(false));

  it('never give one address to two guests that keep their MAC addresses', () => expectNoSharedAddress(true));

  it('do not give an address that was released, although they do not see the new one', () => {
    const world = new World(true);
    world.start(0);
    world.follow();
    for (const { stopped } of world.responders) stopped.add('claims');
    world.stop(0);
    world.move(0);
    world.start(0);
    world.follow();
    expect(world.responders.map(({ entries }) => entries.size)).to.deep.equal([0, 0]);
  });

  it('do not give an address to a second guest while the first one has it from a responder that was behind', () => {
    const world = new World(true);
    world.start(0);
    world.follow();
    for (const kind of KINDS) world.watch(0, kind, true);
    world.stop(0);
    world.move(0);
    world.start(0);
    world.follow();
    world.ask(0);
    expect(world.used(0)).to.equal(ADDRESSES[0]);
    world.advance(COOLDOWN_MS);
    world.start(1);
    world.follow();
    world.ask(1);
    expect(world.used(1)).to.equal(undefined);
  });

  it('do not trust the watches of an API server that is cut off from etcd for longer than others', () => {
    const world = new World(true);
    world.start(0);
    world.follow();
    world.ask(0);
    world.cutOff(0, true);
    const { now } = world;
    world.advance(COOLDOWN_MS);
    const [first, second] = world.responders;
    expect(first?.freshUntil).to.equal(now + COOLDOWN_MS / 2);
    expect(second?.freshUntil).to.be.greaterThan(world.now);
  });

  it('serve guests while one of them sees nothing', () => {
    const world = new World(false);
    const [first, second] = world.responders;
    for (const kind of KINDS) first?.stopped.add(kind);
    world.start(0);
    world.follow();
    expect([first?.entries.size, second?.entries.size]).to.deep.equal([0, 1]);
    expect([...(second?.entries.values() ?? [])][0]?.ipv4?.address).to.equal(ADDRESSES[0]);
  });
});
