import { MAX_REQUESTED_ADDRESSES_LENGTH } from '../../../api/limits.js';
import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { describeValue } from '../../../api/json.js';
import {
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_REQUEST_ORIGIN,
  REQUESTED_ADDRESSES_ANNOTATION,
  TEMPLATE_ORIGIN,
} from '../../../api/names.js';
import {
  type Address,
  BITS,
  formatAddress,
  formatFamily,
  parseAddressOrPrefix,
  readAddress,
  sameAddress,
} from '../../../addressing/address/address.js';
import { formatCidr } from '../../../addressing/address/cidr.js';
import { type Pool, subnetOf, withPrefix } from '../../../addressing/pool/pool.js';

/** The texts of addresses in a claim: its request and its status. Other clients may have written both, so any text is possible. */

/** Addresses are IPv4 first, at most one of each family. */
type ClaimRequest =
  | { kind: 'none' }
  | { kind: 'addresses'; addresses: readonly Address[] }
  /** `problem` names the annotation and the value, and says what to do. */
  | { kind: 'invalid'; problem: string };

const EXAMPLE = '["10.0.0.5"]';

/**
 * Reads the annotation. Never throws.
 * @param pools those that may define the prefix lengths; without them, all prefix lengths are accepted
 */
export function readAddressRequest(claim: IPAMClaim, pools: readonly Pool[] = []): ClaimRequest {
  const text = claim.metadata.annotations?.[CLAIM_REQUESTED_ADDRESSES];
  if (text === undefined) return { kind: 'none' };
  const list = parseJsonList(text);
  if (list === undefined) {
    return invalidRequest(
      `${describeValue(text)} is not a list of addresses: write a JSON list like ${EXAMPLE}, or remove it`,
    );
  }
  if (list.length === 0) return invalidRequest(`the list is empty: write one like ${EXAMPLE}, or remove it`);
  const read = parseAddressList(list);
  if (!read.ok) return invalidRequest(`${read.problem}, or remove the annotation`);
  // other requests repeat what a claim showed, with the prefix length of that time
  const isOfTemplate = claim.metadata.annotations?.[CLAIM_REQUEST_ORIGIN] === TEMPLATE_ORIGIN;
  const problem = isOfTemplate ? findWrongPrefix(list, pools) : undefined;
  return problem === undefined ? { kind: 'addresses', addresses: read.addresses } : { kind: 'invalid', problem };
}

function findWrongPrefix(list: readonly unknown[], pools: readonly Pool[]): string | undefined {
  for (const text of list.map(String).filter((each) => each.includes('/'))) {
    const { address, prefixLength } = parseAddressOrPrefix(text);
    const pool = pools.find((candidate) => subnetOf(candidate, address) !== undefined);
    const subnet = pool && subnetOf(pool, address);
    if (pool === undefined || subnet === undefined || subnet.cidr.prefixLength === prefixLength) continue;
    return (
      `${REQUESTED_ADDRESSES_ANNOTATION}: ${text} has not the prefix length of subnet ${formatCidr(subnet.cidr)} of pool ${pool.name}: ` +
      `write ${withPrefix(pool, address)} or ${formatAddress(address)}`
    );
  }
  return undefined;
}

/** Reads the addresses in the status. If one is unreadable, `problem` says so and no address is returned. */
export function readShownAddresses(claim: IPAMClaim): { addresses: readonly Address[]; problem?: string } {
  const read = parseAddressList(claim.status?.ips ?? []);
  if (read.ok) return { addresses: read.addresses };
  return { addresses: [], problem: `status.ips: ${read.problem}, or clear it` };
}

/** Parses addresses, with or without prefix length: at most one of each family, sorted IPv4 first. */
export function parseAddressList(
  list: readonly unknown[],
): { ok: true; addresses: readonly Address[] } | { ok: false; problem: string } {
  const addresses: Address[] = [];
  for (const element of list) {
    const address = parseListElement(element);
    if (typeof address === 'string') return { ok: false, problem: address };
    if (addresses.some(({ family }) => family === address.family)) {
      const family = formatFamily(address.family);
      return {
        ok: false,
        problem: `${describeValue(element)} is a second ${family} address: write at most one of each family`,
      };
    }
    addresses.push(address);
  }
  return { ok: true, addresses: addresses.sort((a, b) => a.family - b.family) };
}

/** @returns an error message if the element is not an address */
function parseListElement(element: unknown): Address | string {
  if (typeof element !== 'string') return `${describeValue(element)} is not an address: write a string like "10.0.0.5"`;
  try {
    return parseAddressOrPrefix(element).address;
  } catch (error) {
    return (error as Error).message;
  }
}

function parseJsonList(text: string): unknown[] | undefined {
  if (text.length > MAX_REQUESTED_ADDRESSES_LENGTH) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function invalidRequest(problem: string): ClaimRequest {
  return { kind: 'invalid', problem: `${CLAIM_REQUESTED_ADDRESSES}: ${problem}` };
}

/**
 * Formats an address for a claim's status. The prefix length comes from the first of the pools that has a subnet with the address. If none has one, the text
 * that the status shows already is kept.
 */
export function formatStatusIp(
  address: Address,
  { claim, pools }: { claim: IPAMClaim; pools: readonly Pool[] },
): string {
  const pool = pools.find((candidate) => subnetOf(candidate, address) !== undefined);
  if (pool !== undefined) return withPrefix(pool, address);
  const shown = (claim.status?.ips ?? []).find((text) => isTextOf(text, address));
  return shown ?? `${formatAddress(address)}/${BITS[address.family]}`;
}

function isTextOf(text: string, address: Address): boolean {
  const shown = readAddress(text);
  return shown !== undefined && sameAddress(shown, address);
}
