import type { Cidr } from './cidr.js';
import { addressLabel, addressSpacePart } from './lease-name.js';

/** Leaves room for a dot, an IPv6 address in full (39 characters), a dash and a prefix length. */
const MAX_POOL = 253 - 1 - 39 - 4;

/** The name of the block of a slice, and so the lock on it: `blue.10-1-0-64-26`. No two slices of pools share one. */
export function blockName(pool: string, { family, base, prefixLength }: Cidr): string {
  return `${addressSpacePart(pool, MAX_POOL)}.${addressLabel({ family, value: base })}-${prefixLength}`;
}
