/**
 * Orders things of several namespaces so that a limit, wherever it cuts the list, is fair: no namespace lacks something while another one has more
 * than it, by more than one thing. Of one namespace, the first things stay the first.
 * @param sizeOf what counts against the limit
 */
export function fairOrder<T>(
  things: readonly T[],
  namespaceOf: (thing: T) => string,
  sizeOf: (thing: T) => number = () => 1,
): T[] {
  const used = new Map<string, number>();
  const ends = things.map((thing) => {
    const namespace = namespaceOf(thing);
    const end = (used.get(namespace) ?? 0) + sizeOf(thing);
    used.set(namespace, end);
    return { thing, end };
  });
  return ends.sort((a, b) => a.end - b.end).map(({ thing }) => thing);
}
