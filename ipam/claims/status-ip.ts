import {
  type Address,
  BITS,
  formatAddress,
  parseAddressOrPrefix,
  sameAddress,
} from '../../addressing/address/address.js';
import { subnetOf, withPrefix } from '../../addressing/pool/pool.js';
import type { ClaimObservation } from './observe.js';

/**
 * Formats an address for a claim's status. The prefix length comes from the pool that serves the claim or from a pool of its leases. If none of their subnets
 * contains the address, the text that the status shows already is kept.
 */
export function formatStatusIp(address: Address, { claim, pools }: Pick<ClaimObservation, 'claim' | 'pools'>): string {
  const pool = pools.find((candidate) => subnetOf(candidate, address) !== undefined);
  if (pool !== undefined) return withPrefix(pool, address);
  const shown = (claim.status?.ips ?? []).find((text) => isTextOf(text, address));
  return shown ?? `${formatAddress(address)}/${BITS[address.family]}`;
}

function isTextOf(text: string, address: Address): boolean {
  try {
    return sameAddress(parseAddressOrPrefix(text).address, address);
  } catch {
    return false;
  }
}
