import { readdir, readFile } from 'node:fs/promises';
import type { Member } from './fleet.js';

/** Memory and open files of one process at one time. */
export interface Sample {
  readonly name: string;
  readonly pid: number;
  /** In ms. */
  readonly at: number;
  readonly rssMiB: number;
  readonly files: number;
}

export async function sampleUsage({ name, process }: Member): Promise<Sample | undefined> {
  const { pid } = process;
  try {
    const [status, files] = await Promise.all([readFile(`/proc/${pid}/status`, 'utf8'), readdir(`/proc/${pid}/fd`)]);
    const kib = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN);
    return { name, pid, at: Date.now(), rssMiB: kib / 1024, files: files.length };
  } catch {
    return undefined; // it has just ended
  }
}

/** Why memory or files count as flat or growing: over the judged time, the trend adds at most a tenth or this much. */
export const MAX_GROWTH = { rssMiB: 12, files: 5 } as const;
const MAX_GROWTH_SHARE = 0.1;
/** Caches and compiled code grow first. */
const WARM_UP_SHARE = 0.25;
const MIN_SAMPLES = 15;

export interface Trend {
  readonly name: string;
  readonly samples: number;
  readonly first: number;
  readonly median: number;
  readonly highest: number;
  /** By the slope over the judged time; undefined: too few samples of one process. */
  readonly growth: number | undefined;
  readonly isFlat: boolean;
}

/**
 * The trend of one process by the Theil-Sen slope, the median of the slopes between all pairs of samples, which outliers do not move. The first
 * quarter is left out. A process that was restarted has no trend.
 */
export function trendOf(samples: readonly Sample[], value: 'rssMiB' | 'files'): Trend {
  const values = samples.map((sample) => sample[value]);
  const judged = samples.slice(Math.floor(samples.length * WARM_UP_SHARE));
  const isOne = new Set(samples.map(({ pid }) => pid)).size === 1;
  const growth = isOne && judged.length >= MIN_SAMPLES ? growthOf(judged, value) : undefined;
  const middle = median(values);
  const allowed = Math.max(MAX_GROWTH[value], middle * MAX_GROWTH_SHARE);
  return {
    name: samples[0]?.name ?? '',
    samples: samples.length,
    first: values[0] ?? 0,
    median: middle,
    highest: Math.max(...values),
    growth,
    isFlat: growth === undefined || growth <= allowed,
  };
}

function growthOf(samples: readonly Sample[], value: 'rssMiB' | 'files'): number {
  const slopes = samples.flatMap((first, index) =>
    samples.slice(index + 1).map((second) => (second[value] - first[value]) / (second.at - first.at)),
  );
  return median(slopes) * (samples.at(-1)!.at - samples[0]!.at);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return 0;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
