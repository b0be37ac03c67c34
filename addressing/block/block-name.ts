import type { Cidr } from '../address/cidr.js';
import { addressLabel, addressSpacePart } from '../lease/lease-name.js';

/** Leaves room for a dot, a full IPv6 address (39 characters), a dash and a prefix length. */
const MAX_POOL = 253 - 1 - 39 - 4;

/** Returns the name of a slice's block, which is the lock on the slice: `blue.10-1-0-64-26`. No two slices have the same name. */
export function blockName(pool: string, { family, base, prefixLength }: Cidr): string {
  return `${addressSpacePart(pool, MAX_POOL)}.${addressLabel({ family, value: base })}-${prefixLength}`;
}
