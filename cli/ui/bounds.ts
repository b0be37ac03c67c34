import { type IPAMClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { truncate } from '../../api/json.js';
import { MAX_NAME_LENGTH } from '../../api/meta.js';
import type { BoundedList } from './protocol.js';

/** More rows than this are counted, but not sent. */
export const MAX_ROWS = 200;
export const MAX_SHOWN_TEXT = 1_024;
/** Another IPAM may write more into a claim. */
const MAX_ADDRESSES = 32;
const MAX_ADDRESS_LENGTH = 64;

export function boundedList<Row>(rows: readonly Row[]): BoundedList<Row> {
  return { rows: rows.slice(0, MAX_ROWS), total: rows.length };
}

/** Empty if the claim names no VM. Tenants may write a longer name than a VM can have. */
export function vmNameOf(claim: IPAMClaim): string {
  return truncate(claimOwnerOf(claim)?.name ?? '', MAX_NAME_LENGTH);
}

export function shownAddressesOf({ status }: IPAMClaim): string[] {
  return (status?.ips ?? []).slice(0, MAX_ADDRESSES).map((ip) => truncate(ip, MAX_ADDRESS_LENGTH));
}
