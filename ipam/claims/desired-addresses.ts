import { isBeingDeleted } from '../../api/meta.js';
import { type Address, type Family, sameAddress } from '../../addressing/address/address.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { ClaimObservation } from './observe.js';
import { readAddressRequest, readShownAddresses } from './shown/claim-addresses.js';
import { isDrainingFor, replacementOf } from './draining-addresses.js';

/** The addresses that a claim should have, and those that it already holds. */
export interface DesiredAddresses {
  /** Held leases that stay: at most one of a family, IPv4 first. */
  keep: readonly LeaseRecord[];
  /** What the claim lacks: exactly `addresses`, and any one address of each of `families`. */
  missing: { addresses: readonly Address[]; families: readonly Family[] };
  /** Requested addresses that are not those of the leases to keep. */
  pending: readonly Address[];
  /** Addresses of `pending` of which the claim has no lease yet. */
  unleased: readonly Address[];
  /** A requested address is among those that the claim lacks, so the claim cannot move to the others yet. */
  isRequestMissing: boolean;
  /** No pod uses the claim, so its addresses may change. */
  isMovable: boolean;
  /** Addresses to keep that are in draining ranges of the pool. */
  draining: readonly Address[];
  /** Requested addresses, fulfilled or not. */
  requested: readonly Address[];
  /** Held leases that the claim should not keep. */
  surplus: readonly LeaseRecord[];
  /** Addresses in the claim's status. */
  shown: readonly Address[];
  /** Addresses with which the VM runs, and which the status does not show. */
  running: readonly Address[];
  /** Messages about texts of the claim that cannot be parsed. */
  problems: { request?: string; status?: string };
}

const FAMILIES: readonly Family[] = [4, 6];

/**
 * Returns the addresses that the claim should have. Addresses in the status stay, or are allocated again, because a pod may use them. Requested addresses replace
 * them once no pod uses the claim and all of them are leased. A claim that shows none gets what it requests, and any address of each other family of the pool. Before
 * all of them come the addresses with which the VM runs already. A draining address that the VM does not request is replaced once no pod uses the claim.
 */
export function desiredAddressesOf(observed: ClaimObservation): DesiredAddresses {
  const { claim, held, pods, running: found } = observed;
  const request = readAddressRequest(claim, observed.pools);
  const shown = readShownAddresses(claim);
  const requested = request.kind === 'addresses' ? request.addresses : [];
  const movable = pods.length === 0 && !isBeingDeleted(claim);
  const followsRequest = movable && requested.length > 0 && requested.every((address) => isHeld(address, held));
  const running = found.kind === 'addresses' ? found.addresses : [];
  const used = running.length > 0 ? running : shown.addresses;
  const sources = followsRequest ? [requested, used] : [used, used.length === 0 ? requested : []];
  const families = familiesOf(observed, { used, requested, followsRequest });
  const isReplaced = (address: Address) =>
    movable && isDrainingFor(observed, address) && !requested.some((each) => sameAddress(each, address));
  const targets = families.map((family) => {
    const target = targetOf(family, sources, held);
    const lease = target.address && isReplaced(target.address) ? replacementOf(target.address, observed) : undefined;
    return lease === undefined ? target : { family, address: lease.address, lease };
  });
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
    isRequestMissing: absent.some(({ address }) => requested.some((other) => address && sameAddress(address, other))),
    isMovable: movable,
    draining: keep.map(({ address }) => address).filter((address) => isDrainingFor(observed, address)),
    requested,
    surplus: held.filter((lease) => !keep.includes(lease)),
    shown: shown.addresses,
    running,
    problems: {
      ...(request.kind === 'invalid' && { request: request.problem }),
      ...(shown.problem !== undefined && { status: shown.problem }),
    },
  };
}

interface RequestedAndUsed {
  used: readonly Address[];
  requested: readonly Address[];
  followsRequest: boolean;
}

/** A claim that has been served keeps its families, even if its pool gets another one. A claim that is being deleted gets no new address. */
function familiesOf(
  { claim, held, resolution }: ClaimObservation,
  { used, requested, followsRequest }: RequestedAndUsed,
): readonly Family[] {
  const has = (addresses: readonly Address[], family: Family) => addresses.some((address) => address.family === family);
  const heldAddresses = held.map(({ address }) => address);
  const pool = resolution.kind === 'served' ? resolution.pool.families : undefined;
  return FAMILIES.filter((family) => {
    if (used.length > 0) return has(used, family) || (followsRequest && has(requested, family));
    if (isBeingDeleted(claim)) return has(heldAddresses, family);
    return (pool?.includes(family) ?? has(heldAddresses, family)) || has(requested, family);
  });
}

interface FamilyTarget {
  family: Family;
  /** Undefined: any address of the family. */
  address?: Address;
  lease?: LeaseRecord;
}

/** The first address of the family that the sources name, else that of the oldest lease. */
function targetOf(family: Family, sources: (readonly Address[])[], held: readonly LeaseRecord[]): FamilyTarget {
  const [named] = sources.flatMap((addresses) => addresses.filter((address) => address.family === family));
  const lease = held.find((each) => (named ? sameAddress(each.address, named) : each.address.family === family));
  const address = named ?? lease?.address;
  return { family, ...(address && { address }), ...(lease && { lease }) };
}

function isHeld(address: Address, held: readonly LeaseRecord[]): boolean {
  return held.some((lease) => sameAddress(lease.address, address));
}
