import { expect } from 'chai';
import { silentLogger } from '../../kube/log.js';
import { Metrics } from '../../process/metrics.js';
import { heapBytes } from '../../test/heap.js';
import { ManualClock } from '../../test/manual-clock.js';
import { pluginRequest } from '../testing/cni-requests.js';
import { Dispatcher } from './dispatcher.js';
import { createAgentMetrics } from './metrics.js';

const COUNT = 20;
/** Objects of the shortest text. As the first plugin of a list, Holdfast gets the `prevResult` that a tenant writes into the NAD. */
const PREV_RESULT = { interfaces: Array.from({ length: 80_000 }, () => []) };
/** The bound of a request: its text, and nothing that is many times as big. */
const MOST_BYTES = 300 * 1024;

describe('ADDs with a long config', () => {
  it('keep no more than its text while they wait', () => {
    const dispatcher = new Dispatcher({
      verbs: { perform: () => new Promise(() => undefined), delete: () => Promise.resolve() },
      pendingDeletes: { has: () => false, write: () => Promise.resolve(true) },
      onPendingDelete: () => undefined,
      workers: COUNT,
      addTimeoutMs: 30_000,
      clock: new ManualClock(0),
      log: silentLogger,
      metrics: createAgentMetrics(new Metrics()),
    });
    const caller = new AbortController().signal;
    const config = { type: 'holdfast', ipam: undefined, prevResult: PREV_RESULT };
    const textOf = (n: number) => JSON.stringify(pluginRequest('ADD', { CNI_CONTAINERID: `c${n}` }, config));
    const before = heapBytes();
    const answers = Array.from({ length: COUNT }, (_, n) => dispatcher.answer(textOf(n), caller));
    expect((heapBytes() - before) / COUNT).to.be.lessThan(MOST_BYTES);
    expect(answers).to.have.length(COUNT);
  });
});
