/** Percentiles of latencies. */
export interface Percentiles {
  p50Ms: number;
  p95Ms: number;
  p99Ms: number;
}

export interface LoadResult extends Percentiles {
  perSecond: number;
  seconds: number;
}

/**
 * Runs an operation `count` times with `concurrency` parallel workers.
 * @param operation gets the number of the run, from 0
 */
export async function runLoad(
  operation: (n: number) => Promise<void>,
  { count, concurrency }: { count: number; concurrency: number },
): Promise<LoadResult> {
  const latencies: number[] = [];
  let next = 0;
  const began = performance.now();
  const worker = async () => {
    while (next < count) {
      const n = next++;
      const start = performance.now();
      await operation(n);
      latencies.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const seconds = (performance.now() - began) / 1000;
  return { perSecond: count / seconds, seconds, ...percentilesOf(latencies) };
}

/** @param latencies in ms, in any order */
export function percentilesOf(latencies: readonly number[]): Percentiles {
  return { p50Ms: percentile(latencies, 0.5), p95Ms: percentile(latencies, 0.95), p99Ms: percentile(latencies, 0.99) };
}

/** @param share 0.99: one of a hundred values is greater */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
