import { mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { silentLogger } from '../../kube/log.js';
import { TransportError } from '../../kube/errors.js';
import { pluginRequest } from '../testing/cni-requests.js';
import { ManualClock } from '../../test/manual-clock.js';
import {
  MAX_PENDING_DELETES,
  type PendingDelete,
  PendingDeleteRetry,
  PendingDeletes,
  pendingDeleteFileName,
} from './pending-deletes.js';

const AT = { containerId: 'c1', interfaceName: 'net1' };
const OTHER = { containerId: 'sb-2', interfaceName: 'net1' };

describe('pending deletes', () => {
  let root: string;
  let folder: string;
  let clock: ManualClock;
  let notes: PendingDeletes;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'holdfast-'));
    folder = join(root, 'deletions');
    clock = new ManualClock(Date.now());
    notes = new PendingDeletes({ folder, clock, log: silentLogger });
  });
  afterEach(() => rm(root, { recursive: true }));

  it('store only what a DEL needs, in files that only root can read', async () => {
    await notes.write(AT);
    await notes.write(OTHER);
    expect(await notes.list()).to.have.deep.members([
      { name: 'c1-net1.json', target: { command: 'DEL', ...AT } },
      { name: pendingDeleteFileName(OTHER), target: { command: 'DEL', ...OTHER } },
    ]);
    const env = { CNI_COMMAND: 'DEL', CNI_CONTAINERID: 'c1', CNI_IFNAME: 'net1' };
    expect(JSON.parse(await readFile(join(folder, 'c1-net1.json'), 'utf8'))).to.deep.equal({ env, config: '' });
    expect((await stat(folder)).mode & 0o777).to.equal(0o700);
    expect((await stat(join(folder, 'c1-net1.json'))).mode & 0o777).to.equal(0o600);
    expect(await readdir(folder)).to.have.length(2);
  });

  it('have one file for each interface, which remove() deletes', async () => {
    expect(notes.has(AT)).to.equal(false);
    await notes.write(AT);
    await notes.write(AT);
    expect(await notes.list()).to.have.length(1);
    expect([notes.has(AT), notes.has(OTHER)]).to.deep.equal([true, false]);
    await notes.remove(AT);
    await notes.remove(AT);
    expect([notes.has(AT), await notes.list()]).to.deep.equal([false, []]);
  });

  it('are read if an older plugin wrote them with the whole config', async () => {
    await mkdir(folder, { recursive: true });
    const request = pluginRequest('DEL', {}, { padding: 'x'.repeat(100_000) });
    await writeFile(join(folder, 'c1-net1.json'), `${JSON.stringify(request)}\n`);
    expect(await notes.list()).to.deep.equal([{ name: 'c1-net1.json', target: { command: 'DEL', ...AT } }]);
  });

  it('are not stored beyond the limit, and existing ones are kept', async function () {
    this.timeout(30_000);
    await notes.write(AT);
    const others = Array.from({ length: MAX_PENDING_DELETES - 1 }, (_, index) => join(folder, `other-${index}.json`));
    await Promise.all(others.map((path) => writeFile(path, '')));
    expect(await notes.write(OTHER)).to.equal(false);
    expect(notes.has(OTHER)).to.equal(false);
    expect(await notes.write(AT)).to.equal(true);
    await rm(others[0]!);
    expect(await notes.write(OTHER)).to.equal(true);
    await rm(folder, { recursive: true });
  });

  it('are an empty list if the folder does not exist', async () => {
    expect(await notes.list()).to.deep.equal([]);
  });

  const unreadable: { name: string; text: string }[] = [
    { name: 'c1-net1.json', text: '{"env":' },
    { name: 'c1-net1.json', text: '' },
    { name: 'c1-net1.json', text: JSON.stringify(pluginRequest('ADD')) },
    { name: 'c1-net1.json', text: JSON.stringify(pluginRequest('DEL', { CNI_IFNAME: 'net2' })) },
    { name: 'c1-net1.json', text: JSON.stringify(pluginRequest('DEL', { CNI_IFNAME: undefined })) },
  ];
  for (const { name, text } of unreadable) {
    it(`are renamed if their file is invalid: ${text.slice(0, 60)}`, async () => {
      await notes.write(OTHER);
      await writeFile(join(folder, name), text);
      expect(await notes.list()).to.have.length(1);
      expect(await readdir(folder)).to.have.members([pendingDeleteFileName(OTHER), `${name}.unreadable`]);
      expect(await notes.list()).to.have.length(1);
    });
  }

  it('are listed beside files that can be neither renamed nor removed', async () => {
    await notes.write(OTHER);
    await writeFile(join(folder, `${'x'.repeat(250)}.json`), 'too long for a suffix');
    await mkdir(join(folder, '.note-1'));
    await utimes(join(folder, '.note-1'), 0, 0);
    expect(await notes.list()).to.have.length(1);
  });

  it('are kept if their file cannot be read now, as on a node without free file descriptors', async () => {
    await notes.write(OTHER);
    // the kernel fails with EIO
    await symlink('/proc/self/mem', join(folder, 'c1-net1.json'));
    expect(await notes.list()).to.have.length(1);
    expect(notes.has(AT)).to.equal(true);
    await rm(join(folder, 'c1-net1.json'));
    await notes.write(AT);
    expect(await notes.list()).to.have.length(2);
  });

  it('are listed although a folder has the name of a pending delete', async () => {
    await mkdir(join(folder, 'c1-net1.json'), { recursive: true });
    await notes.write(OTHER);
    expect(await notes.list()).to.have.length(1);
  });

  it('are cleaned of temporary files of crashed writers after some time', async () => {
    await notes.write(AT);
    const unfinished = join(folder, '.note-123');
    await writeFile(unfinished, '{"env"');
    expect(await notes.list()).to.have.length(1);
    expect(await readdir(folder)).to.have.length(2);
    const old = clock.now() / 1000 - 601;
    await utimes(unfinished, old, old);
    expect(await notes.list()).to.have.length(1);
    expect(await readdir(folder)).to.have.length(1);
  });

  it('have safe file names that differ for each interface', () => {
    const text = fc.oneof(fc.string(), fc.constantFrom('a', 'a-b', 'b', 'a/b', '..', 'x'.repeat(300)));
    const place = fc.record({ containerId: text, interfaceName: text });
    fc.assert(
      fc.property(place, place, (a, b) => {
        for (const at of [a, b]) expect(pendingDeleteFileName(at)).to.match(/^[0-9A-Za-z][0-9A-Za-z._-]{0,170}\.json$/);
        // the CNI spec allows no slash in a container ID
        fc.pre(![a, b].some(({ containerId }) => containerId.includes('/')));
        const isSame = a.containerId === b.containerId && a.interfaceName === b.interfaceName;
        expect(pendingDeleteFileName(a) === pendingDeleteFileName(b)).to.equal(isSame);
      }),
    );
  });

  describe('are retried', () => {
    let pending: number[];
    let tried: string[];
    let replay: (note: PendingDelete) => Promise<void>;
    let loop: PendingDeleteRetry;

    beforeEach(() => {
      pending = [];
      tried = [];
      replay = ({ target }) => notes.remove(target);
      loop = new PendingDeleteRetry({
        pendingDeletes: notes,
        retryDelete: (note) => {
          tried.push(note.target.containerId);
          return replay(note);
        },
        clock,
        random: () => 1,
        log: silentLogger,
        metrics: { pending: (count) => pending.push(count) },
      });
    });
    afterEach(() => loop.stop());

    it('are retried at the start, when a new one is announced, and at intervals', async () => {
      await notes.write(AT);
      loop.start();
      await clock.untilAlarmsSet();
      expect([tried, pending]).to.deep.equal([['c1'], [1, 0]]);
      await notes.write(OTHER);
      const wait = async (ms: number) => {
        clock.advanceTo(clock.now() + ms);
        await clock.untilAlarmsSet();
      };
      // a failed one waits for a second
      await wait(30_000);
      await wait(1_000);
      expect(tried).to.deep.equal(['c1', 'sb-2']);
      await notes.write(AT);
      loop.wake();
      await clock.untilAlarmsSet();
      await wait(1_000);
      expect(tried).to.deep.equal(['c1', 'sb-2', 'c1']);
      expect(await notes.list()).to.deep.equal([]);
    });

    it('are retried with back-off while the API server is not available, one request per attempt', async () => {
      await notes.write(AT);
      await notes.write(OTHER);
      replay = () => Promise.reject(new TransportError('unsent', 'refused'));
      loop.start();
      const pauses: number[] = [];
      for (let round = 0; round < 8; round++) {
        await clock.untilAlarmsSet();
        pauses.push((clock.next ?? 0) - clock.now());
        clock.advanceTo(clock.next ?? 0);
      }
      await clock.untilAlarmsSet();
      expect(pauses).to.deep.equal([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
      expect(tried).to.have.length(9);
      replay = ({ target }) => notes.remove(target);
      clock.advanceTo(clock.next ?? 0);
      await clock.untilAlarmsSet();
      expect(await notes.list()).to.deep.equal([]);
      expect(pending.at(-1)).to.equal(0);
    });

    it('are retried even if one of them fails', async () => {
      await notes.write(AT);
      await notes.write(OTHER);
      replay = ({ target }) =>
        target.containerId === 'c1' ? Promise.reject(new Error('refused')) : notes.remove(target);
      loop.start();
      await clock.untilAlarmsSet();
      expect(await notes.list()).to.have.length(1);
      expect(pending.at(-1)).to.equal(1);
    });

    it('are not retried after stop()', async () => {
      await notes.write(AT);
      replay = () => Promise.reject(new Error('refused'));
      loop.start();
      await clock.untilAlarmsSet();
      await loop.stop();
      clock.advanceTo(clock.now() + 60_000);
      expect(tried).to.have.length(1);
    });
  });
});
