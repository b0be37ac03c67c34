import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Phase, mochaPhase, runPhase } from './phase.js';

const LIMIT_MS = 60_000;

describe('a phase of the test run', function () {
  this.timeout(LIMIT_MS);
  let folder = '';

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-phase-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  async function runSuite(name: string, source: string, parallel = false) {
    const file = join(folder, `${name}.cjs`);
    await writeFile(file, source);
    const options = { name, files: [file], timeoutMs: 5_000, limitMs: LIMIT_MS, parallel };
    return runPhase(mochaPhase(options), never(), 'ignore');
  }

  async function runScript(source: string, interrupt = never(), limitMs = LIMIT_MS) {
    const phase: Phase = { name: 'script', command: process.execPath, args: ['-e', source], limitMs, counts: false };
    return (await runPhase(phase, interrupt, 'ignore')).counts;
  }

  const suites = [
    { name: 'a phase that passes', given: `it('a', () => {}); it('b', () => {});`, expect: [2, 0, 0] },
    {
      name: 'a phase that fails',
      given: `it('a', () => {}); it('b', () => { throw new Error('no') });`,
      expect: [1, 1, 0],
    },
    { name: 'a phase that cannot run here', given: `it('a', function () { this.skip() });`, expect: [0, 0, 1] },
    {
      name: 'a phase whose hook fails',
      given: `before(() => { throw new Error('no') }); it('a', () => {});`,
      expect: [0, 1, 0],
    },
    { name: 'a phase that does not load', given: `throw new Error('no');`, expect: [0, 1, 0] },
    { name: 'a phase whose process exits early', given: `it('a', () => process.exit(0));`, expect: [0, 1, 0] },
    { name: 'a phase with a test marked as the only one', given: `it.only('a', () => {});`, expect: [0, 1, 0] },
  ];
  for (const { name, given, expect: [passed, failed, skipped] = [] } of suites) {
    for (const parallel of [false, true]) {
      it(`counts the tests of ${name}${parallel ? ', in several processes' : ''}`, async () => {
        const { counts } = await runSuite(name.replaceAll(' ', '-'), given, parallel);
        expect(counts).to.deep.equal({ passed, failed, skipped });
      });
    }
  }

  it('names the slowest tests and hooks with their times', async () => {
    const wait = 'async () => { await new Promise((resolve) => setTimeout(resolve, 50)) }';
    const source = `describe('s', () => { before(${wait}); it('quick', () => {}); it('slow', ${wait}); })`;
    const { slowest, durationMs } = await runSuite('slow', source);
    expect(slowest.map(({ title }) => title)).to.have.members(['s "before all" hook for "quick"', 's slow', 's quick']);
    expect(slowest.at(-1)).to.deep.include({ title: 's quick' });
    expect(durationMs).to.be.greaterThan(slowest[0]!.ms + slowest[1]!.ms);
  });

  for (const parallel of [false, true])
    it(`names what failed with the first line of its error${parallel ? ', in several processes' : ''}`, async () => {
      const no = `() => { throw new Error('no\\nstack') }`;
      const source = `describe('s', () => { it('a', ${no}); it('b', () => {}); describe('t', () => { before(${no}); it('c', () => {}) }) })`;
      const { failures } = await runSuite(`failures-${parallel}`, source, parallel);
      expect(failures).to.deep.equal(['s a: no', 's t "before all" hook for "c": no']);
    });

  it('counts a command as one test', async () => {
    expect(await runScript('')).to.deep.equal({ passed: 1, failed: 0, skipped: 0 });
    expect(await runScript('process.exitCode = 3')).to.deep.equal({ passed: 0, failed: 1, skipped: 0 });
  });

  it('counts a command that does not exist as failed', async () => {
    const phase: Phase = { name: 'none', command: join(folder, 'none'), args: [], limitMs: LIMIT_MS, counts: false };
    expect((await runPhase(phase, never())).counts).to.include({ failed: 1 });
  });

  it('ends a phase that takes too long, and counts it as failed', async () => {
    expect(await runScript('setInterval(() => undefined, 1000)', never(), 200)).to.include({ passed: 0, failed: 1 });
  });

  it('ends when it is interrupted', async () => {
    const interrupt = new AbortController();
    const running = runScript('setInterval(() => undefined, 1000)', interrupt.signal);
    interrupt.abort();
    expect(await running).to.include({ passed: 0, failed: 1 });
  });
});

function never(): AbortSignal {
  return new AbortController().signal;
}
