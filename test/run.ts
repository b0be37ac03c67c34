// Runs the checks and the tests: `tsx test/run.ts [check] [unit] [e2e] [-- options of mocha]`. Without a name: all of them.
import { existsSync } from 'node:fs';
import { NO_TESTS, addCounts, closingLine, succeeded } from './counts.js';
import { type Phase, mochaPhase, runPhase } from './phase.js';

const MINUTE_MS = 60_000;
/** All tests of the tree but those of the e2e phase. A list of folders would leave new ones out. */
const UNIT_TESTS = '!(node_modules|dist|out)/**/*.test.ts';
const E2E_HOOKS = 'e2e/hooks.ts';

function phases(more: readonly string[]): Phase[] {
  return [
    { name: 'check', command: 'npm', args: ['run', '--silent', 'check'], limitMs: 10 * MINUTE_MS, counts: false },
    mochaPhase({
      name: 'unit',
      files: [UNIT_TESTS],
      timeoutMs: 10_000,
      // The first run builds a control plane.
      limitMs: 20 * MINUTE_MS,
      hooks: './test/unhandled-rejections.ts',
      mochaArgs: more,
    }),
    mochaPhase({
      name: 'e2e',
      // Tests in subfolders start their own control plane, so they cannot test an existing cluster.
      files: process.env.E2E_KUBECONFIG === undefined ? ['e2e/**/*.e2e.ts'] : ['e2e/*.e2e.ts'],
      timeoutMs: 2 * MINUTE_MS,
      limitMs: 35 * MINUTE_MS,
      hooks: existsSync(E2E_HOOKS) ? E2E_HOOKS : undefined,
      mochaArgs: more,
    }),
  ];
}

function choose(args: readonly string[]): Phase[] {
  const dashes = args.includes('--') ? args.indexOf('--') : args.length;
  const all = phases(args.slice(dashes + 1));
  const names = args.slice(0, dashes);
  const known = all.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new TypeError(`no phase "${unknown.join('", "')}"; there are: ${known.join(', ')}`);
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}

const interrupt = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupt.abort());

let total = NO_TESTS;
for (const phase of choose(process.argv.slice(2))) {
  if (interrupt.signal.aborted) break;
  console.log(`\n=== ${phase.name}`);
  const started = performance.now();
  const counts = await runPhase(phase, interrupt.signal);
  console.log(`=== ${phase.name}: ${((performance.now() - started) / 1000).toFixed(0)} s, ${closingLine(counts)}`);
  total = addCounts(total, counts);
}
console.log(`\n${closingLine(total)}`);
process.exitCode = succeeded(total) && !interrupt.signal.aborted ? 0 : 1;
