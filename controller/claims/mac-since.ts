import { type IPAMClaim, macSinceText, recordedMacOf, timedMacOf } from '../../api/ipam-claim.js';
import { CLAIM_MAC_SINCE } from '../../api/names.js';
import type { DesiredClaim } from './desired-claim.js';

/**
 * Returns the record since when an interface has its MAC address, which decides who is answered of those with one MAC address. The time begins anew
 * with each change, because a tenant can write the MAC address of another one into the spec of an old VM.
 * @param isAdopted the claim's records are not those of this owner
 */
export function macSince(
  claim: IPAMClaim,
  { mac, guestMac, runningMac, observedAt }: DesiredClaim,
  isAdopted: boolean,
): string | undefined {
  const current = guestMac ?? mac;
  const timed = isAdopted ? undefined : timedMacOf(claim);
  const kept = claim.metadata.annotations?.[CLAIM_MAC_SINCE];
  // the guest keeps a generated address although its NAD cannot be read now
  if (current === undefined) return timed !== undefined && timed === runningMac ? kept : undefined;
  if (timed === current) return kept;
  // it has had the address since it was created
  if (!isAdopted && timed === undefined && recordedMacOf(claim) === current) return undefined;
  return macSinceText(current, observedAt);
}
