const DURATION = /^(\d{1,6}(h|ms|m|s))+$/;
const COMPONENT = /(\d+)(h|ms|m|s)/g;
const UNITS_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/**
 * Parses a metav1.Duration in hours, minutes, seconds and milliseconds, like `24h` or `1h30m0s`.
 * @returns milliseconds; undefined if the text is invalid
 */
export function parseDuration(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit = ''] of text.matchAll(COMPONENT))
    total += Number(amount) * (UNITS_MS[unit] ?? Number.NaN);
  return total;
}
