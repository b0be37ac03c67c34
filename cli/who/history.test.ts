import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { FileSink } from '../../ipam/audit/audit-sink.js';
import { findPastHolder as findIn } from './history.js';
import { linesOfFile } from './pod-logs.js';

const LEASE = { address: '10.0.0.5', addressSpace: 'lan', pool: 'blue', uid: 'l1', resourceVersion: '7' };
const owner = { kind: 'IPAMClaim', namespace: 'vms', name: 'vm1.data', uid: 'c1' };

function line(minute: number, record: object): string {
  return JSON.stringify({ audit: { time: `2030-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`, ...record } });
}

const findPastHolder = (address: string, at: string, paths: readonly string[]) =>
  findIn(address, at, { lines: paths.map(linesOfFile), unread: new Set() });
const alive = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => line(from + index, { type: 'alive' }));

const OLD = [
  line(1, { type: 'gap', reason: 'start' }),
  line(1, { type: 'listed', scope: 'all' }),
  ...alive(2, 5),
  line(5, { type: 'allocated', ...LEASE, owner, node: 'n1' }),
  ...alive(6, 9),
];
const NEW = [
  line(9, { type: 'changed', ...LEASE, owner, node: 'n2', resourceVersion: '8' }),
  ...alive(10, 20),
  line(20, { type: 'released', ...LEASE, owner, resourceVersion: '9' }),
];

describe('who had an address', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'audit-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function holderAt(minute: number) {
    const paths = [join(folder, 'audit.log'), join(folder, 'audit.log.1.gz')];
    const hostile = ['x'.repeat(1_000_000), '{"audit":{"time":"no"}}', '{"level":30}', '[]'];
    await writeFile(paths[0]!, [...hostile, ...NEW].join('\n'));
    await writeFile(paths[1]!, gzipSync(OLD.join('\n')));
    const at = `2030-01-01T00:${String(minute).padStart(2, '0')}:30.000Z`;
    const { data } = await findPastHolder('10.0.0.5', at, paths);
    return data as { holders: Record<string, string>[]; notes: string[]; log: { skipped: number } };
  }

  it('is read from rotated and compressed files, and lines that are not of ipam are skipped and counted', async () => {
    const { holders, log } = await holderAt(7);
    const held = { addressSpace: 'lan', state: 'held', owner: 'IPAMClaim vms/vm1.data', node: 'n1', mac: '' };
    const [since, until] = ['2030-01-01T00:05:00.000Z', '2030-01-01T00:20:00.000Z'];
    expect(holders).to.deep.equal([{ ...held, since, until }]);
    expect(log.skipped).to.equal(4);
    expect((await holderAt(12)).holders).to.deep.equal([{ ...held, node: 'n2', since, until }]);
  });

  it('is nobody before the first lease, unknown before the log, and uncertain after it', async () => {
    expect((await holderAt(3)).holders[0]).to.include({ state: 'free' });
    expect((await holderAt(0)).holders[0]).to.include({ state: 'unknown' });
    const later = await holderAt(40);
    expect(later.holders[0]).to.include({ state: 'released' });
    expect(later.notes[0]).to.match(/^the log is complete until 2030-01-01T00:20:00\.000Z/);
  });

  it('is unknown while the log is silent, because a file is missing or lines were rotated away', async () => {
    const path = join(folder, 'audit.log');
    await writeFile(path, [...OLD, ...NEW.slice(-3)].join('\n'));
    const holderAfter = async (minute: string) => {
      const { data } = await findPastHolder('10.0.0.5', `2030-01-01T00:${minute}:30.000Z`, [path]);
      return (data as { holders: { state: string }[] }).holders[0]?.state;
    };
    expect(await holderAfter('07')).to.equal('held');
    expect(await holderAfter('12')).to.equal('unknown');
    expect(await holderAfter('18')).to.equal('unknown');
    expect(await holderAfter('20')).to.equal('released');
  });

  it('is unknown from the last change that a leader could see, if its watch was interrupted until another one started', async () => {
    const path = join(folder, 'audit.log');
    const blind = { completeUntil: '2030-01-01T00:08:00.000Z' };
    const states = [
      line(9, { type: 'state', ...LEASE, state: 'held', owner, node: 'n1' }),
      line(9, { type: 'listed', scope: 'all', ...blind }),
    ];
    const later = [
      ...[10, 11].map((minute) => line(minute, { type: 'alive', ...blind })),
      line(12, { type: 'gap', reason: 'start' }),
      line(12, { type: 'state', ...LEASE, state: 'released', owner, resourceVersion: '9' }),
      line(12, { type: 'listed', scope: 'all' }),
    ];
    const holderAfter = async (minute: string) => {
      const { data } = await findPastHolder('10.0.0.5', `2030-01-01T00:${minute}:30.000Z`, [path]);
      return data as { holders: { state: string }[]; notes: string[] };
    };
    for (const between of [[], [line(9, { type: 'gap', reason: 'start' }), ...states]]) {
      await writeFile(path, [...OLD, ...between, ...later].join('\n'));
      const found = await Promise.all(['07', '08', '09', '11', '12'].map(holderAfter));
      expect(found.map(({ holders }) => holders[0]?.state)).to.deep.equal([
        ...['held', 'unknown', 'unknown', 'unknown', 'released'],
      ]);
      await writeFile(path, [...OLD, ...between, ...later.slice(0, 2)].join('\n'));
      expect((await holderAfter('10')).notes[0]).to.match(/^the log is complete until 2030-01-01T00:08:00\.000Z/);
    }
  });

  it('is found in the files that ipam has rotated', async () => {
    const path = join(folder, 'logs', 'audit.log');
    const sink = new FileSink({ path, maxBytes: 300, maxFiles: 3 });
    for (const each of [...OLD, ...NEW]) await sink.write(`${each}\n`);
    await sink.close();
    const kept: string[] = [];
    for (const name of [`${path}.2`, `${path}.1`, path]) for await (const text of linesOfFile(name)) kept.push(text);
    expect(kept).to.deep.equal([...OLD, ...NEW].slice(-kept.length));
    expect(kept.length).to.be.greaterThan(2);
    const error = await findPastHolder('10.0.0.5', '2030-01-01T00:07:00.000Z', [`${path}.3`]).catch(
      (thrown: unknown) => thrown,
    );
    expect(String(error)).to.include(`cannot read ${path}.3: ENOENT`);
  });
});
