import { expect } from 'chai';
import { RESPONDER_INDEX } from '../../api/names.js';
import { systemClock } from '../../kube/clock.js';
import { silentLogger } from '../../kube/log.js';
import type { ResponderConfig } from '../../process/config/guest-config.js';
import type { ProcessContext } from '../../process/context.js';
import { afterMicrotasks } from '../../test/after-microtasks.js';
import { Metrics } from '../../process/metrics.js';
import { encodeTable, tableData } from '../responder-tables/published-table.js';
import { guestTableOf } from '../testing/received-table-of.js';
import { createResponder } from './main.js';
import { type StoredTable, storedTableOf } from './received-table.js';

const CONFIG = { pool: 'blue', podName: 'set-0', namespace: 'holdfast-responders', maxStalenessMs: 30_000 };
const POOL = { name: 'blue', uid: 'blue-uid', network: 'blue', hasIpv6Gateway: false };

/** The watch of the table. */
class TableWatch {
  object: StoredTable | undefined;
  /** Called after each read, with the number of reads. */
  afterRead: (reads: number) => void = () => undefined;
  onChange: (() => void) | undefined;
  #reads = 0;

  readonly informers = {
    get: () => ({ cache: { get: () => this.#read() }, onChange: (handler: () => void) => (this.onChange = handler) }),
    ready: () => undefined,
    start: () => undefined,
    synced: () => Promise.resolve(),
  };

  set(object: StoredTable): void {
    this.object = object;
    this.onChange?.();
  }

  #read(): StoredTable | undefined {
    const { object } = this;
    this.#reads++;
    this.afterRead(this.#reads);
    return object;
  }
}

describe('a responder', () => {
  for (const turns of [1, 2, 3, 4]) {
    it(`reads a table that comes ${turns} microtasks after it has found no newer one`, async () => {
      const watch = new TableWatch();
      const context = { clock: systemClock, random: () => 0, log: silentLogger, metrics: new Metrics() };
      const shared = { ...context, informers: watch.informers };
      const responder = createResponder(shared as unknown as ProcessContext, CONFIG as ResponderConfig);
      const table = await encodeTable({ pool: POOL, configs: {}, probes: [], table: guestTableOf([]) });
      const metadata = { name: 'set', resourceVersion: '2' };
      const next = storedTableOf({ metadata, ...tableData(table, { after: undefined, ageMs: 0 }, RESPONDER_INDEX) });
      watch.afterRead = (reads) => {
        if (reads === 2) void afterMicrotasks(turns, () => watch.set(next));
      };
      watch.set({ metadata: { name: 'set', resourceVersion: '1' }, data: {}, bytes: Buffer.from('no gzip') });
      while (responder.ready?.()?.includes('no configuration for set-0') !== true) await systemClock.sleep(1);
    });
  }

  it('reads the index that its table names', async () => {
    const watch = new TableWatch();
    const read: string[] = [];
    const client = {
      get: (_resource: unknown, { name }: { name: string }) => {
        read.push(name);
        return Promise.reject(new Error('no answer'));
      },
    };
    const context = { client, clock: systemClock, random: () => 0, log: silentLogger, metrics: new Metrics() };
    const shared = { ...context, informers: watch.informers };
    const config = { ...CONFIG, packetSocket: '/nonexistent/packets.sock' };
    const responder = createResponder(shared as unknown as ProcessContext, config as ResponderConfig);
    watch.set({ metadata: { name: 'set' }, data: { index: 'index-3' }, bytes: Buffer.from('no gzip') });
    await responder.start();
    while (read.length === 0) await systemClock.sleep(1);
    await responder.stop();
    expect(read).to.deep.equal(['index-3']);
  });
});
