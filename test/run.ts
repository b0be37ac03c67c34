// Runs checks and tests: `tsx test/run.ts [check] [unit] [api] [e2e] [nodes] [-- options of mocha]`. Without a name: all of them.
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../kube/errors.js';
import { buildHoldfast } from '../bed/holdfast/install.js';
import { prepareRealCluster } from '../bed/real-nodes/real-cluster.js';
import { addCounts, closingLine, NO_TESTS, succeeded } from './run/counts.js';
import { e2ePhases, nodePhases } from './run/e2e-phase.js';
import { goTool } from './go-tools.js';
import { type Phase, mochaPhase, runPhase } from './run/phase.js';
import { type PhaseResult, summaryOf } from './run/summary.js';

const MINUTE_MS = 60_000;
/** Tests on a kube-apiserver without KubeVirt. */
const API_TESTS = '!(node_modules|dist|out)/**/*.api.test.ts';
/** All other tests but those of the e2e phase. A list of folders would leave new ones out. */
const UNIT_TESTS = '!(node_modules|dist|out)/**/!(*.api).test.ts';
const HOOKS = './test/run/unhandled-rejections.ts';

/** Only these files: `make unit FILE='kube/*.test.ts'`. */
const FILES = process.env.FILE ? process.env.FILE.split(' ') : undefined;

type Name = 'check' | 'unit' | 'api' | 'e2e' | 'nodes';
/** Phases of one list run at the same time. `unit` uses all cores by itself. */
const ORDER: readonly (readonly Name[])[] = [['check', 'api'], ['unit'], ['e2e'], ['nodes']];

/** @param more options of mocha */
const PHASES: Readonly<Record<Name, (more: readonly string[]) => Phase | Phase[]>> = {
  check: () => ({
    name: 'check',
    command: 'npm',
    args: ['run', '--silent', 'check'],
    limitMs: 10 * MINUTE_MS,
    counts: false,
  }),
  unit: (mochaArgs) => {
    const options = { name: 'unit', timeoutMs: 20_000, limitMs: 20 * MINUTE_MS, hooks: HOOKS, parallel: true };
    return mochaPhase({ ...options, files: FILES ?? [UNIT_TESTS], mochaArgs });
  },
  api: (mochaArgs) => {
    // The first run builds a kube-apiserver.
    const options = { name: 'api', timeoutMs: 20_000, limitMs: 20 * MINUTE_MS, hooks: HOOKS };
    return mochaPhase({ ...options, files: FILES ?? [API_TESTS], mochaArgs });
  },
  e2e: (mochaArgs) => e2ePhases({ name: 'e2e', files: FILES, limitMs: 45 * MINUTE_MS, mochaArgs }),
  nodes: (mochaArgs) =>
    FILES || process.env.NODES === 'real' ? [] : nodePhases({ name: 'nodes', limitMs: 10 * MINUTE_MS, mochaArgs }),
};

function choose(args: readonly string[]): Phase[][] {
  const dashes = args.includes('--') ? args.indexOf('--') : args.length;
  const names = args.slice(0, dashes);
  const unknown = names.filter((name) => !(name in PHASES));
  if (unknown.length > 0)
    throw new TypeError(`no phase "${unknown.join('", "')}"; there are: ${Object.keys(PHASES).join(', ')}`);
  const isChosen = (name: Name) => names.length === 0 || names.includes(name);
  const more = args.slice(dashes + 1);
  return ORDER.map((list) => list.filter(isChosen).flatMap((name) => PHASES[name](more)));
}

async function run(phase: Phase): Promise<PhaseResult> {
  console.log(`\n=== ${phase.name}`);
  return report(await runPhase(phase, interrupt.signal));
}

/** Runs a phase, and shows its output after that of another one that runs at the same time. */
async function runBeside(phase: Phase, other: Promise<unknown>): Promise<PhaseResult> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-test-'));
  const path = join(folder, 'output');
  const file = await open(path, 'w');
  try {
    const result = await runPhase(phase, interrupt.signal, file.fd);
    await other;
    console.log(`\n=== ${phase.name}`);
    process.stdout.write(await readFile(path));
    return report(result);
  } finally {
    await file.close();
    await rm(folder, { recursive: true });
  }
}

function report(result: PhaseResult): PhaseResult {
  const { name, durationMs, counts } = result;
  console.log(`=== ${name}: ${(durationMs / 1000).toFixed(0)} s, ${closingLine(counts)}`);
  return result;
}

/** Builds and downloads what phases cannot. @returns those that can run */
async function prepared(phases: readonly Phase[]): Promise<readonly Phase[]> {
  const has = (variable: string) => phases.some(({ env }) => env?.[variable] !== undefined);
  if (has('BED_IS_BUILT')) await buildHoldfast();
  if (!has('BED_NODES')) return phases;
  const progress = (line: string) => console.log(`  ${line}`);
  try {
    await prepareRealCluster(progress, has('BED_GUESTS'));
    await goTool('helm', progress);
    return phases;
  } catch (error) {
    console.log(`Stories on real nodes are not run: their programs are missing. ${messageOf(error)}`);
    return phases.filter(({ env }) => env?.BED_NODES === undefined);
  }
}

const interrupt = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupt.abort());

const results: PhaseResult[] = [];
for (const phases of choose(process.argv.slice(2))) {
  if (interrupt.signal.aborted) break;
  const [first, ...others] = await prepared(phases);
  if (first === undefined) continue;
  const shown = run(first);
  results.push(...(await Promise.all([shown, ...others.map((phase) => runBeside(phase, shown))])));
}
const total = results.map(({ counts }) => counts).reduce(addCounts, NO_TESTS);
console.log(`\n${summaryOf(results).join('\n')}\n\n${closingLine(total)}`);
process.exitCode = succeeded(total) && !interrupt.signal.aborted ? 0 : 1;
