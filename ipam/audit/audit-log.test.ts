import { execFile } from 'node:child_process';
import { constants, read } from 'node:fs';
import { mkdtemp, open, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { formatAuditRecord, readAuditRecord } from '../../api/audit-record.js';
import { Cache } from '../../kube/informers/cache.js';
import { type Clock, systemClock } from '../../kube/clock.js';
import type { ObjectChange } from '../../kube/informers/informer.js';
import { silentLogger } from '../../kube/log.js';
import { afterMicrotasks } from '../../test/after-microtasks.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { AuditLog, recordOfState, recordOfTransition } from './audit-log.js';
import { type AuditSink, FileSink } from './audit-sink.js';
import { StdoutSink } from './create-audit-log.js';

describe('The audit log', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'audit-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('neither delays a change nor a stop if a write never returns, and counts the lines that it loses', async () => {
    const writes: string[] = [];
    const write = (lines: string) => {
      writes.push(lines);
      return new Promise<void>(() => undefined);
    };
    const log = new LogUnderTest({ batchBytes: 1_000, write, close: () => Promise.reject(new Error('hangs')) }, 10);
    for (let version = 1; version <= 1_000; version++) log.allocate(version);
    await log.until(() => writes.length > 0);
    const stopped = log.audit.stop();
    log.passTime();
    await stopped;
    expect(writes).to.have.length(1);
    // of 1000 lines and the first one, which says that changes may be missing
    expect(log.lost).to.equal(1_001);
  });

  it('loses no line of the next term of leadership if a write of the last one ends late', async () => {
    let text = '';
    let endFirst: (() => void) | undefined;
    const write = (lines: string) => {
      if (endFirst === undefined) return new Promise<void>((resolve) => (endFirst = resolve));
      text += lines;
      return Promise.resolve();
    };
    const log = new LogUnderTest({ batchBytes: 1_000, write, close: () => Promise.resolve() });
    await log.until(() => endFirst !== undefined);
    const stopped = log.audit.stop();
    log.passTime();
    await stopped;
    log.audit.start();
    log.allocate(1);
    endFirst?.();
    await log.until(() => text.includes('listed'));
    await log.audit.stop();
    expect(text).to.match(/^.*"gap".*\n.*"allocated".*\n.*"listed".*\n$/);
    expect(log.lost).to.equal(1);
  });

  it('calls no list complete that ends after the term of leadership', async () => {
    let text = '';
    const write = (lines: string) => {
      text += lines;
      return Promise.resolve();
    };
    const log = new LogUnderTest({ batchBytes: 1_000, write, close: () => Promise.resolve() });
    await log.until(() => text.includes('listed'));
    const endList = log.beginList();
    await log.audit.stop();
    log.allocate(1);
    endList();
    text = '';
    log.audit.start();
    await log.until(() => text.includes('listed'));
    await log.audit.stop();
    expect(text).to.match(/^.*"gap".*"start".*\n.*"listed".*\n$/);
  });

  it('has all lines in the file when a full disk has room again', async () => {
    const path = join(folder, 'audit.log');
    await symlink('/dev/full', path);
    const log = new LogUnderTest(fileSink(path));
    log.allocate(1);
    await log.until(() => log.failures > 2);
    log.allocate(2);
    await rm(path);
    await log.until(() => log.written === 4);
    await log.audit.stop();
    expect(log.lost).to.equal(0);
    expect(log.errors).to.have.length(1);
    expect(log.errors[0]).to.match(/^cannot write the audit log: ENOSPC.*Addresses are allocated without it$/);
    const records = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '');
    expect(records.map((line) => (JSON.parse(line) as { audit: { type: string } }).audit.type)).to.deep.equal([
      ...['gap', 'allocated', 'allocated', 'listed'],
    ]);
  });

  it('names the folder that cannot be written, and is written when that is mended', async () => {
    const file = join(folder, 'no-folder');
    await writeFile(file, '');
    const log = new LogUnderTest(fileSink(join(file, 'audit.log')));
    await log.until(() => log.failures > 2);
    await rm(file);
    await log.until(() => log.written === 2);
    await log.audit.stop();
    expect(log.errors).to.have.length(1);
    expect(log.errors[0]).to.include(`'${file}'`);
    expect(await readFile(join(file, 'audit.log'), 'utf8')).to.match(/"type":"gap"[^]*"type":"listed"/);
  });

  for (const turns of [1, 2, 3, 4, 5, 6, 7, 8]) {
    it(`writes a line that is added ${turns} microtasks after the last write began`, async () => {
      let text = '';
      const write = (lines: string) => {
        text += lines;
        if (lines.includes('listed')) void afterMicrotasks(turns, () => log.allocate(2));
        return Promise.resolve();
      };
      const log = new LogUnderTest({ batchBytes: 1_000, write, close: () => Promise.resolve() });
      await log.until(() => text.includes('allocated'));
      await log.audit.stop();
    });
  }

  it('waits for a slow reader of standard output without losing or mixing a byte', async () => {
    const path = join(folder, 'pipe');
    await promisify(execFile)('mkfifo', [path]);
    const pipe = await open(path, constants.O_RDWR | constants.O_NONBLOCK);
    try {
      let received = '';
      let waits = 0;
      const readSome = async () => {
        const { bytesRead, buffer } = await promisify(read)(pipe.fd, Buffer.alloc(50_000), 0, 50_000, null);
        received += buffer.toString('utf8', 0, bytesRead);
      };
      const sleep = () => {
        waits++;
        return readSome();
      };
      const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index}\n`).join('');
      await new StdoutSink({ sleep }, pipe.fd).write(lines);
      while (received.length < lines.length) await readSome();
      expect(received).to.equal(lines);
      expect(waits).to.be.greaterThan(1);
    } finally {
      await pipe.close();
    }
  });
});

function fileSink(path: string): FileSink {
  return new FileSink({ path, maxBytes: 1_000_000, maxFiles: 2 });
}

/** An audit log of a leader, and what became of it. Repeated writes do not wait. */
class LogUnderTest {
  readonly audit: AuditLog;
  readonly errors: unknown[] = [];
  written = 0;
  lost = 0;
  failures = 0;
  beginList: () => () => void = () => () => undefined;
  #changed: (change: ObjectChange<LeaseRecord>) => void = () => undefined;
  readonly #timers = new Set<() => void>();

  constructor(sink: AuditSink, queueSize?: number) {
    const clock: Clock = {
      ...systemClock,
      sleep: (_ms, signal) => systemClock.sleep(0, signal),
      setTimer: (_ms, run) => {
        this.#timers.add(run);
        return () => this.#timers.delete(run);
      },
    };
    this.audit = new AuditLog({
      leases: {
        cache: new Cache<LeaseRecord>(),
        lastProgress: 0,
        onChange: (handler) => (this.#changed = handler),
        onList: (handler) => (this.beginList = () => handler({ from: '1', to: '2' })),
      },
      ...{ sink, clock },
      log: { ...silentLogger, error: (_fields: unknown, message: unknown) => this.errors.push(message) },
      metrics: {
        written: (lines) => (this.written += lines),
        lost: (lines) => (this.lost += lines),
        writeFailed: () => this.failures++,
      },
      ...(queueSize !== undefined && { queueSize }),
    });
    this.audit.start();
  }

  allocate(version: number): void {
    this.#changed({ type: 'added', object: readLease(leaseOf('10.0.0.5', version)) });
  }

  /** Ends all timers. */
  passTime(): void {
    for (const run of this.#timers) run();
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await systemClock.sleep(1);
  }
}

const TIME = '2030-01-01T00:00:00.000Z';
const MAC = '02:00:00:00:00:99';

describe('the audit record of a quarantined address', () => {
  const before = readLease(leaseOf('10.0.0.5', 1));
  const after = readLease(leaseOf('10.0.0.5', 2, { takenBy: MAC }));

  it('names the MAC address that has it, and no owner', () => {
    const record = recordOfTransition({ before, after }, TIME);
    expect(record).to.deep.include({ type: 'quarantined', address: '10.0.0.5', mac: MAC });
    expect(record).to.not.have.property('owner');
  });

  it('is written once', () => {
    expect(recordOfTransition({ before: after, after: { ...after } }, TIME)).to.equal(undefined);
  });

  for (const [name, record] of [
    ['its change', recordOfTransition({ before, after }, TIME)],
    ['its state after a gap', recordOfState(after, TIME)],
    ['its end', recordOfTransition({ before: after }, TIME)],
  ] as const) {
    it(`can be read again: ${name}`, () => {
      expect(readAuditRecord(formatAuditRecord(record!))).to.deep.equal(record);
    });
  }
});
