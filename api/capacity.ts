import { hashedLabelValue, labelValue, looksHashed } from './ipam-claim.js';
import { CAPACITY_PREFIX } from './names.js';

/**
 * Returns the extended resource of a pool, which nodes show and pods request: one unit for each address. A qualified name has at most 63
 * characters after its slash. Longer pool names are cut and hashed, and so are names that look like the hash of another one.
 */
export function capacityResource(pool: string): string {
  return `${CAPACITY_PREFIX}${looksHashed(pool) ? hashedLabelValue(pool) : labelValue(pool)}`;
}

export function isCapacityResource(name: string): boolean {
  return name.startsWith(CAPACITY_PREFIX);
}

/** Reads the quantity of an extended resource. Returns undefined for anything but a whole number, which the API server does not accept. */
export function readQuantity(value: unknown): number | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string') return undefined;
  const { amount = '', unit = '', exponent = '0' } = QUANTITY.exec(text)?.groups ?? {};
  return amount === '' ? undefined : Number(amount) * (UNITS[unit] ?? 1) * 10 ** Number(exponent);
}

/** A quantity as the API server writes it: 2000 becomes 2k, but 2e3 and 2Ki stay. */
const QUANTITY = /^(?<amount>\d{1,15})(?:(?<unit>[kMGTPE]|[KMGTPE]i)|[eE]\+?(?<exponent>\d{1,2}))?$/;
const UNITS: Readonly<Record<string, number>> = Object.fromEntries(
  ['k', 'M', 'G', 'T', 'P', 'E'].flatMap((unit, index): [string, number][] => [
    [unit, 1000 ** (index + 1)],
    [`${unit.toUpperCase()}i`, 1024 ** (index + 1)],
  ]),
);
