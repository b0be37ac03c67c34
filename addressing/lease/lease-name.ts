import { MAX_NAME_LENGTH } from '../../api/meta.js';
import { shortHash } from '../../api/names.js';
import type { Address } from '../address/address.js';

const MAX_LABEL = 63;
/** Eight groups of four hex digits, with dashes between them. */
const IPV6_LABEL = 39;
/** The room beside an IPv6 address, for both families: an address space has one spelling. */
const MAX_SPACE = MAX_NAME_LENGTH - 1 - IPV6_LABEL;
/** Tenants choose the names of networks, so this hash has more digits than those that only people compare. */
const HASH_DIGITS = 16;
const DNS_1123_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const HASH_SUFFIX = new RegExp(`(^|-)[0-9a-f]{${String(HASH_DIGITS)}}$`);

/**
 * Returns the name of an address's lease, which is the lock on the address: `blue.10-1-0-17`, or `blue.2001-0db8-…-0005` for IPv6.
 * No two pairs have the same name: the last label is the address, and the text before it is the space.
 */
export function leaseName(addressSpace: string, address: Address): string {
  return `${addressSpacePart(addressSpace)}.${addressLabel(address)}`;
}

/** Returns the space itself, or adds a hash if it is invalid or too long, or if it looks like another space's hash. */
export function addressSpacePart(space: string, maxLength = MAX_SPACE): string {
  const valid = space.length <= maxLength && space.split('.').every((label) => DNS_1123_LABEL.test(label));
  return valid && !HASH_SUFFIX.test(space) ? space : withHash(space, maxLength);
}

function withHash(space: string, maxLength: number): string {
  const hash = shortHash(space, HASH_DIGITS);
  const labels = space
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .split('.')
    // leaves room for the hash in the last label
    .map((label) => trimLabel(label.slice(0, MAX_LABEL - HASH_DIGITS - 1)))
    .filter((label) => label !== '');
  const head = trimLabel(labels.join('.').slice(0, maxLength - HASH_DIGITS - 1));
  return head === '' ? hash : `${head}-${hash}`;
}

function trimLabel(label: string): string {
  return label.replace(/^[-.]+|[-.]+$/g, '');
}

/** Returns an address as a DNS label: `10-1-0-17`; eight groups of four digits for IPv6. */
export function addressLabel({ family, value }: Address): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join('-');
  const digits = value.toString(16).padStart(32, '0');
  return digits.replace(/.{4}(?=.)/g, '$&-');
}
