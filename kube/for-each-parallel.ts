/** Calls `run`, which does not reject, for each item, at most `width` at a time. Takes no new item after the signal aborts. */
export async function forEachParallel<T>(
  items: readonly T[],
  concurrency: number,
  run: (item: T) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const left = items.values();
  const work = async () => {
    for (const item of left) {
      if (signal?.aborted) return;
      await run(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work));
}
