import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { describeValue } from '../../api/json.js';

export type Family = 4 | 6;

export const FAMILIES: readonly Family[] = [4, 6];

/** An IP address as a number, so that ranges are arithmetic. */
export interface Address {
  readonly family: Family;
  readonly value: bigint;
}

/** The number of bits of an address, by family. */
export const BITS: Readonly<Record<Family, number>> = { 4: 32, 6: 128 };

/** Thrown for text that is not an address, CIDR or range. The message quotes the text and says what to write. */
export class AddressError extends TypeError {
  override readonly name = 'AddressError';
}

/**
 * Parses an address strictly: no zone, no prefix length, and no notation that other parsers read differently (`010.0.0.1` is 8.0.0.1
 * to some).
 * @throws {AddressError}
 */
export function parseAddress(text: string): Address {
  // isIP accepts only complete addresses, but also a zone
  const family = text.includes('%') ? 0 : isIP(text);
  if (family === 4) return { family, value: BigInt(numberOf(text.split('.'))) };
  if (family === 6) return { family, value: valueOf(ipaddr.IPv6.parse(withoutDots(text))) };
  throw new AddressError(`${describeValue(text)} is not an IP address: ${remedyOf(text)}`);
}

/**
 * Parses `10.0.0.5`, or an interface address with the prefix length of its network: `10.0.0.5/24`.
 * @throws {AddressError}
 */
export function parseAddressOrPrefix(text: string): { address: Address; prefixLength?: number } {
  const slash = text.indexOf('/');
  if (slash === -1) return { address: parseAddress(text) };
  const address = parseAddress(text.slice(0, slash));
  return { address, prefixLength: parsePrefixLength(text, text.slice(slash + 1), address.family) };
}

/** Returns the address of a text as {@link parseAddressOrPrefix} reads it; undefined if it is invalid or no text. */
export function readAddress(text: unknown): Address | undefined {
  return typeof text === 'string' ? parseIfValid(parseAddressOrPrefix, text)?.address : undefined;
}

/** Returns what the parser reads; undefined if it throws an {@link AddressError}. */
export function parseIfValid<T>(parse: (text: string) => T, text: string): T | undefined {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof AddressError) return undefined;
    throw error;
  }
}

/**
 * Returns an address about which a user asks. Programs that listen on both families log an IPv4 address as `::ffff:10.0.0.5`, which no pool contains.
 * @throws {AddressError}
 */
export function requireUnmapped(address: Address): Address {
  if (!isMapped(address)) return address;
  const ipv4 = formatAddress({ family: 4, value: address.value & 0xffffffffn });
  throw new AddressError(`"${formatAddress(address)}" is an IPv4 address in the form of IPv6: write ${ipv4}`);
}

/** Returns the addresses of all texts; undefined if one of them is invalid. */
export function readAllAddresses(texts: readonly unknown[]): readonly Address[] | undefined {
  const addresses = texts.map(readAddress);
  return addresses.every((address) => address !== undefined) ? addresses : undefined;
}

/**
 * Parses the digits after the slash.
 * @param whole the text that the message quotes
 * @throws {AddressError}
 */
export function parsePrefixLength(whole: string, digits: string, family: Family): number {
  const length = /^(0|[1-9]\d{0,2})$/.test(digits) ? Number(digits) : Number.NaN;
  if (length <= BITS[family]) return length;
  const remedy = /\s/.test(digits)
    ? 'remove the spaces'
    : `write an integer from 0 to ${BITS[family]} after the / for ${formatFamily(family)}`;
  throw new AddressError(`${describeValue(whole)} has no valid prefix length: ${remedy}`);
}

/** Returns the canonical text: RFC 5952, with mapped addresses as in Go's net/netip (`::ffff:10.0.0.5`). */
export function formatAddress({ family, value }: Address): string {
  if (family === 4) return formatNumber(Number(value));
  if (isMapped({ family, value })) return `::ffff:${formatNumber(Number(value & 0xffff_ffffn))}`;
  const bytes = Array.from({ length: 16 }, (_, i) => Number((value >> BigInt(120 - 8 * i)) & 0xffn));
  return new ipaddr.IPv6(bytes).toRFC5952String();
}

export function formatAddresses(addresses: readonly Address[]): string {
  return addresses.map(formatAddress).join(', ');
}

/** Returns the family as Kubernetes spells it. */
export function formatFamily(family: Family): 'IPv4' | 'IPv6' {
  return family === 4 ? 'IPv4' : 'IPv6';
}

export function sameAddress(a: Address, b: Address): boolean {
  return a.family === b.family && a.value === b.value;
}

/** Sorts IPv4 first, then by value. */
export function compareAddresses(a: Address, b: Address): number {
  return a.family - b.family || (a.value < b.value ? -1 : a.value > b.value ? 1 : 0);
}

/** True for addresses in ::ffff:0:0/96, which many programs read as IPv4. */
function isMapped({ family, value }: Address): boolean {
  return family === 6 && value >> 32n === 0xffffn;
}

function valueOf(address: ipaddr.IPv6): bigint {
  return address.toByteArray().reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

/** @param bytes four */
function numberOf(bytes: readonly string[]): number {
  return bytes.reduce((number, byte) => number * 256 + Number(byte), 0);
}

function formatNumber(number: number): string {
  return `${number >>> 24}.${(number >>> 16) & 255}.${(number >>> 8) & 255}.${number & 255}`;
}

/** Writes a dotted end as two groups, because ipaddr.js reads `::1.2.3.4` as `::ffff:1.2.3.4`. */
function withoutDots(text: string): string {
  const start = text.lastIndexOf(':') + 1;
  if (!text.includes('.')) return text;
  const number = numberOf(text.slice(start).split('.'));
  return `${text.slice(0, start)}${(number >>> 16).toString(16)}:${(number & 0xffff).toString(16)}`;
}

function remedyOf(text: string): string {
  if (text.includes('%')) return 'remove the zone (the % and the text after it)';
  if (text.includes('/')) return 'remove the prefix length (the / and the digits after it)';
  if (text.trim() !== text) return 'remove the spaces';
  if (/^[0-9a-fx.]+$/i.test(text))
    return 'write four decimal numbers from 0 to 255 without leading zeros, like 10.0.0.5';
  return 'write it like 10.0.0.5 or 2001:db8::5';
}
