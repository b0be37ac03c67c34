import fc from 'fast-check';
import { PROBE_LIMITS } from '../../api/limits.js';
import { parseAddress } from '../../addressing/address/address.js';
import { TransportError } from '../../kube/errors.js';
import { type RequestFailure, IpamModelCluster, requestFailure } from './testing/model/cluster.js';
import { Violation } from './testing/model/invariants.js';
import { type Operation, applyOperation, operation } from './testing/model/operations.js';
import { setPool } from './testing/model/pools.js';
import { probeOperation } from './testing/model/probe-operations.js';

type Event =
  | { what: 'operation'; operation: Operation }
  | { what: 'sync'; failure: RequestFailure | undefined }
  /** Workers sync all queued claims at the same time, the responders answer meanwhile, and a request gets no answer. */
  | { what: 'parallel'; answers: readonly Operation[]; lost: number | undefined }
  | { what: 'restart' };

const isOfPool = ({ do: what }: Operation) => what === 'pool' || what === 'deleteLease' || what === 'reserve';
const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      what: fc.constant('operation' as const),
      operation: operation.filter((each) => !isOfPool(each)),
    }),
  },
  { weight: 6, arbitrary: fc.record({ what: fc.constant('operation' as const), operation: probeOperation }) },
  {
    weight: 6,
    arbitrary: fc.record({
      what: fc.constant('sync' as const),
      failure: fc.option(requestFailure, { freq: 3, nil: undefined }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      what: fc.constant('parallel' as const),
      answers: fc.array(probeOperation, { maxLength: 3 }),
      lost: fc.option(fc.nat({ max: 9 }), { freq: 3, nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('restart' as const) }) },
);

/** A pool of 29 IPv4 and 64 IPv6 addresses, of which 3 and 8 may be quarantined, and one leader. */
class ProbedCluster extends IpamModelCluster {
  constructor() {
    super();
    this.processes.length = 1;
    setPool(this.world, 'probedLarge');
  }

  async happen(current: Event): Promise<void> {
    const [process] = this.processes;
    process?.deliverAll();
    // the directory reports its changes asynchronously
    await Promise.resolve();
    switch (current.what) {
      case 'operation':
        this.operate(current.operation);
        return;
      case 'sync':
        await this.sync(0, current.failure, []);
        return;
      case 'parallel':
        await this.#syncAll(current);
        return;
      case 'restart':
        this.restart(0);
    }
  }

  async #syncAll({ answers, lost }: Extract<Event, { what: 'parallel' }>): Promise<void> {
    const [process] = this.processes;
    const left = [...answers];
    let requests = 0;
    this.api.before = () => {
      const answer = left.shift();
      if (answer !== undefined) applyOperation(this.world, this.invariants, answer);
      process?.deliver('addressleases', Infinity);
      return requests++ === lost
        ? { error: new TransportError('broken', 'the connection broke'), applied: true }
        : undefined;
    };
    await Promise.all([...(process?.queue ?? [])].map(async (key) => process?.syncFromQueue(key)));
    this.api.before = () => undefined;
  }

  async syncClaim(name: string): Promise<void> {
    const [process] = this.processes;
    process?.deliverAll();
    await process?.syncFromQueue(`vms/${name}`);
  }

  checkLimits(): void {
    const quarantined = this.world.list('addressleases').filter(({ spec }) => spec.quarantine !== undefined);
    const families = quarantined.map(({ spec }) => parseAddress(spec.address).family);
    const counts = [4, 6].map((family) => families.filter((each) => each === family).length);
    if (counts[0]! > 3 || counts[1]! > 8) throw new Violation(`${counts.join(' and ')} addresses are quarantined`);
    const macs = quarantined.map(({ spec }) => spec.quarantine?.mac);
    const most = Math.max(0, ...macs.map((mac) => macs.filter((each) => each === mac).length));
    if (most > PROBE_LIMITS.quarantinedByMac) throw new Violation(`${most} addresses of one host are quarantined`);
  }
}

describe('the probes of claims in any order of answers, failures and restarts', function () {
  this.timeout(120_000);

  for (const endsProcess of [false, true]) {
    it(`quarantine three addresses of one host at most if the first write arrives last${endsProcess ? ', after a restart' : ''}`, async () => {
      const cluster = new ProbedCluster();
      const taken = (index: number): Operation => ({ do: 'answer', index, answer: { taken: '02:00:00:00:00:0a' } });
      for (const name of ['a', 'b', 'c'] as const) {
        cluster.operate({ do: 'create', name, request: undefined, restored: undefined, owned: false });
        await cluster.syncClaim(name);
      }
      cluster.processes[0]?.queue.clear();
      cluster.operate(taken(4));
      await cluster.happen({ what: 'sync', failure: { request: 1, fate: 'late', endsProcess } });
      for (let count = 0; count < 3; count++) cluster.operate(taken(0));
      for (const name of ['a', 'b']) await cluster.syncClaim(name);
      cluster.operate({ do: 'pass', seconds: 1 });
      cluster.checkLimits();
    });
  }

  it('quarantine no more addresses than allowed and none that a claim shows, and in the end each claim has its addresses or reports why not', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 60, size: 'max' }), async (events) => {
        const cluster = new ProbedCluster();
        for (const current of events) {
          await cluster.happen(current);
          cluster.checkLimits();
        }
        await cluster.settle();
        cluster.checkSettled();
        await cluster.coolDown();
        cluster.checkSettled();
        cluster.checkWaitList();
        cluster.checkLimits();
      }),
      { numRuns: Number(process.env.MODEL_RUNS ?? 300) },
    );
  });
});
