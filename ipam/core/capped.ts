const MOST = BigInt(Number.MAX_SAFE_INTEGER);

/** A count as a number, at most 2^53 - 1: beyond it a JSON number is not what was meant. */
export function capped(count: bigint): number {
  return Number(count > MOST ? MOST : count);
}
