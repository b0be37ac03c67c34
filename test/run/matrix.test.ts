import { expect } from 'chai';
import { runMatrix } from './matrix.js';
import type { Phase } from './phase.js';

describe('The matrix of versions', function () {
  this.timeout(60_000);
  const pairs = ['1.3', '1.2', '1.1'].map((kubernetes) => ({ kubernetes, kubeVirt: '1.0' }));
  const script = (source: string): Phase => ({
    ...{ name: 'script', command: process.execPath, args: ['-e', source], limitMs: 60_000, counts: false },
  });

  async function run(sources: Readonly<Record<string, string>>, interrupt = new AbortController()) {
    const lines: string[] = [];
    const phaseOf = ({ kubernetes }: { kubernetes: string }) => script(sources[kubernetes] ?? '');
    const passed = await runMatrix({
      ...{ pairs, phaseOf, interrupt: interrupt.signal },
      print: (line) => lines.push(line.replace(/, \d+ min/, '')),
    });
    return { passed, summary: lines.slice(lines.indexOf('') + 1) };
  }

  it('runs each pair although one fails, and ends with a line for each', async () => {
    expect(await run({ '1.3': 'process.exitCode = 1' })).to.deep.equal({
      passed: false,
      summary: [
        'Kubernetes 1.3 and KubeVirt 1.0: failed (0 passed, 1 failed)',
        'Kubernetes 1.2 and KubeVirt 1.0: passed (1 passed, 0 failed)',
        'Kubernetes 1.1 and KubeVirt 1.0: passed (1 passed, 0 failed)',
      ],
    });
  });

  it('passes if all pairs pass', async () => {
    expect((await run({})).passed).to.equal(true);
  });

  it('does not start another pair after an interrupt', async () => {
    const interrupt = new AbortController();
    interrupt.abort();
    const { passed, summary } = await run({}, interrupt);
    expect(passed).to.equal(false);
    expect(summary).to.deep.equal(pairs.map(({ kubernetes }) => `Kubernetes ${kubernetes} and KubeVirt 1.0: not run`));
  });
});
