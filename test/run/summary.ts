import { type TestCounts, closingLine } from './counts.js';

/** A test, or a hook of its suite, with the time that it took. */
export interface TimedTitle {
  readonly title: string;
  readonly ms: number;
}

export interface PhaseResult {
  readonly name: string;
  readonly durationMs: number;
  readonly counts: TestCounts;
  /** The slowest first. */
  readonly slowest: readonly TimedTitle[];
}

const SLOWEST = 10;

/** @returns the slowest of the titles, the slowest first */
export function slowestOf<T extends TimedTitle>(titles: readonly T[]): T[] {
  return [...titles].sort((a, b) => b.ms - a.ms).slice(0, SLOWEST);
}

/** The lines that end a run, before the closing line: the time of each phase, and the slowest titles of all phases. */
export function summaryOf(results: readonly PhaseResult[]): string[] {
  const row = (ms: number, fraction: number, text: string) => `${(ms / 1000).toFixed(fraction).padStart(7)} s  ${text}`;
  const phases = results.map(({ name, durationMs, counts }) => row(durationMs, 0, `${name}: ${closingLine(counts)}`));
  const titles = results.flatMap(({ name, slowest }) => slowest.map(({ title, ms }) => ({ title, ms, name })));
  const slowest = slowestOf(titles).map(({ title, ms, name }) => row(ms, 1, `${name}: ${title}`));
  return ['Phases:', ...phases, ...(slowest.length > 0 ? ['Slowest tests and hooks:', ...slowest] : [])];
}
