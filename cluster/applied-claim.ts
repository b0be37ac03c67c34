import type { IPAMClaim } from '../api/ipam-claim.js';
import { asList, asRecord, asString } from '../api/json.js';
import { MAX_APPLIED_COPY_LENGTH } from '../api/limits.js';
import {
  CLAIM_OWNER_UID,
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_REQUEST_ORIGIN,
  FORMER_ORIGIN,
  LAST_APPLIED_ANNOTATION,
} from '../api/names.js';

/** Requests the addresses of a claim that is gone. @param addresses a JSON list */
export function formerRequest(addresses: string): Record<string, string> {
  return { [CLAIM_REQUESTED_ADDRESSES]: addresses, [CLAIM_REQUEST_ORIGIN]: FORMER_ORIGIN };
}

/** The longest text of an IPv6 address with a prefix length. */
const MAX_IP_LENGTH = 49;

/**
 * Returns the addresses that a claim had when it was saved with `kubectl get -o yaml`, if `kubectl apply` created it from that copy: kubectl restores
 * no status, but keeps what it applied in an annotation. The copy has the UID of the claim that was saved, and the owner that this claim still names.
 * Undefined for every other claim.
 * @param ownerUid the owner that the claim names
 */
export function appliedAddressesOf(claim: IPAMClaim, ownerUid: string): readonly string[] | undefined {
  const copy = parseCopy(claim.metadata.annotations?.[LAST_APPLIED_ANNOTATION]);
  const { uid, annotations } = asRecord(copy.metadata);
  if (asString(uid) === '' || uid === claim.metadata.uid) return undefined;
  if (asRecord(annotations)[CLAIM_OWNER_UID] !== ownerUid) return undefined;
  const ips = asList(asRecord(copy.status).ips).slice(0, 2).map(asString);
  // ipam checks them like any other request
  return ips.filter((ip) => ip !== '' && ip.length <= MAX_IP_LENGTH);
}

/** Returns these addresses as the text of a request; undefined if there are none. */
export function appliedRequestOf(claim: IPAMClaim, ownerUid: string): string | undefined {
  const addresses = appliedAddressesOf(claim, ownerUid) ?? [];
  return addresses.length === 0 ? undefined : JSON.stringify(addresses);
}

function parseCopy(text: string | undefined): Record<string, unknown> {
  if (text === undefined || text.length > MAX_APPLIED_COPY_LENGTH) return {};
  try {
    return asRecord(JSON.parse(text));
  } catch {
    return {};
  }
}
