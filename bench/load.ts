export interface LoadResult {
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  seconds: number;
}

/**
 * Runs an operation `count` times from `concurrency` workers, each of which starts its next when the last is done.
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
  latencies.sort((a, b) => a - b);
  const percentile = (part: number) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * part))] ?? 0;
  return { perSecond: count / seconds, p50Ms: percentile(0.5), p99Ms: percentile(0.99), seconds };
}
