import fc from 'fast-check';
import { type Accident, ModelCluster } from '../../test/ipam-model/cluster.js';
import { type Operation, operation } from '../../test/ipam-model/operations.js';
import { KINDS, type Kind } from '../../test/ipam-model/world.js';

type Event =
  | { what: 'operation'; operation: Operation }
  | { what: 'news'; process: number; kind: Kind; count: number }
  | { what: 'sync'; process: number; accident: Accident | undefined; meanwhile: readonly Operation[] }
  | { what: 'restart'; process: number }
  | { what: 'gate'; open: boolean }
  | { what: 'rest' };

const a = <W extends Event['what']>(what: W) => fc.constant(what);
const process = fc.constantFrom(0, 0, 0, 1);
const accident = fc.record({ request: fc.nat({ max: 6 }), applied: fc.boolean(), ends: fc.boolean() });
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ what: a('operation'), operation }) },
  {
    weight: 8,
    arbitrary: fc.record({
      what: a('news'),
      process,
      kind: fc.constantFrom(...KINDS),
      count: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      what: a('sync'),
      process,
      accident: fc.option(accident, { nil: undefined, freq: 2 }),
      meanwhile: fc.array(operation, { maxLength: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: a('restart'), process }) },
  { weight: 1, arbitrary: fc.record({ what: a('gate'), open: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ what: a('rest') }) },
);

async function happen(cluster: ModelCluster, current: Event): Promise<void> {
  switch (current.what) {
    case 'operation':
      cluster.operate(current.operation);
      return;
    case 'news':
      cluster.processes[current.process]?.deliver(current.kind, current.count);
      return;
    case 'sync':
      await cluster.sync(
        current.process,
        current.accident,
        current.meanwhile.map((each) => () => cluster.operate(each)),
      );
      return;
    case 'restart':
      cluster.restart(current.process);
      return;
    case 'gate':
      switchGate(cluster, current.open);
      return;
    case 'rest':
      await cluster.settle();
      return;
  }
}

function switchGate(cluster: ModelCluster, open: boolean): void {
  cluster.isGateOpen = open;
  for (const each of cluster.processes) each.addAll();
}

describe('the addresses of claims, whatever happens', function () {
  this.timeout(120_000);

  it('are nobody else’s, are freed only after their claim, and in the end each claim has its own or says why not', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 60, size: 'max' }), async (events) => {
        const cluster = new ModelCluster();
        for (const current of events) await happen(cluster, current);
        switchGate(cluster, true);
        await cluster.settle();
        cluster.checkRest();
        await cluster.coolDown();
        cluster.checkRest();
        cluster.checkNobodyWaitsInVain();
      }),
      { numRuns: Number(globalThis.process.env.MODEL_RUNS ?? 500) },
    );
  });
});
