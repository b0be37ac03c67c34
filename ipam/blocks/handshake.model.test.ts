import { expect } from 'chai';
import fc from 'fast-check';
import { WATCHES } from './testing/model/agent.js';
import { type RequestFate, NODES, POOL_SHAPES, type PoolShape } from './testing/model/cluster.js';
import { CACHES } from './testing/model/ipam.js';
import { BlockWorld, UNKNOWN_RELEASE } from './testing/model/world.js';
import type { Family } from '../../addressing/address/address.js';

const FATES = ['done', 'dropped', 'late'] as const;

type Event =
  | { what: 'pod'; node: number }
  | { what: 'add' | 'endClaim' | 'delete'; pick: number }
  | { what: 'end'; pick: number; isToldOf: boolean }
  | { what: 'claim' | 'ask'; process: number; pick: number }
  | { what: 'calm' }
  | { what: 'look' | 'collect'; process: number }
  | { what: 'news'; process: number; feed: (typeof CACHES)[number]; count: number }
  | { what: 'agentNews'; node: number; watch: (typeof WATCHES)[number]; count: number }
  | { what: 'relist'; process: number; node: number }
  | { what: 'answer'; node: number }
  | { what: 'resolve'; node: number; pick: number }
  | { what: 'serve'; pick: number; ending: RequestFate }
  | { what: 'crashIpam'; process: number; fate: (typeof FATES)[number][] }
  | { what: 'crashAgent'; node: number; fate: (typeof FATES)[number][] }
  | { what: 'node'; node: number; state: 'there' | 'ending' | 'gone' }
  | { what: 'pool'; shape: PoolShape | 'ending' | 'gone' }
  | { what: 'word'; pick: number; word: string | null }
  | { what: 'pass'; ms: number };

const a = <W extends Event['what']>(what: W) => fc.constant(what);
const node = fc.nat({ max: NODES.length - 1 });
/** The first one leads most of the time. */
const process = fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.constant(1) });
const pick = fc.nat({ max: 11 });
const count = fc.constantFrom(1, 2, 100);
const fate = fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 3 });
const ending = fc.oneof(
  { weight: 5, arbitrary: fc.constant<RequestFate>('answered') },
  { weight: 1, arbitrary: fc.constantFrom<RequestFate>('lost', 'failed', 'late') },
);
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ what: a('pod'), node }) },
  { weight: 2, arbitrary: fc.record({ what: a('add'), pick }) },
  { weight: 7, arbitrary: fc.record({ what: a('end'), pick, isToldOf: fc.constantFrom(true, true, true, false) }) },
  { weight: 2, arbitrary: fc.record({ what: a('claim'), process, pick }) },
  { weight: 4, arbitrary: fc.record({ what: a('ask'), process, pick }) },
  { weight: 1, arbitrary: fc.record({ what: a('endClaim'), pick }) },
  { weight: 4, arbitrary: fc.record({ what: a('calm') }) },
  { weight: 12, arbitrary: fc.record({ what: a('look'), process }) },
  { weight: 2, arbitrary: fc.record({ what: a('collect'), process }) },
  { weight: 14, arbitrary: fc.record({ what: a('news'), process, feed: fc.constantFrom(...CACHES), count }) },
  { weight: 14, arbitrary: fc.record({ what: a('agentNews'), node, watch: fc.constantFrom(...WATCHES), count }) },
  { weight: 1, arbitrary: fc.record({ what: a('relist'), process, node }) },
  { weight: 8, arbitrary: fc.record({ what: a('answer'), node }) },
  { weight: 1, arbitrary: fc.record({ what: a('resolve'), node, pick }) },
  { weight: 30, arbitrary: fc.record({ what: a('serve'), pick, ending }) },
  { weight: 1, arbitrary: fc.record({ what: a('crashIpam'), process, fate }) },
  { weight: 2, arbitrary: fc.record({ what: a('crashAgent'), node, fate }) },
  {
    weight: 2,
    arbitrary: fc.record({ what: a('node'), node, state: fc.constantFrom('there', 'ending', 'gone', 'gone') }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      what: a('pool'),
      shape: fc.constantFrom('usual', 'usual', ...POOL_SHAPES, 'ending', 'gone'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ what: a('delete'), pick }) },
  { weight: 1, arbitrary: fc.record({ what: a('word'), pick, word: fc.constantFrom(UNKNOWN_RELEASE, null) }) },
  { weight: 7, arbitrary: fc.record({ what: a('pass'), ms: fc.constantFrom(1_000, 16_000, 61_000, 181_000) }) },
);

/** The families of the pool. Most runs use the fastest one. */
const families = fc.oneof(
  { weight: 3, arbitrary: fc.constant<readonly Family[]>([4]) },
  { weight: 1, arbitrary: fc.constantFrom<(readonly Family[])[]>([6], [4, 6]) },
);

type Happenings = { [W in Event['what']]: (world: BlockWorld, event: Extract<Event, { what: W }>) => unknown };

const HAPPEN: Happenings = {
  pod: (world, { node }) => world.startPod(node),
  add: (world, { pick }) => world.add(pick),
  end: (world, { pick, isToldOf }) => world.endPod(pick, isToldOf),
  claim: (world, { process, pick }) => world.claim(process, pick),
  ask: (world, { process, pick }) => world.ipams[process]!.requestRelease(pick),
  endClaim: (world, { pick }) => world.endClaim(pick),
  calm: (world) => world.runAll(),
  look: (world, { process }) => world.ipams[process]!.sync(),
  collect: (world, { process }) => world.collect(process),
  news: (world, { process, feed, count }) => world.ipams[process]!.read(feed, count),
  agentNews: (world, { node, watch, count }) => world.agents[node]!.read(watch, count),
  relist: (world, { process, node }) => {
    for (const feed of CACHES) world.ipams[process]!.relist(feed);
    for (const watch of WATCHES) world.agents[node]!.watches[watch].list();
  },
  answer: (world, { node }) => world.agents[node]!.answerReleases(),
  resolve: (world, { node, pick }) => world.agents[node]!.resolveUnknownWrite(pick),
  serve: (world, { pick, ending }) => world.serve(pick, ending),
  crashIpam: (world, { process, fate }) => world.crashIpam(process, fate),
  crashAgent: (world, { node, fate }) => world.crashAgent(node, fate),
  node: (world, { node, state }) => world.cluster.setNode(NODES[node]!, state),
  pool: (world, { shape }) => world.cluster.setPool(shape),
  delete: (world, { pick }) => world.deleteBlock(pick),
  word: (world, { pick, word }) => world.setRelease(pick, word),
  pass: (world, { ms }) => world.advance(ms),
};

describe('the release handshake of blocks under any failures', function () {
  this.timeout(120_000);

  it('never releases an address in use, never assigns a slice twice, and always completes', () => {
    const met = new Map<string, number>();
    fc.assert(
      fc.property(families, fc.array(event, { minLength: 60, maxLength: 240, size: 'max' }), (given, events) => {
        const world = new BlockWorld(given);
        for (const current of events) {
          HAPPEN[current.what](world, current as never);
          world.check();
        }
        for (const [edge, times] of world.cluster.checker.transitions) met.set(edge, (met.get(edge) ?? 0) + times);
        world.settle();
        world.settleEmpty();
      }),
      { numRuns: Number(globalThis.process.env.MODEL_RUNS ?? 1500) },
    );
    // otherwise the model tested nothing
    expect(met.size).to.equal(2 * 8);
  });
});
