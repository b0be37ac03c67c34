/** Levels shares: reduces the largest and raises the smallest. */

export interface ReduceOptions {
  /** A share is not reduced below this value. */
  floor: (name: string) => number;
  isReduced: (name: string) => boolean;
}

/** Reduces shares until their sum is at most the limit, if their floors allow it. Reduces first the shares that are most above their floor. */
export function reduceShares(shares: Map<string, number>, limit: number, { floor, isReduced }: ReduceOptions): void {
  let excess = [...shares.values()].reduce((sum, share) => sum + share, 0) - limit;
  if (excess <= 0) return;
  const room = new Map<string, number>();
  for (const [name, share] of shares) if (isReduced(name) && share > floor(name)) room.set(name, share - floor(name));
  const level = lowestLevel([...room.values()], excess);
  // first everything above the level, then single addresses
  for (const [name, above] of largestFirst(room)) {
    const less = Math.min(excess, Math.max(0, above - level));
    shares.set(name, (shares.get(name) ?? 0) - less);
    room.set(name, above - less);
    excess -= less;
  }
  for (const [name, above] of largestFirst(room)) {
    if (excess <= 0) return;
    const less = Math.min(excess, above, 1);
    shares.set(name, (shares.get(name) ?? 0) - less);
    excess -= less;
  }
}

/** @returns the lowest level to which all values can be reduced without removing more than the excess */
function lowestLevel(values: readonly number[], excess: number): number {
  let low = 0;
  let high = Math.max(0, ...values);
  const above = (level: number) => values.reduce((sum, value) => sum + Math.max(0, value - level), 0);
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (above(middle) <= excess) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Distributes the amount among the named shares, to the smallest first, up to a ceiling. */
export function raiseShares(
  shares: Map<string, number>,
  amount: number,
  { names, ceiling }: { names: readonly string[]; ceiling: number },
): void {
  let left = amount;
  if (left <= 0) return;
  const given = new Map(names.map((name) => [name, shares.get(name) ?? 0]));
  const level = highestLevel([...given.values()], left, ceiling);
  for (const [name, share] of [...given].sort(bySmallestShare)) {
    const more = Math.min(left, Math.max(0, Math.min(level, ceiling) - share));
    given.set(name, share + more);
    left -= more;
  }
  for (const [name, share] of [...given].sort(bySmallestShare)) {
    if (left <= 0 || share >= ceiling) break;
    given.set(name, share + 1);
    left -= 1;
  }
  for (const [name, share] of given) shares.set(name, share);
}

/** @returns the highest level to which all values can be raised with the amount */
function highestLevel(values: readonly number[], amount: number, ceiling: number): number {
  let low = 0;
  let high = ceiling;
  const below = (level: number) => values.reduce((sum, value) => sum + Math.max(0, level - value), 0);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (below(middle) <= amount) low = middle;
    else high = middle - 1;
  }
  return low;
}

function largestFirst(room: ReadonlyMap<string, number>): [string, number][] {
  return [...room].sort(([aName, a], [bName, b]) => b - a || (aName < bName ? -1 : 1));
}

function bySmallestShare([aName, a]: [string, number], [bName, b]: [string, number]): number {
  return a - b || (aName < bName ? -1 : 1);
}
