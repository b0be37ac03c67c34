import { type TestCounts, closingLine } from './counts.js';

/** A test, or a hook of its suite, with the time that it took. */
export interface TimedTitle {
  readonly title: string;
  readonly ms: number;
}

export interface ResultOfTests {
  readonly counts: TestCounts;
  /** The slowest first. */
  readonly slowest: readonly TimedTitle[];
  /** Titles of failed tests and hooks, each with the first line of its error. */
  readonly failures: readonly string[];
}

export interface PhaseResult extends ResultOfTests {
  readonly name: string;
  readonly durationMs: number;
}

const SLOWEST = 10;
/** The closing lines of a run stay in sight. */
const SHOWN_FAILURES = 20;

/** @returns the slowest of the titles, the slowest first */
export function slowestOf<T extends TimedTitle>(titles: readonly T[]): T[] {
  return [...titles].sort((a, b) => b.ms - a.ms).slice(0, SLOWEST);
}

/**
 * The lines that end a run, before the closing line: the time of each phase, the slowest titles of all phases, and what failed.
 * So the end of a long output is enough to see which tests failed.
 */
export function summaryOf(results: readonly PhaseResult[]): string[] {
  const row = (ms: number, fraction: number, text: string) => `${(ms / 1000).toFixed(fraction).padStart(7)} s  ${text}`;
  const phases = results.map(({ name, durationMs, counts }) => row(durationMs, 0, `${name}: ${closingLine(counts)}`));
  const titles = results.flatMap(({ name, slowest }) => slowest.map(({ title, ms }) => ({ title, ms, name })));
  const slowest = slowestOf(titles).map(({ title, ms, name }) => row(ms, 1, `${name}: ${title}`));
  const failures = results.flatMap(({ name, failures }) => failures.map((failure) => `  ${name}: ${failure}`));
  const more = failures.length - SHOWN_FAILURES;
  return [
    ...['Phases:', ...phases],
    ...under('Slowest tests and hooks:', slowest),
    ...under('Failed:', failures.slice(0, SHOWN_FAILURES)),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}

function under(heading: string, lines: readonly string[]): string[] {
  return lines.length > 0 ? [heading, ...lines] : [];
}
