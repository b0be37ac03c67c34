import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemClock } from '../../kube/clock.js';
import { silentLogger } from '../../kube/log.js';
import { afterMicrotasks } from '../../test/after-microtasks.js';
import {
  type HelperConfig,
  type HelperReport,
  MAX_OPTION_SETS,
  MAX_PROBES,
  MAX_REPORT_LENGTH,
  type WireQuestion,
} from '../responder-tables/protocol.js';
import { MAX_NAD_OPTION_SETS } from '../responder-tables/table.js';
import { FakeHelper, HELLO } from '../testing/fake-helper.js';
import { guestTableOf, receivedTableOf } from '../testing/received-table-of.js';
import type { ReceivedTable } from './received-table.js';
import { HelperSession } from './session.js';

const CONFIG: HelperConfig = {
  v: 2,
  interface: 'guest0',
  server: { ipv4: '10.1.0.2', duid: `0004${'0'.repeat(32)}` },
  subnets: [{ cidr: '10.1.0.0/24' }],
  peers: [],
  times: { renew: 300, rebind: 600, lease: 86_400, advertise: 300 },
};

function tableOf(addresses: Record<string, string>, id = 'o1'): Promise<ReceivedTable> {
  const entries = Object.entries(addresses).map(([mac, address]) => ({
    mac,
    ipv4: { address, prefix: 24 },
    options: id,
  }));
  return receivedTableOf(guestTableOf(entries));
}

const ONE = await tableOf({ '02:00:00:00:00:0a': '10.1.0.5' });
const OTHER = await tableOf({ '02:00:00:00:00:0a': '10.1.0.6' });

const stateOf = (table: ReceivedTable, freshForMs = 1234) => ({ config: CONFIG, table, freshForMs: () => freshForMs });

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await systemClock.sleep(1);
}

