import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { addCounts, NO_TESTS } from './counts.js';
import type { PhaseResult, ResultOfTests } from './summary.js';

/** A child process that checks something. */
export interface Phase {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** More variables of the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** After this the phase has failed and is ended. */
  readonly limitMs: number;
  /** Whether the child is mocha with CountingReporter; otherwise the whole phase counts as one test. */
  readonly counts: boolean;
}

const PASSED: ResultOfTests = { counts: { ...NO_TESTS, passed: 1 }, slowest: [], failures: [] };
const FAILED: ResultOfTests = {
  counts: { ...NO_TESTS, failed: 1 },
  slowest: [],
  failures: ['it ended badly: see its output'],
};
/** What a child gets to clean up in after an interrupt. */
const CLEANUP_MS = 60_000;

const MOCHA = [
  '--import=tsx',
  'node_modules/mocha/bin/mocha.js',
  '--forbid-only',
  '--reporter=./test/run/reporter.ts',
  '--require=./test/run/test-libraries.ts',
];

type Output = 'inherit' | 'ignore' | number;

export interface MochaPhaseOptions {
  readonly name: string;
  /** Files or globs. */
  readonly files: readonly string[];
  readonly timeoutMs: number;
  readonly limitMs: number;
  /** A file of root hooks. */
  readonly hooks?: string | undefined;
  /** Whether files may run at the same time, in as many processes as there are cores. */
  readonly parallel?: boolean;
  /** For mocha, as they are. */
  readonly mochaArgs?: readonly string[];
}

export function mochaPhase(options: MochaPhaseOptions): Phase {
  const { name, files, timeoutMs, limitMs, hooks, parallel = false, mochaArgs = [] } = options;
  const required = hooks === undefined ? [] : [`--require=${hooks}`];
  const jobs = parallel ? ['--parallel', `--jobs=${availableParallelism()}`] : [];
  const args = [...MOCHA, `--timeout=${timeoutMs}`, ...required, ...jobs, ...mochaArgs, ...files];
  return { name, command: process.execPath, args, limitMs, counts: true };
}

/**
 * Runs a phase. A child that ends badly without a failed test, or without having counted, counts as one failure.
 * @param output whether the output of the child is shown or dropped, or the file descriptor that it is written to
 */
export async function runPhase(phase: Phase, interrupt: AbortSignal, output: Output = 'inherit'): Promise<PhaseResult> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-test-'));
  const path = join(folder, 'result.json');
  const started = performance.now();
  try {
    const args = phase.counts ? [...phase.args, `--reporter-option=result=${path}`] : phase.args;
    const succeeded = await runChild({ ...phase, args }, interrupt, output);
    const result = { name: phase.name, durationMs: performance.now() - started };
    if (!phase.counts) return { ...result, ...(succeeded ? PASSED : FAILED) };
    const read = await readResult(path);
    const isToldByCounts = succeeded || read.counts.failed > 0;
    return { ...result, ...(isToldByCounts ? read : withFailure(read)) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @returns one failure if the child ended before its tests */
async function readResult(path: string): Promise<ResultOfTests> {
  return existsSync(path) ? (JSON.parse(await readFile(path, 'utf8')) as ResultOfTests) : FAILED;
}

function withFailure({ counts, failures, slowest }: ResultOfTests): ResultOfTests {
  return { counts: addCounts(counts, FAILED.counts), failures: [...failures, ...FAILED.failures], slowest };
}

/** @returns whether the child ended by itself, in time and successfully */
function runChild(phase: Phase, interrupt: AbortSignal, output: Output): Promise<boolean> {
  const { command, args, env, limitMs, name } = phase;
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', output, output], env: { ...process.env, ...env } });
    let inTime = true;
    let grace: NodeJS.Timeout | undefined;
    const end = () => {
      inTime = false;
      child.kill('SIGINT');
      grace = setTimeout(() => child.kill('SIGKILL'), CLEANUP_MS);
    };
    const limit = setTimeout(() => {
      process.stderr.write(`\n${name}: not done after ${limitMs / 1000} s: ended\n`);
      end();
    }, limitMs);
    if (interrupt.aborted) end();
    else interrupt.addEventListener('abort', end, { once: true });
    const finish = (code: number | null) => {
      clearTimeout(limit);
      clearTimeout(grace);
      interrupt.removeEventListener('abort', end);
      resolve(inTime && code === 0);
    };
    child.once('error', (error) => {
      process.stderr.write(`${name}: ${error.message}\n`);
      finish(null);
    });
    child.once('exit', finish);
  });
}
