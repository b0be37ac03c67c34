import { shortHash } from '../../api/hash.js';
import type { Address } from './address.js';

const MAX_NAME = 253;
const MAX_LABEL = 63;
/** Eight groups of four hex digits, and the dashes between them. */
const IPV6_LABEL = 39;
/** What every address of the space leaves it: an address space has one spelling. */
const MAX_SPACE = MAX_NAME - 1 - IPV6_LABEL;
/** Tenants name networks: more digits than a name that is only to be told apart by eye. */
const HASH_DIGITS = 16;
const DNS_1123_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const HASH_SUFFIX = new RegExp(`(^|-)[0-9a-f]{${String(HASH_DIGITS)}}$`);

/**
 * The name of the lease of an address, and so the lock on it: `blue.10-1-0-17`, IPv6 in full: `blue.2001-0db8-…-0005`.
 * No two pairs share one: the last label is the address, and what is before it the space.
 */
export function leaseName(addressSpace: string, address: Address): string {
  return `${addressSpacePart(addressSpace)}.${addressLabel(address)}`;
}

/** The space itself, or a hash of it where it is no valid name, too long, or could be read as another one's hash. */
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
    // the last one is to have room for the hash
    .map((label) => trimLabel(label.slice(0, MAX_LABEL - HASH_DIGITS - 1)))
    .filter((label) => label !== '');
  const head = trimLabel(labels.join('.').slice(0, maxLength - HASH_DIGITS - 1));
  return head === '' ? hash : `${head}-${hash}`;
}

function trimLabel(label: string): string {
  return label.replace(/^[-.]+|[-.]+$/g, '');
}

/** `10-1-0-17`; IPv6 in full: eight groups of four digits. */
export function addressLabel({ family, value }: Address): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join('-');
  const digits = value.toString(16).padStart(32, '0');
  return digits.replace(/.{4}(?=.)/g, '$&-');
}