describe('the session with holdfast-packets', () => {
  let directory: string;
  let socket: string;
  let helper: FakeHelper;
  let session: HelperSession;
  let reports: HelperReport[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'packets-'));
    socket = join(directory, 'packets.sock');
    helper = new FakeHelper();
    reports = [];
    session = new HelperSession({
      socket,
      clock: { ...systemClock, sleep: (_, signal) => systemClock.sleep(1, signal) },
      random: () => 0,
      log: silentLogger,
      onReport: (report) => reports.push(report),
    });
  });
  afterEach(async () => {
    await session.stop();
    await helper.stop();
    await rm(directory, { recursive: true });
  });

  async function startBoth(): Promise<void> {
    await helper.start(socket);
    session.start();
    session.set(stateOf(ONE));
    await until(() => session.problem === undefined);
    // the whole table was sent before
    await until(() => helper.fresh.length === 1);
  }

  it('configures the helper, then sends the whole table', async () => {
    await startBoth();
    expect(helper.kinds()).to.deep.equal(['config', 'options', 'snapshot', 'put', 'snapshot']);
    expect(helper.received[0]).to.deep.equal({ config: CONFIG });
  });

  it('sends only what changes', async () => {
    await startBoth();
    session.set(stateOf(OTHER));
    await until(() => helper.received.length === 7);
    expect(helper.kinds().slice(5)).to.deep.equal(['remove', 'put']);
    session.set({ ...stateOf(OTHER), config: { ...CONFIG, peers: ['10.1.0.3'] } });
    await until(() => helper.received.length === 8);
    expect(helper.kinds()[7]).to.equal('config');
  });

  it('sends everything again to a helper that started again', async () => {
    await startBoth();
    helper.drop();
    await until(() => helper.received.length === 10);
    expect(helper.kinds().slice(5)).to.deep.equal(['config', 'options', 'snapshot', 'put', 'snapshot']);
  });

  it('waits for a helper that starts later, and says so', async () => {
    session.start();
    session.set(stateOf(ONE));
    await until(() => session.problem?.includes('ENOENT') === true);
    await helper.start(socket);
    await until(() => session.problem === undefined);
  });

  it('tells for how long the table is fresh, after all of its entries, and whenever it is asked to', async () => {
    await startBoth();
    session.refresh();
    await until(() => helper.fresh.length === 2);
    expect(helper.fresh).to.deep.equal([
      [1234, 5],
      [1234, 5],
    ]);
  });

  it('lets entries of a stale table come only after the helper knows that its table is stale', async () => {
    await startBoth();
    session.set(stateOf(OTHER, 0));
    await until(() => helper.received.length === 7);
    expect(helper.fresh.slice(1, 2)).to.deep.equal([[0, 5]]);
  });

  it('does not call a table fresh for longer because of entries of a fresher one that follow', async () => {
    await startBoth();
    session.set(stateOf(OTHER, 60_000));
    await until(() => helper.fresh.length === 3);
    expect(helper.fresh[1]?.[0]).to.be.at.most(1234);
    expect(helper.fresh[2]).to.deep.equal([60_000, 7]);
  });

  it('is not ready while the interface has an address, which the kernel would answer for', async () => {
    helper.answer = { hello: { ...HELLO.hello, address: true } };
    await helper.start(socket);
    session.start();
    session.set(stateOf(ONE));
    await until(() => session.problem?.includes('has an address') === true);
  });

  it('is not ready with a helper of another version', async () => {
    helper.answer = { hello: { ...HELLO.hello, v: 1 } };
    await helper.start(socket);
    session.start();
    session.set(stateOf(ONE));
    await until(() => session.problem?.includes('version 1') === true);
  });

  it('passes on what the helper reports, in pieces of any size', async () => {
    await startBoth();
    const line = JSON.stringify({ seen: { kind: 'server', mac: '02:00:00:00:00:99', address: '10.1.0.99' } });
    for (const piece of [line.slice(0, 10), `${line.slice(10)}\n${line}`, '\n']) {
      helper.write(piece);
      await systemClock.sleep(1);
    }
    await until(() => reports.length === 2);
    expect(reports.map(({ kind }) => kind)).to.deep.equal(['seen', 'seen']);
  });

  describe('asks which hosts have an address', () => {
    const sent = () => helper.received.flatMap(({ probe }) => (probe === undefined ? [] : [probe as WireQuestion]));

    it('and passes on the answer to each question', async () => {
      await startBoth();
      const answers = Promise.all([session.probe('10.1.0.9', ['02:00:00:00:00:0d']), session.probe('fd00:1::9', [])]);
      await until(() => sent().length === 2);
      const [first, second] = sent();
      expect(first).to.deep.include({ address: '10.1.0.9', expect: ['02:00:00:00:00:0d'] });
      helper.write(`${JSON.stringify({ probed: { id: second?.id, macs: [] } })}\n`);
      helper.write('{"probed":{"id":99,"macs":["02:00:00:00:00:98"]}}\n');
      helper.write(`${JSON.stringify({ probed: { id: first?.id, macs: ['02:00:00:00:00:99'] } })}\n`);
      expect(await answers).to.deep.equal([['02:00:00:00:00:99'], []]);
      expect(reports).to.deep.equal([]);
    });

    it('and knows nothing if the connection ends', async () => {
      await startBoth();
      const answer = session.probe('10.1.0.9', []);
      await until(() => sent().length === 1);
      helper.drop();
      expect(await answer).to.equal(undefined);
    });

    it('and knows nothing without a helper', async () => {
      session.start();
      expect(await session.probe('10.1.0.9', [])).to.equal(undefined);
    });

    it('only as often at one time as the helper accepts', async () => {
      await startBoth();
      const answers = Array.from({ length: MAX_PROBES }, () => session.probe('10.1.0.9', []));
      expect(await session.probe('10.1.0.9', [])).to.equal(undefined);
      await until(() => sent().length === MAX_PROBES);
      for (const { id } of sent()) helper.write(`${JSON.stringify({ probed: { id, macs: [] } })}\n`);
      expect((await Promise.all(answers)).every((each) => each?.length === 0)).to.equal(true);
    });
  });

  for (const [name, text] of [
    ['that sends something else than reports', '{"taken":{}}\n'],
    ['whose line never ends', 'x'.repeat(MAX_REPORT_LENGTH + 1)],
  ] as const) {
    it(`connects again to a helper ${name}`, async () => {
      await startBoth();
      helper.write(text);
      await until(() => helper.connections === 2 && session.problem === undefined);
    });
  }

  it('keeps the connection while all options of the largest table change, of which the helper never has too many', async () => {
    await startBoth();
    for (const prefix of ['a', 'b', 'c']) {
      const table = await tableWithAllSets(prefix);
      session.set(stateOf(table));
      await until(() => helper.optionSets.size === table.optionIds.size && helper.optionSets.has(`${prefix}0`));
    }
    expect(helper.mostOptionSets).to.be.at.most(MAX_OPTION_SETS);
    expect(helper.connections).to.equal(1);
  });

  for (const turns of [1, 2, 3, 4]) {
    it(`sends a table that comes ${turns} microtasks after the one before was sent`, async () => {
      await helper.start(socket);
      session.start();
      let isSent = false;
      const freshForMs = () => {
        if (!isSent) void afterMicrotasks(turns, () => session.set(stateOf(OTHER)));
        isSent = true;
        return 1234;
      };
      session.set({ ...stateOf(ONE), freshForMs });
      await until(() => helper.received.length === 7);
      expect(JSON.stringify(helper.received[6])).to.include('10.1.0.6');
    });
  }
});

function tableWithAllSets(prefix: string): Promise<ReceivedTable> {
  const entries = Array.from({ length: MAX_NAD_OPTION_SETS + 1 }, (_, index) => ({
    mac: `02:00:00:00:${Buffer.from([index >> 8, index & 255])
      .toString('hex')
      .replace(/^../, '$&:')}`,
    ipv4: { address: `10.1.${index >> 8}.${index & 255}`, prefix: 16 },
    options: `${prefix}${index}`,
  }));
  return receivedTableOf(guestTableOf(entries));
}
