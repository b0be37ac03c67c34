/** Returns the last index for which the test is true, or -1. The test must be true up to some index and false after it. */
export function lastIndexWhere<T>(list: readonly T[], test: (element: T) => boolean): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    // middle is always within the list
    if (test(list[middle] as T)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
