// Runs the checks and the tests: `tsx test/run.ts [check] [unit-lts] [unit] [e2e] [-- options of mocha]`. Without a name: all of them.
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NO_TESTS, type TestCounts, addCounts, closingLine, succeeded } from './counts.js';
import { e2ePhase } from './e2e-phase.js';
import { lineOfImage, nodeOfImage } from './image/node.js';
import { type Phase, mochaPhase, runPhase } from './phase.js';

const MINUTE_MS = 60_000;
/** All tests of the tree but those of the e2e phase. A list of folders would leave new ones out. */
const UNIT_TESTS = '!(node_modules|dist|out)/**/*.test.ts';
const UNIT_HOOKS = './test/unhandled-rejections.ts';
/** Not in the image, or in a browser, or thousands of random cases of our logic, which does not depend on the version of Node.js. */
const NOT_LTS = ['{bed,e2e,manifests,release,test}/**', '**/{cloud-init,fuzz,*.browser,*.model,*.property}.test.ts'];

type Name = 'check' | 'unit-lts' | 'unit' | 'e2e';
/** Phases of one list run at the same time. */
const ORDER: readonly (readonly Name[])[] = [['check', 'unit-lts'], ['unit'], ['e2e']];

/** @param more options of mocha @returns undefined if the phase would repeat another one */
const PHASES: Readonly<Record<Name, (more: readonly string[]) => Promise<Phase | undefined>>> = {
  check: () => {
    const args = ['run', '--silent', 'check'];
    return Promise.resolve({ name: 'check', command: 'npm', args, limitMs: 10 * MINUTE_MS, counts: false });
  },
  'unit-lts': async (mochaArgs) => {
    const node = await nodeOfImage();
    if (node === process.execPath) return undefined;
    return mochaPhase({
      name: `unit-lts, on Node.js ${String(await lineOfImage())} of the image`,
      node,
      files: [UNIT_TESTS],
      timeoutMs: 60_000,
      limitMs: 20 * MINUTE_MS,
      hooks: UNIT_HOOKS,
      mochaArgs: [...NOT_LTS.map((pattern) => `--ignore=${pattern}`), ...mochaArgs],
    });
  },
  unit: (mochaArgs) => {
    const phase = mochaPhase({
      name: 'unit',
      files: [UNIT_TESTS],
      timeoutMs: 10_000,
      // The first run builds a control plane.
      limitMs: 20 * MINUTE_MS,
      hooks: UNIT_HOOKS,
      mochaArgs,
    });
    return Promise.resolve(phase);
  },
  e2e: (mochaArgs) => Promise.resolve(e2ePhase({ name: 'e2e', limitMs: 45 * MINUTE_MS, mochaArgs })),
};

async function choose(args: readonly string[]): Promise<Phase[][]> {
  const dashes = args.includes('--') ? args.indexOf('--') : args.length;
  const names = args.slice(0, dashes);
  const unknown = names.filter((name) => !(name in PHASES));
  if (unknown.length > 0)
    throw new TypeError(`no phase "${unknown.join('", "')}"; there are: ${Object.keys(PHASES).join(', ')}`);
  const isChosen = (name: Name) => names.length === 0 || names.includes(name);
  const more = args.slice(dashes + 1);
  const lists = ORDER.map((list) => Promise.all(list.filter(isChosen).map((name) => PHASES[name](more))));
  return (await Promise.all(lists)).map((list) => list.filter((phase) => phase !== undefined));
}

async function run(phase: Phase): Promise<TestCounts> {
  console.log(`\n=== ${phase.name}`);
  const started = performance.now();
  const counts = await runPhase(phase, interrupt.signal);
  return report(phase, performance.now() - started, counts);
}

/** Runs a phase, and shows its output after that of another one that runs at the same time. */
async function runBeside(phase: Phase, other: Promise<unknown>): Promise<TestCounts> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-test-'));
  const path = join(folder, 'output');
  const file = await open(path, 'w');
  try {
    const started = performance.now();
    const counts = await runPhase(phase, interrupt.signal, file.fd);
    const durationMs = performance.now() - started;
    await other;
    console.log(`\n=== ${phase.name}`);
    process.stdout.write(await readFile(path));
    return report(phase, durationMs, counts);
  } finally {
    await file.close();
    await rm(folder, { recursive: true });
  }
}

function report({ name }: Phase, durationMs: number, counts: TestCounts): TestCounts {
  console.log(`=== ${name}: ${(durationMs / 1000).toFixed(0)} s, ${closingLine(counts)}`);
  return counts;
}

const interrupt = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupt.abort());

let total = NO_TESTS;
for (const [first, ...others] of await choose(process.argv.slice(2))) {
  if (interrupt.signal.aborted) break;
  if (first === undefined) continue;
  const shown = run(first);
  const counts = await Promise.all([shown, ...others.map((phase) => runBeside(phase, shown))]);
  total = counts.reduce(addCounts, total);
}
console.log(`\n${closingLine(total)}`);
process.exitCode = succeeded(total) && !interrupt.signal.aborted ? 0 : 1;
