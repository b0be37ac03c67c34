import fc from 'fast-check';
import type { CrashFate, RequestOutcome } from './model-agent.js';
import { type AgentModel, NODES } from './agent-model.js';

/** The events of an {@link AgentModel}. */
type ModelEvent =
  | { what: 'pod'; node: number }
  | { what: 'sandbox' | 'add' | 'del' | 'giveUp' | 'misreport' | 'claim'; pick: number }
  | { what: 'end'; pick: number; isDeleted: boolean }
  | { what: 'serve'; node: number; pick: number; ending: RequestOutcome }
  | { what: 'news'; node: number; feed: number; count: number }
  | { what: 'relist' | 'pods'; node: number }
  | { what: 'crash'; node: number; fate: CrashFate }
  | { what: 'pass'; ms: number }
  | { what: 'expire' | 'endClaims' };

const a = <W extends ModelEvent['what']>(what: W) => fc.constant(what);
const node = fc.nat({ max: NODES.length - 1 });
const pick = fc.nat({ max: 11 });
const feed = fc.nat({ max: 3 });
const ending = fc.oneof(
  { weight: 8, arbitrary: fc.constant<RequestOutcome>('answered') },
  { weight: 1, arbitrary: fc.constantFrom<RequestOutcome>('lost', 'failed', 'refused') },
);
export const arbitraryEvent: fc.Arbitrary<ModelEvent> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ what: a('pod'), node }) },
  { weight: 2, arbitrary: fc.record({ what: a('sandbox'), pick }) },
  { weight: 8, arbitrary: fc.record({ what: a('add'), pick }) },
  { weight: 5, arbitrary: fc.record({ what: a('del'), pick }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('giveUp' as const, 'misreport', 'claim'), pick }) },
  { weight: 1, arbitrary: fc.record({ what: a('end'), pick, isDeleted: fc.boolean() }) },
  { weight: 24, arbitrary: fc.record({ what: a('serve'), node, pick, ending }) },
  { weight: 8, arbitrary: fc.record({ what: a('news'), node, feed, count: fc.constantFrom(1, 3, 50) }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constantFrom('relist' as const, 'pods'), node }) },
  {
    weight: 1,
    arbitrary: fc.record({ what: a('crash'), node, fate: fc.constantFrom<CrashFate>('applied', 'late', 'lost') }),
  },
  { weight: 3, arbitrary: fc.record({ what: a('pass'), ms: fc.constantFrom(50, 1_000, 31_000, 61_000) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('expire' as const, 'endClaims') }) },
);

type EventHandlers = {
  [W in ModelEvent['what']]: (world: AgentModel, event: Extract<ModelEvent, { what: W }>) => unknown;
};

const EVENT_HANDLERS: EventHandlers = {
  pod: (world, { node }) => world.startPod(node),
  sandbox: (world, { pick }) => world.startSandbox(pick),
  add: (world, { pick }) => world.add(pick),
  del: (world, { pick }) => world.del(pick),
  giveUp: (world, { pick }) => world.giveUp(pick),
  misreport: (world, { pick }) => world.misreport(pick),
  claim: (world, { pick }) => world.ipam.claim(pick),
  end: (world, { pick, isDeleted }) => world.endPod(pick, isDeleted),
  serve: (world, { node, pick, ending }) => world.agents[node]!.serve(pick, ending),
  news: (world, { node, feed, count }) => [...world.agents[node]!.feeds.values()][feed]?.deliver(count),
  relist: (world, { node }) => [...world.agents[node]!.feeds.values()].forEach((feed) => feed.list()),
  pods: (world, { node }) => world.agents[node]!.seePods(),
  crash: (world, { node, fate }) => world.crash(node, fate),
  pass: (world, { ms }) => world.pass(ms),
  expire: (world) => world.ipam.expire(),
  endClaims: (world) => world.ipam.endClaims(),
};

/** Applies events, checks the invariants after each, and ends all pods. */
export async function runModel(model: AgentModel, events: readonly ModelEvent[]): Promise<void> {
  for (const event of events) {
    await EVENT_HANDLERS[event.what](model, event as never);
    await model.turn();
    model.check();
  }
  await model.settle();
  model.check();
  model.checkDeleted();
  await model.checkSuperseded();
  await model.endAll();
  model.checkAnswered();
  model.check();
}
