import { labelValue } from './ipam-claim.js';
import { CAPACITY_PREFIX } from './names.js';

/**
 * The extended resource of a pool, as nodes show it and pods ask for it: one for each address. A qualified name has at most 63
 * characters after its slash: a longer name of a pool is cut and hashed.
 */
export function capacityResource(pool: string): string {
  return `${CAPACITY_PREFIX}${labelValue(pool)}`;
}

export function isCapacityResource(name: string): boolean {
  return name.startsWith(CAPACITY_PREFIX);
}

/** A whole number of an extended resource. Undefined for what is none: the API server takes no other. */
export function readQuantity(value: unknown): number | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string') return undefined;
  const { amount = '', unit = '' } = /^(?<amount>\d{1,15})(?<unit>k|M|G)?$/.exec(text)?.groups ?? {};
  return amount === '' ? undefined : Number(amount) * (UNITS[unit] ?? 1);
}

/** The API server writes 2000 as 2k. */
const UNITS: Readonly<Record<string, number>> = { k: 1e3, M: 1e6, G: 1e9 };
