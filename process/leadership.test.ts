import { expect } from 'chai';
import sinon from 'sinon';
import { Client } from '../kube/client.js';
import { systemClock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import { MemoryTransport } from '../kube/testing/memory-transport.js';
import { Leadership } from './leadership.js';
import { Metrics } from './metrics.js';

describe('Leadership', () => {
  let now: number;
  let terms: number;
  let leadership: Leadership;
  let metrics: Metrics;

  async function lead(
    leaderElect: boolean,
    { api = new MemoryTransport(), prepare }: { api?: MemoryTransport; prepare?: () => Promise<void> } = {},
  ): Promise<void> {
    now = 0;
    terms = 0;
    metrics = new Metrics();
    await new Promise<void>((resolve) => {
      leadership = new Leadership({
        context: {
          client: new Client(api),
          informers: { synced: () => Promise.resolve() },
          clock: { ...systemClock, now: () => now },
          random: () => 0,
          log: silentLogger,
          metrics,
        },
        config: { leaderElect, namespace: 'holdfast' },
        name: 'holdfast-controller',
        identity: 'a',
        ...(prepare && { prepare }),
        startWork: () => {
          terms++;
          resolve();
        },
        stopWork: () => Promise.resolve(),
      });
      leadership.start();
    });
  }
  afterEach(() => leadership.stop());

  async function syncsOnce(): Promise<boolean> {
    let synced = 0;
    await leadership.whileLeading(() => {
      synced++;
      return Promise.resolve();
    })('a key', new AbortController().signal);
    return synced === 1;
  }

  it('gives a sync a signal to which many requests may listen without a warning of Node.js', async () => {
    await lead(true);
    const warned = sinon.stub(process, 'emitWarning');
    await leadership.whileLeading((_key, signal) => {
      for (let requests = 0; requests < 20; requests++) signal.addEventListener('abort', () => undefined);
      return Promise.resolve();
    })('a key', new AbortController().signal);
    warned.restore();
    expect(warned.callCount).to.equal(0);
  });

  it('syncs during a term, and nothing from the moment that it is over by the clock', async () => {
    await lead(true);
    now = 9_999;
    expect(await syncsOnce()).to.equal(true);
    now = 10_000;
    expect(await syncsOnce()).to.equal(false);
    now = 9_999;
    expect(await syncsOnce(), 'after the end').to.equal(false);
    expect(terms).to.equal(1);
  });

  it('syncs always without leader election', async () => {
    await lead(false);
    now = 1e9;
    expect(await syncsOnce()).to.equal(true);
  });

  it('is no candidate before its work is prepared', async () => {
    let prepared: () => void = () => undefined;
    const preparing = new Promise<void>((resolve) => (prepared = resolve));
    const api = new MemoryTransport();
    const started = lead(true, { api, prepare: () => preparing });
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    expect([terms, api.requests.length]).to.deep.equal([0, 0]);
    prepared();
    await started;
    expect(terms).to.equal(1);
  });

  for (const leaderElect of [true, false]) {
    it(`shows in metrics whether the process leads, ${leaderElect ? 'with' : 'without'} leader election`, async () => {
      const status = async () =>
        /^holdfast_leading_status{name="holdfast-controller"} (\d)$/m.exec(await metrics.registry.metrics())?.[1];
      const started = lead(leaderElect);
      expect(await status()).to.equal('0');
      await started;
      expect(await status()).to.equal('1');
      await leadership.stop();
      expect(await status()).to.equal('0');
    });
  }
});
