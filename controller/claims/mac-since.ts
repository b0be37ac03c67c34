import { type IPAMClaim, macSinceText, recordedMacOf, timedMacOf } from '../../api/ipam-claim.js';
import { CLAIM_MAC_SINCE } from '../../api/names.js';
import type { DesiredClaim } from './desired-claim.js';

/**
 * Returns the record since when an interface has its MAC address, which decides who is answered of those with one MAC address. The time begins anew
 * with each change, because a tenant can write the MAC address of another one into the spec of an old VM.
 * @param isAdopted the claim's records are not those of this owner
 */
export function macSince(claim: IPAMClaim, desired: DesiredClaim, isAdopted: boolean): string | undefined {
  const current = desired.guestMac ?? desired.mac;
  if (!isAdopted && hasKept(claim, current, desired)) return claim.metadata.annotations?.[CLAIM_MAC_SINCE];
  return current === undefined ? undefined : macSinceText(current, desired.observedAt);
}

function hasKept(
  claim: IPAMClaim,
  current: string | undefined,
  { isAttached, runningMac }: Pick<DesiredClaim, 'isAttached' | 'runningMac'>,
): boolean {
  const timed = timedMacOf(claim);
  // a guest keeps its generated address although KubeVirt does not report it now, or its NAD cannot be read
  if (current === undefined) return isAttached && (runningMac ?? timed) === timed;
  // without a time, the claim has had the recorded address since it was created
  return (timed ?? recordedMacOf(claim)) === current;
}
