const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** A count as a number, at most 2^53 - 1: beyond it a JSON number is not what was meant. */
export function toSafeNumber(count: bigint): number {
  return Number(count > MAX_SAFE ? MAX_SAFE : count);
}
