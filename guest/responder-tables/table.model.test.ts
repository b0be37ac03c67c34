import { expect } from 'chai';
import fc from 'fast-check';
import { ADDRESSES, COOLDOWN_MS, World } from './testing/lagging-responders.js';
import { BUILD_MS, KINDS } from './testing/lagging-tables.js';

const VMS = 4;
const VM = fc.nat(VMS - 1);
const REPLICA = fc.nat(1);

const OPS = ['start', 'stop', 'delete', 'move', 'restartWithOtherAddress', 'ask', 'ask', 'ask'] as const;
const FAULT = fc.oneof(
  fc.record({
    op: fc.constant('watch' as const),
    guest: REPLICA,
    kind: fc.constantFrom(...KINDS),
    stops: fc.boolean(),
  }),
  fc.record({ op: fc.constant('lead' as const), guest: REPLICA, leads: fc.boolean() }),
  fc.record({ op: fc.constant('busy' as const), guest: REPLICA, buildMs: fc.constantFrom(0, BUILD_MS, Infinity) }),
  fc.record({ op: fc.constantFrom('hold' as const, 'release' as const), guest: REPLICA }),
  fc.record({ op: fc.constant('cutOffGuest' as const), guest: REPLICA, isCutOff: fc.boolean() }),
  fc.record({ op: fc.constant('cutOff' as const), responder: REPLICA, isCutOff: fc.boolean() }),
  fc.record({ op: fc.constant('stopWatch' as const), responder: REPLICA, stops: fc.boolean() }),
);
const STEP = fc.oneof(
  { weight: 8, arbitrary: fc.record({ op: fc.constantFrom(...OPS), vm: VM }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('advance' as const),
      ms: fc.constantFrom(500, 5_000, 29_000, 31_000, 61_000),
    }),
  },
  { weight: 3, arbitrary: FAULT },
);
type Fault = typeof FAULT extends fc.Arbitrary<infer T> ? T : never;

function fail(world: World, fault: Fault): void {
  if ('responder' in fault) {
    const responder = world.responders[fault.responder]!;
    if (fault.op === 'cutOff') responder.isCutOff = fault.isCutOff;
    else responder.isStopped = fault.stops;
    return;
  }
  const guest = world.guests[fault.guest]!;
  if (fault.op === 'watch') guest.stopped[fault.stops ? 'add' : 'delete'](fault.kind);
  else if (fault.op === 'lead') guest.leads = fault.leads;
  else if (fault.op === 'busy') guest.buildMs = fault.buildMs;
  else if (fault.op === 'cutOffGuest') guest.isCutOff = fault.isCutOff;
  else guest[fault.op]();
}

function expectNoSharedAddress(hasFixedMacs: boolean): void {
  fc.assert(
    fc.property(fc.array(STEP, { minLength: 5, maxLength: 60, size: 'max' }), (steps) => {
      const world = new World(hasFixedMacs);
      for (const step of steps) {
        world.follow();
        if (step.op === 'advance') world.advance(step.ms);
        else if ('vm' in step) world[step.op](step.vm);
        else fail(world, step);
      }
    }),
    { numRuns: 200 },
  );
}

/** A world in which the guest of VM 0 has an address, and all tables are fresh. */
function servedWorld(): World {
  const world = new World(true);
  world.start(0);
  world.advance(20_000);
  world.ask(0);
  expect(world.used(0)).to.equal(ADDRESSES[0]);
  return world;
}

const isFresh = ({ responders, now }: World) => responders.map(({ freshUntil }) => freshUntil > now);

describe('two responders that lag behind the tables of two replicas of guest, which lag behind the cluster', () => {
  it('never give one address to two guests whose MAC addresses KubeVirt generates', () => expectNoSharedAddress(false));

  it('never give one address to two guests that keep their MAC addresses', () => expectNoSharedAddress(true));

  it('have fresh tables all the time if nothing fails', () => {
    const world = servedWorld();
    for (let second = 0; second < 120; second++) {
      world.advance(1_000);
      if (second % 7 === 0) world.restartWithOtherAddress(1);
      expect(isFresh(world)).to.deep.equal([true, true]);
    }
  });

  it('keep them fresh while changes that alter nothing in them come all the time', () => {
    const world = servedWorld();
    world.guests[0].buildMs = BUILD_MS;
    for (let second = 0; second < 120; second++) {
      world.advance(1_000);
      expect(isFresh(world), `after ${second} s`).to.deep.equal([true, true]);
    }
  });

  it('keep them fresh when another replica of guest takes over within 15 s', () => {
    const world = servedWorld();
    const [first, second] = world.guests;
    first.leads = false;
    for (let seconds = 0; seconds < 40; seconds++) {
      second.leads = seconds >= 15;
      world.advance(1_000);
      expect(isFresh(world), `after ${seconds} s`).to.deep.equal([true, true]);
    }
  });

  it('do not give an address that was released, although guest does not see the new one', () => {
    const world = servedWorld();
    world.guests[0].stopped.add('claims');
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
    world.responders[0].isStopped = true;
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

  const faults: Record<string, (world: World) => void> = {
    'the API server of guest is cut off from etcd': (world) => (world.guests[0].isCutOff = true),
    'guest ends': (world) => (world.guests[0].leads = false),
    'a watch of guest stops': (world) => world.guests[0].stopped.add('vmis'),
    'the pool became invalid': (world) => (world.guests[0].buildMs = Infinity),
    'a write of guest does not arrive': (world) => world.guests[0].hold(),
  };
  for (const [name, act] of Object.entries(faults)) {
    it(`do not use their tables as fresh for longer than 30 s after ${name}`, () => {
      const world = servedWorld();
      act(world);
      world.advance(COOLDOWN_MS / 2);
      expect(isFresh(world)).to.deep.equal([false, false]);
    });
  }

  it('do not trust an API server that is cut off from etcd for longer than others', () => {
    const world = servedWorld();
    world.responders[0].isCutOff = true;
    world.advance(COOLDOWN_MS / 2);
    expect(isFresh(world)).to.deep.equal([false, true]);
  });

  it('do not trust a write of a former leader that arrives late', () => {
    const world = servedWorld();
    const [former, leader] = world.guests;
    world.start(1);
    former.hold();
    world.follow();
    former.leads = false;
    world.delete(1);
    leader.leads = true;
    world.advance(40_000);
    expect(isFresh(world)).to.deep.equal([true, true]);
    leader.hold();
    former.release();
    world.follow();
    expect(world.responders.map(({ entries }) => entries.size)).to.deep.equal([2, 2]);
    expect(isFresh(world)).to.deep.equal([false, false]);
    leader.release();
    world.advance(2_000);
    expect(world.responders.map(({ entries }) => entries.size)).to.deep.equal([1, 1]);
    expect(isFresh(world)).to.deep.equal([true, true]);
  });

  it('serve guests while one of them sees nothing', () => {
    const world = new World(false);
    const [first, second] = world.responders;
    first.isStopped = true;
    world.start(0);
    world.follow();
    expect([first.entries.size, second.entries.size]).to.deep.equal([0, 1]);
    expect([...second.entries.values()][0]?.ipv4?.address).to.equal(ADDRESSES[0]);
  });
});
