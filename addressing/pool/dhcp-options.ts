import type { GuestDhcpOption } from '../../api/address-pool.js';
import { describeValue, isRecord } from '../../api/json.js';
import { GUEST_LIMITS } from '../../api/limits.js';
import { parseAddress, parseIfValid } from '../address/address.js';
import type { FieldValue, PoolProblems } from './pool-problems.js';

/** An option of DHCP as it is sent. */
export interface DhcpOption {
  readonly code: number;
  /** In hexadecimal. */
  readonly value: string;
}

/** Options of DHCPv4 that responders compute from other fields or from the message: `isPoolOption` of `guest/packets/validation.go`. */
const COMPUTED = new Set([3, 6, 12, 15, 26, 42, 60, 61, 81, 82, 97, 119, 121, 249]);
/** The same of DHCPv6: `validateOptions6` of that file. */
const COMPUTED6 = new Set([23, 24, 25, 26, 31, 32, 39, 56, 59, 60]);

/** The codes that are free, and the family of addresses in values. */
const PROTOCOLS = {
  4: { first: 2, last: 254, isComputed: (code: number) => COMPUTED.has(code) || (code >= 50 && code <= 59) },
  6: { first: 17, last: 65_535, isComputed: (code: number) => COMPUTED6.has(code) || (code > 17 && code <= 20) },
} as const;

/** Encodes a value; undefined if it is not of the type. */
const ENCODERS = new Map<unknown, (text: string, family: 4 | 6) => Buffer | undefined>(
  Object.entries({
    addresses: encodeAddresses,
    hex: (text: string) => (/^([0-9a-f]{2}){1,255}$/.test(text) ? Buffer.from(text, 'hex') : undefined),
    text: (text: string) => (/^[ -~]{1,255}$/.test(text) ? Buffer.from(text) : undefined),
    uint8: (text: string) => encodeInteger(text, 1),
    uint16: (text: string) => encodeInteger(text, 2),
    uint32: (text: string) => encodeInteger(text, 4),
  } satisfies Record<GuestDhcpOption['type'], (text: string, family: 4 | 6) => Buffer | undefined>),
);

/** Parses `spec.guest.dhcp.options` or `optionsV6`. Never throws; adds what is invalid to the problems. */
export function readDhcpOptions(
  { field, value }: FieldValue<unknown>,
  family: 4 | 6,
  problems: PoolProblems,
): DhcpOption[] {
  const { first, last, isComputed } = PROTOCOLS[family];
  const isFree = (code: unknown): code is number =>
    typeof code === 'number' && Number.isInteger(code) && code >= first && code <= last && !isComputed(code);
  const options = new Map<number, DhcpOption>();
  let length = 0;
  for (const place of problems.readList(field, value, GUEST_LIMITS.dhcpOptions)) {
    const { code, type, value: text } = isRecord(place.value) ? place.value : {};
    const encoded = typeof text === 'string' ? ENCODERS.get(type)?.(text, family) : undefined;
    if (!isFree(code))
      problems.add(`${place.field}.code`, `${describeValue(code)} is not a code from ${first} to ${last} that is free`);
    else if (options.has(code)) problems.add(place.field, `has the code ${code} of another option: remove one of them`);
    else if (encoded === undefined)
      problems.add(`${place.field}.value`, `${describeValue(text)} is not of the type ${describeValue(type)}`);
    else options.set(code, { code, value: encoded.toString('hex') });
    length += typeof text === 'string' ? text.length : 0;
  }
  if (length > GUEST_LIMITS.dhcpOptionText)
    problems.add(field, `the values have ${length} characters, more than ${GUEST_LIMITS.dhcpOptionText}: remove some`);
  return [...options.values()];
}

function encodeAddresses(text: string, family: 4 | 6): Buffer | undefined {
  const bits = family === 4 ? 32 : 128;
  const parts = text.split(',');
  const addresses =
    parts.length * (bits / 8) > 255 ? [] : parts.flatMap((part) => parseIfValid(parseAddress, part) ?? []);
  if (addresses.length < parts.length || addresses.some((each) => each.family !== family)) return undefined;
  const digits = addresses.map(({ value }) => value.toString(16).padStart(bits / 4, '0'));
  return Buffer.from(digits.join(''), 'hex');
}

function encodeInteger(text: string, bytes: number): Buffer | undefined {
  if (!/^(0|[1-9]\d{0,9})$/.test(text) || Number(text) >= 256 ** bytes) return undefined;
  const encoded = Buffer.alloc(bytes);
  encoded.writeUIntBE(Number(text), 0, bytes);
  return encoded;
}
