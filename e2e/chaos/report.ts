import { type FaultKind, RANDOM_FAULT_KINDS } from './plan.js';
import { SERVICE_NAMES, type Service } from './prober.js';
import { type Sample, type Trend, trendOf } from './usage.js';

/** One fault, or a time without one. */
export interface FaultRecord {
  readonly kind: FaultKind | 'none';
  readonly target: string;
  readonly startedAt: number;
  readonly endedAt: number;
  /** From the end of the fault until everything was served. */
  readonly recoveredAt: number | undefined;
  /** The longest wait, in ms. */
  readonly waits: Readonly<Record<Service, number>>;
  readonly failedAdmissions: number;
}

export interface Report {
  readonly seed: number;
  readonly minutes: number;
  readonly machine: string;
  readonly faults: readonly FaultRecord[];
  readonly actions: Readonly<Record<string, number>>;
  readonly counts: { readonly events: number; readonly releases: number; readonly launchers: number };
  readonly admissions: number;
  readonly settled: number;
  readonly violations: readonly string[];
  readonly leaks: readonly string[];
  readonly unfinished: readonly string[];
  readonly samples: readonly Sample[];
}

export function isClean(report: Report): boolean {
  return findings(report).length === 0;
}

/** Everything that must not be. */
export function findings(report: Report): string[] {
  const grown = trends(report).filter(({ rss, files }) => !rss.isFlat || !files.isFlat);
  return [
    ...report.violations,
    ...report.leaks,
    ...report.unfinished,
    ...grown.map(({ rss }) => `memory or open files of ${rss.name} grow`),
  ];
}

/** The report as Markdown. */
export function markdown(report: Report): string {
  const { seed, minutes, machine, actions, counts, admissions, settled } = report;
  const done = Object.entries(actions).map(([kind, count]) => `${String(count)} × ${kind}`);
  return [
    `Seed ${String(seed)}, ${minutes.toFixed(0)} minutes, ${machine}.`,
    '',
    `- ${String(report.faults.filter(({ kind }) => kind !== 'none').length)} faults; ${String(admissions)} admissions of launchers`,
    ...done.map((one) => `- ${one}`),
    `- ${String(counts.events)} changes of claims and leases, ${String(counts.launchers)} launchers and ${String(counts.releases)} releases observed`,
    `- ${String(settled)} full checks of claims, leases and interfaces while nothing changed`,
    '',
    faultTable(report),
    '',
    trendTable(report),
    '',
    ...verdict(report),
  ].join('\n');
}

function verdict(report: Report): string[] {
  const parts = [
    ['violations of invariants', report.violations],
    ['leaks', report.leaks],
    ['actions and faults that did not end in time', report.unfinished],
  ] as const;
  return parts.flatMap(([what, found]) => [
    `${String(found.length)} ${what}${found.length === 0 ? '' : ':'}`,
    ...found.slice(0, 20).map((line) => `  - ${line}`),
  ]);
}

/** Times without service: the median and the longest of all faults of a kind, in seconds. */
function faultTable({ faults }: Report): string {
  const rows = (['none', ...RANDOM_FAULT_KINDS, 'clock stepped'] as const).flatMap((kind) => {
    const some = faults.filter((fault) => fault.kind === kind);
    if (some.length === 0) return [];
    const waits = SERVICE_NAMES.map((service) => {
      const sorted = some.map((fault) => fault.waits[service]).sort((a, b) => a - b);
      return `${seconds(sorted[sorted.length >> 1]!)} / ${seconds(sorted.at(-1)!)}`;
    });
    const failed = some.reduce((sum, fault) => sum + fault.failedAdmissions, 0);
    return [[kind, String(some.length), ...waits, String(failed)]];
  });
  return table(['fault', 'times', ...SERVICE_NAMES.map((name) => `${name} (s)`), 'failed admissions'], rows);
}

function trends({ samples }: Report): { rss: Trend; files: Trend }[] {
  const names = [...new Set(samples.map(({ name }) => name))];
  return names.map((name) => {
    const own = samples.filter((sample) => sample.name === name);
    return { rss: trendOf(own, 'rssMiB'), files: trendOf(own, 'files') };
  });
}

function trendTable(report: Report): string {
  const rows = trends(report).map(({ rss, files }) => [
    rss.name,
    String(new Set(report.samples.filter(({ name }) => name === rss.name).map(({ pid }) => pid)).size),
    `${rss.first.toFixed(0)} / ${rss.median.toFixed(0)} / ${rss.highest.toFixed(0)}`,
    growthText(rss),
    `${files.first.toFixed(0)} / ${files.median.toFixed(0)} / ${files.highest.toFixed(0)}`,
    growthText(files),
  ]);
  return table(
    ['process', 'starts', 'RSS first / median / highest (MiB)', 'trend', 'files first / median / highest', 'trend'],
    rows,
  );
}

function growthText({ growth, isFlat }: Trend): string {
  if (growth === undefined) return '–';
  return `${growth >= 0 ? '+' : '−'}${Math.abs(growth).toFixed(1)}${isFlat ? '' : ' GROWS'}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1);
}
