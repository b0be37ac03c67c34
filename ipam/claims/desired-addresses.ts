import {
  FAMILIES,
  type Address,
  type Family,
  formatAddress,
  formatAddresses,
  formatFamily,
  sameAddress,
} from '../../addressing/address/address.js';
import { namespaceRefusal } from '../../addressing/directory/resolution.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { growthRemedy, isDraining, isRequestable } from '../../addressing/pool/pool.js';
import type { ReasonOf } from '../../api/conditions.js';
import { isBeingDeleted } from '../../api/meta.js';
import { CLAIM_REQUEST_ORIGIN, FORMER_ORIGIN } from '../../api/names.js';
import type { ConditionOf } from '../../cluster/claim-conditions.js';
import type { ClaimObservation } from './observe.js';
import { readAddressRequest, readShownAddresses } from './shown/claim-addresses.js';
import { conditionMessage } from './status.js';
import type { DrainRefusals } from './sync-state.js';

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

/**
 * Returns the addresses that the claim should have. Addresses in the status stay, or are allocated again, because a pod may use them. Requested addresses replace
 * them once no pod uses the claim and all of them are leased. A claim that shows none gets what it requests, and any address of each other family of the pool. Before
 * all of them come the addresses with which the VM runs already. A draining address that the VM does not request is replaced once no pod uses the claim.
 */
export function desiredAddressesOf(observed: ClaimObservation): DesiredAddresses {
  const { claim, held, pods, running: found } = observed;
  const request = readAddressRequest(claim, observed.pools);
  const shown = readShownAddresses(claim);
  const running = found.kind === 'addresses' ? found.addresses : [];
  const used = running.length > 0 ? running : shown.addresses;
  const requested = request.kind === 'addresses' ? addressesInForce(request.addresses, used, observed) : [];
  const movable = pods.length === 0 && !isBeingDeleted(claim);
  const followsRequest = movable && requested.length > 0 && requested.every((address) => isHeld(address, held));
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

/**
 * Returns the requested addresses that count. Those of a former claim yield to the ranges of the pool, and to addresses that the claim or its VM has got,
 * because no VM requests them.
 */
function addressesInForce(
  requested: readonly Address[],
  used: readonly Address[],
  { claim, resolution, held }: Pick<ClaimObservation, 'claim' | 'resolution' | 'held'>,
): readonly Address[] {
  const isFormer = claim.metadata.annotations?.[CLAIM_REQUEST_ORIGIN] === FORMER_ORIGIN;
  if (!isFormer || resolution.kind !== 'served') return requested;
  const { pool } = resolution;
  return requested.filter((address) => {
    const isOfFamily = ({ family }: Address) => family === address.family;
    const got = used.some(isOfFamily) ? used : held.map((lease) => lease.address);
    return isRequestable(pool, address) && (!got.some(isOfFamily) || got.some((each) => sameAddress(each, address)));
  });
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

/** True if the claim has the address in a draining range of the pool that serves it. */
function isDrainingFor({ resolution }: Pick<ClaimObservation, 'resolution'>, address: Address): boolean {
  return resolution.kind === 'served' && isDraining(resolution.pool, address);
}

/** Returns the lease that replaces a draining address: one of its family that the claim holds already. */
function replacementOf(
  address: Address,
  { held, resolution }: Pick<ClaimObservation, 'held' | 'resolution'>,
): LeaseRecord | undefined {
  if (resolution.kind !== 'served') return undefined;
  const { pool } = resolution;
  return held.find(
    (lease) => lease.address.family === address.family && lease.pool === pool.name && !isDraining(pool, lease.address),
  );
}

/** The addresses of draining ranges that a claim keeps for now. */
interface DrainingAddresses {
  readonly draining: readonly Address[];
  readonly requested: readonly Address[];
  /** No pod uses the claim, so its addresses may change. */
  readonly isMovable: boolean;
}

/** Returns the draining addresses that another address may replace now. */
export function replaceableAddresses(
  { claim, resolution }: Pick<ClaimObservation, 'claim' | 'resolution'>,
  { draining, requested, isMovable }: DrainingAddresses,
): readonly Address[] {
  if (!isMovable || resolution.kind !== 'served' || namespaceRefusal(claim, resolution.pool) !== undefined) return [];
  return draining.filter((address) => !requested.some((each) => sameAddress(each, address)));
}

/** Says why the claim keeps an address of a draining range. @param refusals why it cannot get another one */
export function drainingConditionOf(
  { claim, pods, resolution }: ClaimObservation,
  { draining, requested, isMovable }: DrainingAddresses,
  refusals: DrainRefusals = {},
): ConditionOf<'AddressDraining'> | undefined {
  const [address] = draining;
  if (address === undefined || resolution.kind !== 'served' || isBeingDeleted(claim)) return undefined;
  const subject = `${formatAddresses(draining)} is in a draining range of pool ${resolution.pool.name}`;
  const condition = (reason: ReasonOf<'AddressDraining'>, message: string) =>
    ({ status: 'True', reason, message }) as const;
  const wanted = requested.find((each) => draining.some((other) => sameAddress(each, other)));
  if (wanted !== undefined) {
    const remedy = 'request an address outside of it, or remove the request';
    return condition('AddressRequested', `${subject}, and the VM requests ${formatAddress(wanted)}: ${remedy}`);
  }
  if (!isMovable) {
    const pod = pods[0]?.metadata.name ?? '';
    return condition('ClaimInUse', `${subject}, and pod ${pod} uses it: restart the VM to change its address`);
  }
  const closed = namespaceRefusal(claim, resolution.pool);
  const refused = draining.filter(({ family }) => refusals[family] !== undefined);
  if (closed === undefined && refused.length === 0) return undefined;
  const families = refused.map(({ family }) => formatFamily(family)).join(' or ');
  const why = closed ?? `it has no other ${families} address for the claim now: ${growthRemedy(resolution.pool)}`;
  return condition('NoOtherAddress', `${subject}. ${conditionMessage(why)}`);
}
