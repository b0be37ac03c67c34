import { describeValue } from '../../api/json.js';
import { AddressError, BITS, formatAddress, parseAddress, parsePrefixLength } from './address.js';
import type { Address, Family } from './address.js';
import { type Range, RangeSet } from './ranges.js';

/** A network's addresses: all that share the first `prefixLength` bits of `base`, whose other bits are 0. */
export interface Cidr {
  readonly family: Family;
  readonly base: bigint;
  readonly prefixLength: number;
}

/**
 * Reads `10.0.0.0/24`. Host bits are refused, for who wrote them meant either less or more than the network.
 * @throws {AddressError}
 */
export function parseCidr(text: string): Cidr {
  const slash = text.indexOf('/');
  if (slash === -1) {
    throw new AddressError(
      `${describeValue(text)} is no CIDR: write it with a prefix length, like 10.0.0.0/24 or 2001:db8::/64`,
    );
  }
  const { family, value } = parseAddress(text.slice(0, slash));
  const cidr = networkOf({ family, value }, parsePrefixLength(text, text.slice(slash + 1), family));
  if (cidr.base === value) return cidr;
  throw new AddressError(`${describeValue(text)} has bits set beyond its prefix length: write ${formatCidr(cidr)}`);
}

export function formatCidr({ family, base, prefixLength }: Cidr): string {
  return `${formatAddress({ family, value: base })}/${prefixLength}`;
}

/** The network of that prefix length in which the address lies. */
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

/** The addresses of those of one family. */
export function rangesOf(cidrs: Iterable<Cidr>, family: Family): RangeSet {
  return RangeSet.of([...cidrs].filter((cidr) => cidr.family === family).map(rangeOf));
}

/** They have an address in common. */
export function overlap(one: Cidr, other: Cidr): boolean {
  return one.family === other.family && firstOf(one) <= lastOf(other) && firstOf(other) <= lastOf(one);
}

export function containsAddress(cidr: Cidr, { family, value }: Address): boolean {
  return family === cidr.family && value >= firstOf(cidr) && value <= lastOf(cidr);
}
