import { expect } from 'chai';
import fc from 'fast-check';
import { JOBS, type Job, LeaseWorld, POOLS } from '../testing/lease-world.js';

/** Two that allocate, collect and expire, and an administrator. */
const PROCESSES = 3;

type Event =
  | { what: 'claim'; workload: number; pool: string }
  | { what: 'end'; pick: number }
  | { what: 'read'; process: number; count: number }
  | { what: 'relist'; process: number }
  | { what: 'set clock'; process: number; ms: number }
  | { what: 'decide'; process: number; job: Job; pick: number }
  | { what: 'serve'; pick: number; isAnswerLost: boolean }
  | { what: 'pass'; ms: number };

const a = <W extends Event['what']>(what: W) => fc.constant(what);
const process = fc.nat({ max: PROCESSES - 1 });
const pick = fc.nat({ max: 23 });
const job = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Job>('allocate') },
  { weight: 2, arbitrary: fc.constantFrom(...JOBS) },
  { weight: 5, arbitrary: fc.constantFrom<Job>('collect', 'expire', 'probe') },
);

const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ what: a('claim'), workload: fc.nat({ max: 5 }), pool: fc.constantFrom(...POOLS) }),
  },
  { weight: 3, arbitrary: fc.record({ what: a('end'), pick }) },
  { weight: 6, arbitrary: fc.record({ what: a('read'), process, count: fc.constantFrom(1, 3, 50) }) },
  { weight: 1, arbitrary: fc.record({ what: a('relist'), process }) },
  { weight: 1, arbitrary: fc.record({ what: a('set clock'), process, ms: fc.constantFrom(-300_000, 0, 300_000) }) },
  { weight: 10, arbitrary: fc.record({ what: a('decide'), process, job, pick }) },
  { weight: 10, arbitrary: fc.record({ what: a('serve'), pick, isAnswerLost: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ what: a('pass'), ms: fc.constantFrom(1, 5_000, 49_999, 60_000, 150_000) }) },
);

async function happen(world: LeaseWorld, current: Event): Promise<void> {
  switch (current.what) {
    case 'claim':
      world.claim(current.workload, current.pool);
      return;
    case 'end':
      world.endClaim(current.pick);
      return;
    case 'read':
      world.readers[current.process]?.deliver(current.count);
      return;
    case 'relist':
      world.readers[current.process]?.list();
      return;
    case 'set clock': {
      const reader = world.readers[current.process];
      if (reader !== undefined) reader.setMs = current.ms;
      return;
    }
    case 'decide':
      world.decide(current.process, current.job, current.pick);
      return;
    case 'serve':
      await world.serve(current.pick, current.isAnswerLost);
      return;
    case 'pass':
      world.pass(current.ms);
  }
}

describe('leases written by concurrent processes with stale caches', function () {
  this.timeout(120_000);

  it('have at most one owner, keep it until they are released or quarantined, and cool down, even if clocks are set', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 60, maxLength: 200, size: 'max' }), async (events) => {
        const world = new LeaseWorld(PROCESSES);
        for (const current of events) {
          await happen(world, current);
          world.check();
        }
        await world.settle();
        world.check();
        const left = [...world.server.leases.values()].filter(({ spec: { owner, quarantine } }) => owner ?? quarantine);
        expect(left, 'leases that nobody collected').to.deep.equal([]);
      }),
      { numRuns: Number(globalThis.process.env.MODEL_RUNS ?? 2000) },
    );
  });
});
