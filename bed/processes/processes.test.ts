import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from './wait.js';
import { Processes } from './processes.js';

describe('The processes of a bed', function () {
  this.timeout(20_000);
  let folder: string;
  let processes: Processes;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-processes-'));
    processes = new Processes(join(folder, 'logs'), join(folder, 'data'));
  });

  afterEach(async () => {
    await processes.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const shell = (name: string, script: string, more: { stopLast?: boolean } = {}) =>
    processes.start({ name, command: '/bin/sh', args: ['-c', script], ...more });

  it('have one log each, which continues when a process is started again', async () => {
    await shell('talker', 'echo one; echo two >&2').exited;
    const again = shell('talker', 'echo three');
    await again.exited;
    expect(await readFile(again.logFile, 'utf8')).to.equal('one\ntwo\nthree\n');
  });

  it('have their temporary files in the scratch folder of the bed', async () => {
    const child = shell('untidy', 'echo "$TMPDIR"; test -d "$TMPDIR"');
    await child.exited;
    expect(await readFile(child.logFile, 'utf8')).to.equal(`${join(folder, 'data', 'tmp')}\n`);
    expect(() => child.assertRunning()).to.throw('code 0');
  });

  it('can have pipes, and then only standard error is logged', async () => {
    const child = processes.start({
      name: 'parrot',
      command: '/bin/sh',
      args: ['-c', 'read line; echo "$line"; echo bye >&2'],
      hasPipes: true,
    });
    child.pipes.input?.write('hello\n');
    const [answer] = (await once(child.pipes.output!, 'data')) as [Buffer];
    await child.exited;
    expect(answer.toString()).to.equal('hello\n');
    expect(await readFile(child.logFile, 'utf8')).to.equal('bye\n');
  });

  it('are reported with the end of their log after their end', async () => {
    const child = shell('failing', 'echo bad flag; exit 3');
    await child.exited;
    expect(child.running).to.equal(false);
    expect(() => child.assertRunning()).to.throw(/failing ended with code 3.*\nbad flag/);
    expect(processes.list()).to.deep.equal([]);
  });

  it('are reported if they cannot be started', async () => {
    const child = processes.start({ name: 'nobody', command: '/does/not/exist', args: [] });
    await child.exited;
    expect(() => child.assertRunning()).to.throw(/nobody ended with .*ENOENT/);
  });

  it('end with SIGTERM, or with SIGKILL if they ignore it', async () => {
    const stubborn = shell('stubborn', 'trap "" TERM; echo ready; while :; do sleep 0.1; done');
    const willing = shell('willing', 'trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.1; done');
    for (const { logFile } of [stubborn, willing]) {
      await until('the trap to be set', async () => (await readFile(logFile, 'utf8')).includes('ready'));
    }
    await processes.stop();
    expect([stubborn.running, willing.running]).to.deep.equal([false, false]);
    expect(await readFile(willing.logFile, 'utf8')).to.include('bye');
  });

  it('end even if they are paused', async () => {
    const child = shell('paused', 'exec sleep 60');
    await child.pause();
    await processes.stop();
    expect(child.running).to.equal(false);
  });

  it('end last if others depend on them', async () => {
    const order: string[] = [];
    const store = shell('store', 'exec sleep 60', { stopLast: true });
    const user = shell('user', 'trap "sleep 0.3; exit 0" TERM; while :; do sleep 0.05; done');
    for (const child of [store, user]) void child.exited.then(() => order.push(child.name));
    await processes.stop();
    expect(order).to.deep.equal(['user', 'store']);
  });

  it('cannot be started after stop was called', async () => {
    await processes.stop();
    expect(() => shell('late', 'true')).to.throw('late is not started');
  });

  it('end and leave only logs if the process that started them is killed', async () => {
    await mkdir(join(folder, 'data'), { recursive: true });
    const victim = spawn(process.execPath, ['--import=tsx', '--input-type=module', '-e', victimScript(folder)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(victim.stdout.setEncoding('utf8'), 'data')) as [string];
    const pid = Number(line);
    expect(isAlive(pid)).to.equal(true);
    victim.kill('SIGKILL');
    await until('the orphan to end', () => !isAlive(pid));
    await until('the data to be removed', () => !existsSync(join(folder, 'data')));
    expect(existsSync(join(folder, 'logs', 'orphan.log'))).to.equal(true);
  });
});

function victimScript(folder: string): string {
  const [module, logs, data] = [join(import.meta.dirname, 'processes.ts'), join(folder, 'logs'), join(folder, 'data')];
  return `
    const { Processes } = await import(${JSON.stringify(module)});
    const processes = new Processes(${JSON.stringify(logs)}, ${JSON.stringify(data)});
    console.log(processes.start({ name: 'orphan', command: '/bin/sh', args: ['-c', 'exec sleep 600'] }).pid);
  `;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
