import { expect } from 'chai';
import { silentLogger } from '../../kube/log.js';
import { Metrics } from '../../process/metrics.js';
import { ManualClock } from '../../test/manual-clock.js';
import { pluginRequest } from '../testing/cni-requests.js';
import { Dispatcher } from './dispatcher.js';
import { createAgentMetrics } from './metrics.js';

const NEVER = new AbortController().signal;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a DEL that ends after its time, while it becomes a pending delete', () => {
  it('is pending before the next ADD begins, or else a retry would release the address of that ADD', async () => {
    const clock = new ManualClock(0);
    const seen: string[] = [];
    let isStored = false;
    let end: () => void = () => undefined;
    const dispatcher = new Dispatcher({
      verbs: {
        perform: ({ command }) => {
          seen.push(`${command}, ${isStored ? 'pending' : 'not pending'}`);
          return command === 'ADD' ? Promise.resolve({}) : new Promise((resolve) => (end = () => resolve({})));
        },
        delete: () => Promise.resolve(),
      },
      pendingDeletes: {
        has: () => isStored,
        write: async () => {
          await turn();
          return (isStored = true);
        },
      },
      onPendingDelete: () => undefined,
      workers: 2,
      addTimeoutMs: 5_000,
      clock,
      log: silentLogger,
      metrics: createAgentMetrics(new Metrics()),
    });
    const ask = (command: string) => dispatcher.answer(JSON.stringify(pluginRequest(command)), NEVER);
    const deleted = ask('DEL');
    await turn();
    clock.advanceTo(10_000);
    const added = ask('ADD');
    await turn();
    // the work ignores the abort, so the DEL is stored and answered without it
    clock.advanceTo(11_000);
    end();
    await Promise.all([deleted, added]);
    expect(seen).to.deep.equal(['DEL, not pending', 'ADD, pending']);
  });
});
