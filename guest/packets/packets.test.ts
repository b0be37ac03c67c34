import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';

const run = promisify(execFile);
const ARCHITECTURE = process.arch === 'x64' ? 'amd64' : process.arch;
const GO = {
  cwd: import.meta.dirname,
  env: { ...process.env, GOFLAGS: '-mod=readonly', GOTOOLCHAIN: 'local', GOWORK: 'off' },
};

describe('The program holdfast-packets', function () {
  this.timeout(300_000); // the first time it is compiled
  let folder: string;
  let binary: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-'));
    await run(process.execPath, [join(import.meta.dirname, 'build.js'), folder]);
    binary = join(folder, `holdfast-packets-linux-${ARCHITECTURE}`);
  });
  after(() => rm(folder, { recursive: true }));

  it('passes its Go tests, and those of its fuzz targets that need no fuzzing', async () => {
    for (const tags of ['', 'guests']) await run('go', ['vet', `-tags=${tags}`, './...'], GO);
    const { stdout } = await run('go', ['test', './...'], GO);
    expect(stdout).to.match(/^ok\s+holdfast\.dev\/guest\/packets\s/m);
  });

  it('is statically linked', async () => {
    const bytes = await readFile(binary);
    expect(bytes.includes('/ld-linux')).to.equal(false);
    expect(bytes.includes('/ld-musl')).to.equal(false);
  });

  it('rejects arguments that it does not know', async () => {
    const error = await run(binary, ['extra']).catch((cause: unknown) => cause);
    expect(error).to.include({ code: 1 });
    expect((error as { stderr: string }).stderr).to.include('unexpected argument');
  });

  it('logs why it ends a connection, and removes its socket when it stops', async () => {
    const socket = join(folder, 'packets.sock');
    const child = spawn(binary, [`--socket=${socket}`]);
    const log = await logUntil(child, 'listening');
    const [command] = (await readFile(join(import.meta.dirname, 'testdata', 'session.jsonl'), 'utf8')).split('\n');
    const connection = connect(socket);
    connection.resume().write(`${command!.replace('guest0', 'absent0')}\n`);
    await once(connection, 'close');
    expect(await log.until('absent0')).to.include('the connection ends');
    child.kill();
    expect(await once(child, 'exit')).to.deep.equal([0, null]);
    await expectAbsent(socket);
  });

  async function expectAbsent(path: string): Promise<void> {
    const error = await readFile(path).catch((cause: unknown) => cause);
    expect(error).to.include({ code: 'ENOENT' });
  }
});

/** Reads the log of a process until it has a text, and again later. */
async function logUntil(child: ChildProcess, text: string): Promise<{ until: (wanted: string) => Promise<string> }> {
  let log = '';
  child.stderr!.setEncoding('utf8').on('data', (more: string) => (log += more));
  const until = async (wanted: string): Promise<string> => {
    while (!log.includes(wanted)) await once(child.stderr!, 'data');
    return log;
  };
  await until(text);
  return { until };
}
