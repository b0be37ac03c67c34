import { describeValue } from '../../api/json.js';

const UNITS_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const DURATION = /^(\d{1,18}(\.\d{1,18})?(ns|us|µs|ms|s|m|h))+$/;
const PART = /([\d.]+)([a-zµ]+)/g;
/** Go counts a duration's nanoseconds in 63 bits: what is longer, no Go program can read. */
const LONGEST_MS = 2 ** 63 / 1e6;

/**
 * Reads a duration as metav1.Duration writes it, like `24h` or `1h30m0s`; none that is negative.
 * @returns whole milliseconds
 * @throws {TypeError} which says what is allowed
 */
export function parseDuration(text: string): number {
  let total = 0;
  for (const [, amount, unit = ''] of text.matchAll(PART)) total += Number(amount) * (UNITS_MS[unit] ?? Number.NaN);
  if (text === '0') return 0;
  if (DURATION.test(text) && total < LONGEST_MS) return Math.round(total);
  throw new TypeError(`${describeValue(text)} is no duration: write it like 24h, 90m or 1h30m`);
}
