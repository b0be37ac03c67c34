import fc from 'fast-check';
import { type RequestFailure, IpamModelCluster, requestFailure } from './testing/model/cluster.js';
import { type Operation, withClaim, operation } from './testing/model/operations.js';
import { KINDS, type Kind } from './testing/model/world.js';

type Meanwhile =
  | { what: 'operation'; operation: Operation }
  /** An operation changes the claim that is being synced, and the other process syncs it. */
  | { what: 'overtaking'; changes: readonly Operation[] };

type Event =
  | { what: 'operation'; operation: Operation }
  | { what: 'news'; process: number; kind: Kind; count: number }
  | { what: 'sync'; process: number; accident: RequestFailure | undefined; meanwhile: readonly Meanwhile[] }
  | { what: 'restart'; process: number }
  /** A process leads again. Changes since its last term were not queued. */
  | { what: 'term'; process: number }
  | { what: 'gate'; open: boolean }
  | { what: 'rest' };

const a = <W extends (Event | Meanwhile)['what']>(what: W) => fc.constant(what);
const process = fc.constantFrom(0, 0, 0, 1);
const meanwhile: fc.Arbitrary<Meanwhile> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ what: a('operation'), operation }) },
  { weight: 1, arbitrary: fc.record({ what: a('overtaking'), changes: fc.array(operation, { maxLength: 2 }) }) },
);
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
      accident: fc.option(requestFailure, { nil: undefined, freq: 2 }),
      meanwhile: fc.array(meanwhile, { maxLength: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('restart' as const, 'term'), process }) },
  { weight: 1, arbitrary: fc.record({ what: a('gate'), open: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ what: a('rest') }) },
);

async function happen(cluster: IpamModelCluster, current: Event): Promise<void> {
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
        current.meanwhile.map((each) => (key) => interfere(cluster, current.process, { key, each })),
      );
      return;
    case 'restart':
      cluster.restart(current.process);
      return;
    case 'term':
      cluster.processes[current.process]?.beginTerm();
      return;
    case 'gate':
      switchGate(cluster, current.open);
      return;
    case 'rest':
      await cluster.settle();
      return;
  }
}

async function interfere(cluster: IpamModelCluster, process: number, { key, each }: { key: string; each: Meanwhile }) {
  if (each.what === 'operation') {
    cluster.operate(each.operation);
    return;
  }
  for (const change of each.changes) cluster.operate(withClaim(key, change));
  await cluster.overtake(process, key);
}

function switchGate(cluster: IpamModelCluster, open: boolean): void {
  cluster.isGateOpen = open;
  for (const each of cluster.processes) each.addAll();
}

describe('the addresses of claims in any order of events and failures', function () {
  this.timeout(120_000);

  it('never have two owners, are released only after their claim, and in the end each claim has its own or reports why not', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 60, size: 'max' }), async (events) => {
        const cluster = new IpamModelCluster();
        for (const current of events) await happen(cluster, current);
        switchGate(cluster, true);
        await cluster.settle();
        cluster.checkSettled();
        await cluster.coolDown();
        cluster.checkSettled();
        cluster.checkWaitList();
      }),
      { numRuns: Number(globalThis.process.env.MODEL_RUNS ?? 1_000) },
    );
  });
});
