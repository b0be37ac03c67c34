import type { Random } from '../kube/clock.js';

/** Returns random numbers that are the same in every run (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns a log-normal time, mostly short and sometimes long. @param spread 0: always the median; 1: every sixth exceeds 2.7 medians */
export function skewed(random: Random, median: number, spread: number): number {
  // Box-Muller; 1 − random is never 0
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return median * Math.exp(spread * normal);
}

/** Shuffles in place (Fisher-Yates). */
export function shuffle<T>(items: T[], random: Random): T[] {
  for (let n = items.length - 1; n > 0; n--) {
    const other = Math.floor(random() * (n + 1));
    [items[n], items[other]] = [items[other]!, items[n]!];
  }
  return items;
}
