import { isBeingDeleted } from '../../api/meta.js';
import { type Address, type Family, sameAddress } from '../core/address.js';
import type { LeaseRecord } from '../core/lease.js';
import type { ClaimObservation } from './observe.js';
import { readAddressRequest, readShownAddresses } from './claim-addresses.js';

/** Which addresses a claim shall have, and what of it it has. */
export interface DesiredAddresses {
  /** Of what it has, what stays: at most one lease a family, IPv4 first. */
  keep: readonly LeaseRecord[];
  /** Without these it is not served. `addresses` exactly, and any one address of each of `families`. */
  missing: { addresses: readonly Address[]; families: readonly Family[] };
  /** What it asks for in place of, or besides, what it keeps. */
  pending: readonly Address[];
  /** Of `pending`, what it has no lease of yet. */
  unleased: readonly Address[];
  /** Nothing uses the claim, so that its addresses may change. */
  isMovable: boolean;
  /** What it has and shall not keep. */
  surplus: readonly LeaseRecord[];
  /** What its status shows. */
  shown: readonly Address[];
  /** What in its texts cannot be read. */
  problems: { request?: string; status?: string };
}

const FAMILIES: readonly Family[] = [4, 6];

/**
 * What the status shows stays, or is taken back, for a pod may use it; what a request names instead takes its place once nothing uses the claim and
 * all of it is had. A claim that shows nothing gets what it asks for, and what is left to choose of each family of the pool.
 */
export function desiredAddressesOf(observed: ClaimObservation): DesiredAddresses {
  const { claim, held, pods } = observed;
  const request = readAddressRequest(claim);
  const shown = readShownAddresses(claim);
  const requested = request.kind === 'addresses' ? request.addresses : [];
  const movable = pods.length === 0 && !isBeingDeleted(claim);
  const followsRequest = movable && requested.length > 0 && requested.every((address) => isHeld(address, held));
  const sources = followsRequest
    ? [requested, shown.addresses]
    : [shown.addresses, shown.addresses.length === 0 ? requested : []];
  const families = familiesOf(observed, { shown: shown.addresses, requested, followsRequest });
  const targets = families.map((family) => targetOf(family, sources, held));
  const keep = targets.flatMap(({ lease }) => lease ?? []);
  const pending = requested.filter(
    (address) => !targets.some((target) => target.address !== undefined && sameAddress(target.address, address)),
  );
  const absent = targets.filter(({ lease }) => lease === undefined);
  return {
    keep,
    missing: {
      addresses: absent.flatMap(({ address }) => address ?? []),
      families: absent.flatMap(({ family, address }) => (address === undefined ? [family] : [])),
    },
    pending: isBeingDeleted(claim) ? [] : pending,
    unleased: pending.filter((address) => !isHeld(address, held)),
    isMovable: movable,
    surplus: held.filter((lease) => !keep.includes(lease)),
    shown: shown.addresses,
    problems: {
      ...(request.kind === 'invalid' && { request: request.problem }),
      ...(shown.problem !== undefined && { status: shown.problem }),
    },
  };
}

interface RequestedAndShown {
  shown: readonly Address[];
  requested: readonly Address[];
  followsRequest: boolean;
}

/** A claim that has been served keeps its families: a VM's interface does not grow when its pool does. One that ends gets nothing new. */
function familiesOf(
  { claim, held, resolution }: ClaimObservation,
  { shown, requested, followsRequest }: RequestedAndShown,
): readonly Family[] {
  const has = (addresses: readonly Address[], family: Family) => addresses.some((address) => address.family === family);
  const heldAddresses = held.map(({ address }) => address);
  const pool = resolution.kind === 'served' ? resolution.pool.families : undefined;
  return FAMILIES.filter((family) => {
    if (shown.length > 0) return has(shown, family) || (followsRequest && has(requested, family));
    if (isBeingDeleted(claim)) return has(heldAddresses, family);
    return (pool?.includes(family) ?? has(heldAddresses, family)) || has(requested, family);
  });
}

interface FamilyTarget {
  family: Family;
  /** Undefined: any. */
  address?: Address;
  lease?: LeaseRecord;
}

/** The address that the first of the sources names, else the oldest lease of the family. */
function targetOf(
  family: Family,
  sources: readonly (readonly Address[])[],
  held: readonly LeaseRecord[],
): FamilyTarget {
  const [named] = sources.flatMap((addresses) => addresses.filter((address) => address.family === family));
  const lease = held.find(({ address }) =>
    named === undefined ? address.family === family : sameAddress(address, named),
  );
  const address = named ?? lease?.address;
  return { family, ...(address && { address }), ...(lease && { lease }) };
}

function isHeld(address: Address, held: readonly LeaseRecord[]): boolean {
  return held.some((lease) => sameAddress(lease.address, address));
}
