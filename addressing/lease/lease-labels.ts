import type { AddressLeaseSpec } from '../../api/address-lease.js';
import { labelValue } from '../../api/ipam-claim.js';
import {
  LEASE_FAMILY,
  LEASE_MAC,
  LEASE_NODE,
  LEASE_OWNER_KIND,
  LEASE_OWNER_NAME,
  LEASE_OWNER_NAMESPACE,
  LEASE_OWNER_UID,
  LEASE_POOL,
} from '../../api/names.js';
import { formatFamily, parseAddress } from '../address/address.js';

/** Returns the labels by which a lease can be selected. */
export function leaseLabels(
  spec: Pick<AddressLeaseSpec, 'address' | 'pool' | 'owner' | 'node' | 'mac'>,
): Record<string, string> {
  const { owner } = spec;
  const values: Record<string, string | undefined> = {
    [LEASE_POOL]: spec.pool,
    [LEASE_FAMILY]: formatFamily(parseAddress(spec.address).family),
    [LEASE_NODE]: spec.node,
    [LEASE_OWNER_KIND]: owner?.kind,
    [LEASE_OWNER_NAMESPACE]: owner?.namespace,
    [LEASE_OWNER_NAME]: owner?.name,
    [LEASE_OWNER_UID]: owner?.uid,
    [LEASE_MAC]: spec.mac?.toLowerCase().replaceAll(':', '-'),
  };
  return Object.fromEntries(
    Object.entries(values).flatMap(([label, value]) => (value === undefined ? [] : [[label, labelValue(value)]])),
  );
}

/** Removes the labels of an earlier owner in a merge patch, which keeps all labels that it does not name. */
export const CLEARED_LABELS = Object.fromEntries(
  [LEASE_NODE, LEASE_OWNER_KIND, LEASE_OWNER_NAMESPACE, LEASE_OWNER_NAME, LEASE_OWNER_UID, LEASE_MAC].map((label) => [
    label,
    null,
  ]),
);
