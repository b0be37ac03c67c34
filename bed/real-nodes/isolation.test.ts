import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { until } from '../processes/wait.js';
import { isolated, reasonAgainstRealNodes, temporaryFolderOf } from './isolation.js';

const CGROUPS = '/sys/fs/cgroup/pids';

describe('A command in namespaces of its own', function () {
  this.timeout(20_000);
  let folder: string;

  before(function () {
    if (reasonAgainstRealNodes() !== undefined || !existsSync(CGROUPS)) this.skip();
    folder = mkdtempSync(join(tmpdir(), 'holdfast-isolation-'));
  });
  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  function run(script: string) {
    const { command, args } = isolated({ command: 'sh', args: ['-c', script] });
    return spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  }

  it('sees only its own processes and links, and ends with its status', async () => {
    const child = run('ls -d /proc/1 /proc/2 2>&1; ip -brief link | wc -l; exit 7');
    const [output] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    expect(output.trim().split('\n')).to.include('1').and.to.include('/proc/1');
    expect(child.exitCode).to.equal(7);
  });

  it('is interrupted by SIGINT and SIGTERM', async () => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      const ready = join(folder, signal);
      const child = run(`trap 'exit 3' INT; touch ${ready}; while :; do sleep 0.05; done`);
      await until('the command to run', () => existsSync(ready));
      child.kill(signal);
      await once(child, 'exit');
      expect(child.exitCode).to.equal(3);
    }
  });

  it('leaves no process if it is killed, and no cgroup after the next one', async () => {
    const beat = join(folder, 'beat');
    const child = run(`mkdir ${CGROUPS}/$HOLDFAST_BED_CGROUP-test; while :; do date +%N > ${beat}; sleep 0.02; done`);
    const cgroup = join(CGROUPS, `holdfast-bed-${String(child.pid)}-test`);
    await until('the command to run', () => existsSync(beat) && existsSync(cgroup));
    child.kill('SIGKILL');
    await once(child, 'exit');
    await until('the command to be dead', async () => {
      const last = readFileSync(beat, 'utf8');
      await new Promise((resolve) => setTimeout(resolve, 200));
      return readFileSync(beat, 'utf8') === last;
    });
    await once(run('true'), 'exit');
    expect(existsSync(cgroup)).to.equal(false);
  });

  it('has a folder for temporary files, which ends with it, or with the next command if it is killed', async () => {
    const ended = run('touch $TMPDIR/file');
    await once(ended, 'exit');
    expect(existsSync(temporaryFolderOf(ended.pid!))).to.equal(false);
    const killed = run('touch $TMPDIR/file; sleep 60');
    const file = join(temporaryFolderOf(killed.pid!), 'file');
    await until('the command to run', () => existsSync(file));
    killed.kill('SIGKILL');
    await once(killed, 'exit');
    expect(existsSync(file)).to.equal(true);
    await once(run('true'), 'exit');
    expect(existsSync(temporaryFolderOf(killed.pid!))).to.equal(false);
  });

  it('leaves only logs if it fails, also those of nodes, until the next command', async () => {
    const child = run(`
      cd $TMPDIR
      mkdir -p bed/logs bed/data/nodes/node-1/var/log
      touch bed/logs/a bed/data/b bed/data/nodes/node-1/var/log/kubelet.log
      exit 1`);
    const folder = temporaryFolderOf(child.pid!);
    await once(child, 'exit');
    const logs = ['bed/logs/a', 'bed/logs/node-1-kubelet.log'];
    expect(readdirSync(folder, { recursive: true })).to.have.members(['bed', 'bed/logs', ...logs]);
    await once(run('true'), 'exit');
    expect(existsSync(folder)).to.equal(false);
  });

  it('removes no cgroup and no file of a command that still runs', async () => {
    const other = join(CGROUPS, `holdfast-bed-${String(process.pid)}-test`);
    const files = temporaryFolderOf(process.pid);
    mkdirSync(other);
    mkdirSync(files);
    try {
      await once(run('true'), 'exit');
      expect([existsSync(other), existsSync(files)]).to.deep.equal([true, true]);
    } finally {
      rmdirSync(other);
      rmdirSync(files);
    }
  });
});
