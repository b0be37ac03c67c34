import { expect } from 'chai';
import fc from 'fast-check';
import { CapacityWorld } from './testing/world.js';

/** What happens, and how many steps go by before the next thing does. */
interface Happening {
  readonly what: 'create' | 'end' | 'vanish' | 'claim';
  readonly pick: number;
  readonly requested: number;
  readonly allowed: number;
  readonly barred: number;
  readonly pause: number;
}

interface Story {
  readonly nodes: number;
  readonly addresses: number;
  readonly seed: number;
  readonly happenings: readonly Happening[];
}

const STEPS_TO_CALM = 150;
/** Each kind of pod that waits may need the patience for each node. */
const STEPS_TO_BIND = 3_000;

function stories(whats: readonly Happening['what'][]): fc.Arbitrary<Story> {
  const happening = fc.record({
    what: fc.constantFrom(...whats),
    pick: fc.nat(1_000),
    requested: fc.constantFrom(1, 1, 1, 2),
    allowed: fc.nat(31),
    barred: fc.nat(31),
    pause: fc.constantFrom(0, 0, 0, 1, 5, 40),
  });
  return fc.record({
    nodes: fc.integer({ min: 1, max: 5 }),
    addresses: fc.integer({ min: 0, max: 12 }),
    seed: fc.nat(),
    happenings: fc.array(happening, { maxLength: 40, size: 'max' }),
  });
}

function randomOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function happen(world: CapacityWorld, { what, pick, requested, allowed, barred }: Happening): void {
  const some = (mask: number) => world.nodes.filter((_, index) => (mask & (1 << index)) !== 0);
  if (what === 'create') {
    // most pods can run on every node, and most nodes have free addresses
    const where = pick % 2 === 0 ? world.nodes : some(allowed);
    world.create({ requested, allowed: where, unsuitable: pick % 3 === 0 ? some(barred) : [] });
    return;
  }
  if (what === 'claim') {
    world.allocateToClaim();
    return;
  }
  const pods = [...world.pods.values()];
  const pod = pods[pick % Math.max(1, pods.length)];
  if (pod === undefined) return;
  if (what === 'end') world.announceEnd(pod);
  else world.endAtOnce(pod);
}

function run(story: Story, check: (world: CapacityWorld) => void): CapacityWorld {
  const world = new CapacityWorld(story.nodes, story.addresses, randomOf(story.seed));
  const go = (steps: number) => {
    for (let left = steps; left > 0; left--) {
      world.step();
      check(world);
    }
  };
  go(40);
  for (const happening of story.happenings) {
    happen(world, happening);
    go(happening.pause);
  }
  return world;
}

describe('shares of a pool, with a scheduler that sees nodes late,', function () {
  this.timeout(60_000);

  it('never allow more bound pods than addresses', () => {
    fc.assert(
      fc.property(stories(['create', 'create', 'create', 'end']), (story) => {
        run(story, (world) => {
          expect(world.missing).to.be.at.most(world.free);
        });
      }),
      { numRuns: 200 },
    );
  });

  it('never leave a pod pending that could run while an address is free', () => {
    fc.assert(
      fc.property(stories(['create', 'create', 'end', 'vanish', 'claim']), (story) => {
        const world = run(story, () => undefined);
        // pending events are delivered first
        for (let left = STEPS_TO_CALM; left > 0; left--) world.step();
        for (let left = STEPS_TO_BIND; left > 0 && world.starving.length > 0; left--) world.step();
        expect(world.starving.map(({ id }) => id)).to.deep.equal([]);
      }),
      { numRuns: 200 },
    );
  });

  it('bind exactly as many pods as there are addresses, and more when addresses become free', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 12 }),
        fc.nat(),
        (nodes, addresses, seed) => {
          const world = new CapacityWorld(nodes, addresses, randomOf(seed));
          const settle = (steps: number) => {
            for (let left = steps; left > 0; left--) world.step();
          };
          settle(40);
          for (let left = addresses + 5; left > 0; left--)
            world.create({ requested: 1, allowed: world.nodes, unsuitable: [] });
          settle(300);
          const bound = () => [...world.pods.values()].filter(({ node }) => node !== undefined);
          expect(bound()).to.have.length(addresses);
          expect(world.missing).to.equal(0);
          for (const pod of bound().slice(0, 5)) world.announceEnd(pod);
          settle(500);
          expect(world.pods.size).to.be.at.least(addresses);
          expect(bound()).to.have.length(addresses);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('need few writes while there are many addresses', () => {
    const world = new CapacityWorld(5, 5_000, randomOf(7));
    for (let step = 0; step < 2_000; step++) {
      if (step % 4 === 0) world.create({ requested: 1, allowed: world.nodes, unsuitable: [] });
      const [oldest] = world.pods.values();
      if (step % 5 === 0 && oldest !== undefined) world.announceEnd(oldest);
      world.step();
    }
    expect(world.writes).to.be.at.most(10);
  });
});
