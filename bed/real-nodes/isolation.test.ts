import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { until } from '../processes/wait.js';
import { isolated, reasonAgainstRealNodes } from './isolation.js';

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

  it('removes no cgroup of a command that still runs', async () => {
    const other = join(CGROUPS, `holdfast-bed-${String(process.pid)}-test`);
    mkdirSync(other);
    try {
      await once(run('true'), 'exit');
      expect(existsSync(other)).to.equal(true);
    } finally {
      rmdirSync(other);
    }
  });
});
