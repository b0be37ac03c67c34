import { expect } from 'chai';
import fc from 'fast-check';
import type { Ending } from '../../../test/agent-model/agent-process.js';
import { AgentWorld, NODES } from '../../../test/agent-model/world.js';

type Event =
  | { what: 'pod'; node: number }
  | { what: 'sandbox' | 'add' | 'del' | 'giveUp' | 'claim'; pick: number }
  | { what: 'end'; pick: number; isDeleted: boolean }
  | { what: 'serve'; node: number; pick: number; ending: Ending }
  | { what: 'news'; node: number; feed: number; count: number }
  | { what: 'relist' | 'pods'; node: number }
  | { what: 'crash'; node: number; isApplied: boolean }
  | { what: 'pass'; ms: number }
  | { what: 'expire' | 'endClaims' };

const a = <W extends Event['what']>(what: W) => fc.constant(what);
const node = fc.nat({ max: NODES.length - 1 });
const pick = fc.nat({ max: 11 });
const ending = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Ending>('answered') },
  { weight: 1, arbitrary: fc.constantFrom<Ending>('lost', 'failed', 'refused') },
);
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ what: a('pod'), node }) },
  { weight: 2, arbitrary: fc.record({ what: a('sandbox'), pick }) },
  { weight: 8, arbitrary: fc.record({ what: a('add'), pick }) },
  { weight: 5, arbitrary: fc.record({ what: a('del'), pick }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('giveUp' as const, 'claim'), pick }) },
  { weight: 1, arbitrary: fc.record({ what: a('end'), pick, isDeleted: fc.boolean() }) },
  { weight: 24, arbitrary: fc.record({ what: a('serve'), node, pick, ending }) },
  {
    weight: 8,
    arbitrary: fc.record({ what: a('news'), node, feed: fc.nat({ max: 1 }), count: fc.constantFrom(1, 3, 50) }),
  },
  { weight: 4, arbitrary: fc.record({ what: fc.constantFrom('relist' as const, 'pods'), node }) },
  { weight: 1, arbitrary: fc.record({ what: a('crash'), node, isApplied: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ what: a('pass'), ms: fc.constantFrom(50, 1_000, 31_000, 61_000) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('expire' as const, 'endClaims') }) },
);

type Happenings = { [W in Event['what']]: (world: AgentWorld, event: Extract<Event, { what: W }>) => unknown };

const HAPPEN: Happenings = {
  pod: (world, { node }) => world.startPod(node),
  sandbox: (world, { pick }) => world.startSandbox(pick),
  add: (world, { pick }) => world.add(pick),
  del: (world, { pick }) => world.del(pick),
  giveUp: (world, { pick }) => world.giveUp(pick),
  claim: (world, { pick }) => world.ipam.claim(pick),
  end: (world, { pick, isDeleted }) => world.endPod(pick, isDeleted),
  serve: (world, { node, pick, ending }) => world.agents[node]!.serve(pick, ending),
  news: (world, { node, feed, count }) => [...world.agents[node]!.feeds.values()][feed]?.deliver(count),
  relist: (world, { node }) => [...world.agents[node]!.feeds.values()].forEach((feed) => feed.list()),
  pods: (world, { node }) => world.agents[node]!.seePods(),
  crash: (world, { node, isApplied }) => world.crash(node, isApplied),
  pass: (world, { ms }) => world.pass(ms),
  expire: (world) => world.ipam.expire(),
  endClaims: (world) => world.ipam.endClaims(),
};

describe('leases of pods, whatever happens', function () {
  this.timeout(120_000);

  it('are held by those who were answered, by nobody after their DEL, and in the end by no pod that is gone', async () => {
    let grants = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 40, maxLength: 160, size: 'max' }), async (events) => {
        const world = new AgentWorld();
        for (const current of events) {
          await HAPPEN[current.what](world, current as never);
          await world.turn();
          world.check();
        }
        await world.settle();
        world.check();
        world.checkDeleted();
        await world.endAll();
        grants += world.grants;
      }),
      { numRuns: Number(globalThis.process.env.MODEL_RUNS ?? 500) },
    );
    // or else nothing was tried
    expect(grants).to.be.greaterThan(500);
  });
});
