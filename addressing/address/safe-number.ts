const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** Converts a count to a number, at most 2^53 - 1, because larger JSON numbers are not exact. */
export function toSafeNumber(count: bigint): number {
  return Number(count > MAX_SAFE ? MAX_SAFE : count);
}
