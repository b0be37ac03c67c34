/** Groups items by a key, or by several. Keys and items keep their order. */
export function groupBy<T, K extends string>(items: Iterable<T>, keysOf: (item: T) => K | readonly K[]): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const keys = keysOf(item);
    for (const key of typeof keys === 'string' ? [keys] : keys) {
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [item]);
      else group.push(item);
    }
  }
  return groups;
}
