import type { IPAMClaim } from '../api/ipam-claim.js';
import { byAge, objectKey } from '../api/meta.js';

/** A claim whose guest has a MAC address on one network. */
export interface ServedMac {
  readonly claim: IPAMClaim;
  /** Lower case, with colons. */
  readonly mac: string;
}

/** The claim that is served of those with one MAC address, and the others, oldest first. */
export interface MacOwner<Claim extends ServedMac> {
  readonly served: Claim;
  readonly refused: readonly Claim[];
}

/**
 * Decides who is served of the claims of one network that share a MAC address: the oldest. Tenants write MAC addresses, so a later claim must
 * not take the answers of an earlier one. Every process decides the same.
 */
export function macOwners<Claim extends ServedMac>(claims: readonly Claim[]): Map<string, MacOwner<Claim>> {
  const byMac = new Map<string, Claim[]>();
  for (const each of claims) {
    const group = byMac.get(each.mac);
    if (group === undefined) byMac.set(each.mac, [each]);
    else group.push(each);
  }
  const owners = new Map<string, MacOwner<Claim>>();
  for (const [mac, group] of byMac) {
    const [served, ...refused] = group.toSorted(byAgeAndKey);
    if (served !== undefined) owners.set(mac, { served, refused });
  }
  return owners;
}

/** Claims of two namespaces may have one name. */
function byAgeAndKey({ claim: a }: ServedMac, { claim: b }: ServedMac): number {
  return byAge(a, b) || (objectKey(a) < objectKey(b) ? -1 : 1);
}
