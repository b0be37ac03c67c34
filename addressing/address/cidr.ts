import { describeValue } from '../../api/json.js';
import {
  type Address,
  AddressError,
  BITS,
  type Family,
  formatAddress,
  formatFamily,
  parseAddress,
  parsePrefixLength,
} from './address.js';
import { type Range, RangeSet } from './ranges.js';

/** A network: all addresses that share the first `prefixLength` bits of `base`. Its other bits are 0. */
export interface Cidr {
  readonly family: Family;
  readonly base: bigint;
  readonly prefixLength: number;
}

/**
 * Parses `10.0.0.0/24`. Host bits are rejected, because it is unclear whether their author meant the network or one address.
 * @throws {AddressError}
 */
export function parseCidr(text: string): Cidr {
  const slash = text.indexOf('/');
  if (slash === -1) {
    throw new AddressError(
      `${describeValue(text)} is not a CIDR: write it with a prefix length, like 10.0.0.0/24 or 2001:db8::/64`,
    );
  }
  const { family, value } = parseAddress(text.slice(0, slash));
  const cidr = networkOf({ family, value }, parsePrefixLength(text, text.slice(slash + 1), family));
  if (cidr.base === value) return cidr;
  throw new AddressError(`${describeValue(text)} has host bits set: write ${formatCidr(cidr)}`);
}

export function formatCidr({ family, base, prefixLength }: Cidr): string {
  return `${formatAddress({ family, value: base })}/${prefixLength}`;
}

/** Returns the network of that prefix length that contains the address. */
export function networkOf({ family, value }: Address, prefixLength: number): Cidr {
  const hostBits = BigInt(BITS[family] - prefixLength);
  return { family, base: (value >> hostBits) << hostBits, prefixLength };
}

export function firstOf(cidr: Cidr): bigint {
  return cidr.base;
}

export function lastOf({ family, base, prefixLength }: Cidr): bigint {
  return base + (1n << BigInt(BITS[family] - prefixLength)) - 1n;
}

export function rangeOf(cidr: Cidr): Range {
  return { first: firstOf(cidr), last: lastOf(cidr) };
}

/** Returns the addresses of all CIDRs of one family. */
export function rangesOf(cidrs: Iterable<Cidr>, family: Family): RangeSet {
  return RangeSet.of([...cidrs].filter((cidr) => cidr.family === family).map(rangeOf));
}

/** True if the two share an address. */
export function overlap(one: Cidr, other: Cidr): boolean {
  if (one.family !== other.family) return false;
  const hostBits = BigInt(BITS[one.family] - Math.min(one.prefixLength, other.prefixLength));
  return one.base >> hostBits === other.base >> hostBits;
}

export function containsAddress(cidr: Cidr, { family, value }: Address): boolean {
  return family === cidr.family && value >= firstOf(cidr) && value <= lastOf(cidr);
}

/**
 * Parses `10.0.0.5`, `10.0.0.0/28` or `10.0.0.5-10.0.0.9`.
 * @throws {AddressError}
 */
export function parseRange(text: string): Range & { readonly family: Family } {
  const dash = text.indexOf('-');
  if (dash !== -1) return parseSpan(text, text.slice(0, dash), text.slice(dash + 1));
  if (!text.includes('/')) {
    const { family, value } = parseAddress(text);
    return { family, first: value, last: value };
  }
  const cidr = parseCidr(text);
  return { family: cidr.family, ...rangeOf(cidr) };
}

function parseSpan(text: string, from: string, to: string): Range & { readonly family: Family } {
  const [first, last] = [parseAddress(from), parseAddress(to)];
  if (first.family !== last.family) {
    throw new AddressError(
      `${describeValue(text)} begins with an ${formatFamily(first.family)} and ends with an ${formatFamily(last.family)} address: write two of one family`,
    );
  }
  if (first.value > last.value) {
    throw new AddressError(`${describeValue(text)} ends before it begins: write ${to}-${from}`);
  }
  return { family: first.family, first: first.value, last: last.value };
}
