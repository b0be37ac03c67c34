/** Runs for each item, at most `width` at a time; `run` does not reject. Takes no new item once the signal aborts. */
export async function inParallel<T>(
  items: readonly T[],
  width: number,
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
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, work));
}
