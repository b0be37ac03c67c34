import { type Address, BITS, formatAddress, parseAddressOrPrefix, sameAddress } from '../core/address.js';
import { subnetOf, withPrefix } from '../core/pool.js';
import type { ClaimObservation } from './observe.js';

/**
 * An address as a claim's status shows it. The prefix length is that of the pool that serves the claim or of one that it has leases of; where
 * none has a subnet of the address any more, what the status has shown so far.
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
