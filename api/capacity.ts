import { hashedLabelValue, labelValue, looksHashed } from './ipam-claim.js';
import { CAPACITY_PREFIX } from './names.js';

/**
 * The extended resource of a pool, as nodes show it and pods ask for it: one for each address. A qualified name has at most 63
 * characters after its slash: a longer name of a pool is cut and hashed, and so is one that could be read as another one's hash.
 */
export function capacityResource(pool: string): string {
  return `${CAPACITY_PREFIX}${looksHashed(pool) ? hashedLabelValue(pool) : labelValue(pool)}`;
}

export function isCapacityResource(name: string): boolean {
  return name.startsWith(CAPACITY_PREFIX);
}

/** A whole number of an extended resource. Undefined for what is none: the API server takes no other. */
export function readQuantity(value: unknown): number | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string') return undefined;
  const { amount = '', unit = '', exponent = '0' } = QUANTITY.exec(text)?.groups ?? {};
  return amount === '' ? undefined : Number(amount) * (UNITS[unit] ?? 1) * 10 ** Number(exponent);
}

/** As the API server writes it: 2000 as 2k, but 2e3 and 2Ki stay as they are. */
const QUANTITY = /^(?<amount>\d{1,15})(?:(?<unit>[kMGTPE]|[KMGTPE]i)|[eE]\+?(?<exponent>\d{1,2}))?$/;
const UNITS: Readonly<Record<string, number>> = Object.fromEntries(
  ['k', 'M', 'G', 'T', 'P', 'E'].flatMap((unit, index): [string, number][] => [
    [unit, 1000 ** (index + 1)],
    [`${unit.toUpperCase()}i`, 1024 ** (index + 1)],
  ]),
);
