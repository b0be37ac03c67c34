import { nameFirst } from '../../api/json.js';
import { type AddressPool, type AddressPoolSpec, addressSpaceOf, nadNamespaceOf } from '../../api/address-pool.js';
import { WHEREABOUTS_IPAM } from '../../api/networks/ipam-delegation.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { EventReason } from '../../api/event-reasons.js';
import type { NetworkConfigProblem } from '../../api/networks/network-attachment.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { type SpacePool, addressSpaceRefusal } from '../../addressing/pool/address-space-rights.js';
import { derivedPool, derivedPoolName } from '../../addressing/pool/derived-pool.js';
import { type NadRights } from '../../api/networks/nad-rights.js';
import { type ExistingPool, isDifferent, isSamePool, refusedSpec, withAddressesOf } from './pool-meaning.js';
import {
  type NadAgreement,
  type NadEvent,
  type RequestedPool,
  agreementOf,
  describeProblems,
  disagreementEvent,
  readRequestedPools,
} from './requested-pools.js';
import { MAX_NAMED, formatLeases } from './named-leases.js';
import { leasesOutside } from './usage.js';

/** The NADs of one namespace and network, and what else decides about the pool that is derived from them. */
export interface DerivationInput {
  namespace: string;
  network: string;
  /** NADs whose config names the network, oldest first. */
  nads: readonly ParsedNad[];
  /** The pool that has the name of the derived pool. */
  pool?: AddressPool;
  /** The same pool, compiled, unless it is invalid. A large one takes 30 ms to compile. */
  compiled?: Pool | undefined;
  /** Leases of that pool. */
  leases: () => Iterable<LeaseRecord>;
  /** How many of these leases keep the pool from being deleted. */
  blockingLeases: () => number;
  /** An administrator's pool serves the namespace. */
  hasAdminPool: boolean;
  /** The pool is being deleted, and stays this long, because a CNI ADD that began earlier may still be running. */
  fenceMs?: number;
  rights: NadRights;
  /** The valid pools of an address space. */
  poolsIn: (addressSpace: string) => readonly SpacePool[];
}

/** Why the pool cannot follow its NAD yet. */
interface DerivationObstacle {
  reason: Extract<NadAgreement['reason'], 'LeasedOutside' | 'MovePending'>;
  message: string;
  /** For the event on the NAD. */
  eventMessage: string;
}

export type DerivationAction =
  | { kind: 'create'; pool: AddressPool; nad: ParsedNad }
  | { kind: 'update'; pool: AddressPool; spec: AddressPoolSpec; nad: ParsedNad }
  | { kind: 'delete'; pool: AddressPool };

export interface DerivationPlan {
  /** Absent if nothing changes. */
  action?: DerivationAction;
  events: NadEvent[];
  agreement: NadAgreement;
  /** The address space of the NAD in force, if its namespace may use it. */
  addressSpace?: string;
  /** What the NAD in force requests without permission. */
  notPermitted: readonly NetworkConfigProblem[];
}

/** Plans the changes of a derived pool, in short steps. It follows the oldest NAD that requests one, and outlives its NADs while its addresses are leased. */
export function* planDerivation(derivation: DerivationInput): Generator<undefined, DerivationPlan> {
  const { pool } = derivation;
  const { requested, events, invalid } = readRequestedPools(derivation);
  const [oldest, ...others] = requested;
  if (oldest === undefined) return { ...planWithoutRequest(derivation, invalid), events, notPermitted: [] };
  const disagreeing = others.filter(({ pool }) => !isSamePool(pool, oldest.pool));
  for (const { nad } of disagreeing) events.push(disagreementEvent(nad, oldest.nad, derivation.network));
  const refusals = yield* addressSpaceProblems(oldest, derivation);
  const [refused] = refusals;
  const { action, obstacle } = decide(oldest, refused !== undefined, derivation);
  let agreement = agreementOf(oldest, disagreeing, invalid);
  if (obstacle !== undefined) {
    const { reason, message, eventMessage } = obstacle;
    const event = reason === 'MovePending' ? EventReason.MovePending : EventReason.NetworksDisagree;
    events.push({ nad: oldest.nad, reason: event, message: eventMessage });
    agreement = { agree: false, reason, message };
  }
  if (refused !== undefined) {
    const message = describeProblems(refusals);
    events.push({ nad: oldest.nad, reason: EventReason.NetworkNotPermitted, message });
    if (pool === undefined || isDifferent({ pool, compiled: derivation.compiled }, oldest.spec, oldest))
      agreement = { agree: false, reason: 'NotPermitted', message };
  }
  if (action?.kind === 'update') events.push(...namespacesNotServedEvent(action, derivation));
  return {
    ...(action && { action }),
    events,
    agreement,
    ...(refused === undefined && { addressSpace: oldest.pool.addressSpace }),
    notPermitted: [...oldest.reduced, ...refusals],
  };
}

function* addressSpaceProblems(
  { nad, spec, pool }: RequestedPool,
  { namespace, network, poolsIn, rights }: DerivationInput,
): Generator<undefined, NetworkConfigProblem[]> {
  const name = derivedPoolName(namespace, network);
  const isNamed = spec.addressSpace !== undefined;
  const request = { pool, name, namespace, isNamed, isOwnershipEnforced: rights.isOwnershipEnforced };
  const message = yield* addressSpaceRefusal(request, poolsIn(pool.addressSpace));
  return message === undefined ? [] : [{ field: `NAD ${objectKey(nad)}: addressSpace`, message }];
}

/** The change that makes the pool follow the NAD, and the obstacle that keeps its addresses as they are for now. */
interface DerivationDecision {
  action?: DerivationAction;
  obstacle?: DerivationObstacle;
}

/** @param isRefused the NAD may not use its address space: no pool is created there, and an existing pool gets no more addresses */
function decide(oldest: RequestedPool, isRefused: boolean, derivation: DerivationInput): DerivationDecision {
  const { nad, spec, pool } = oldest;
  const { namespace, network, pool: existing } = derivation;
  if (existing === undefined) {
    if (isRefused) return {};
    const obstacle = obstacleToMove(oldest, derivation);
    return obstacle ? { obstacle } : { action: { kind: 'create', pool: derivedPool(namespace, spec), nad } };
  }
  if (!isDerived(existing, derivation)) {
    const message = `AddressPool ${existing.metadata.name} is not derived from NADs of namespace ${namespace} and network ${network}: rename that pool`;
    return { obstacle: { reason: 'LeasedOutside', message, eventMessage: message } };
  }
  // the address space of a pool is immutable: otherwise two owners could get one address
  const moves = addressSpaceOf(existing) !== pool.addressSpace && !isRefused;
  const obstacle = moves ? obstacleToMove(oldest, derivation) : undefined;
  // the pool is created again once it is gone
  if (isBeingDeleted(existing)) return obstacle ? { obstacle } : {};
  if (moves && obstacle === undefined) return { action: { kind: 'delete', pool: existing } };
  return update(
    oldest,
    { pool: existing, compiled: derivation.compiled },
    {
      obstacle: obstacle ?? obstacleToShrink(oldest, existing, derivation),
      isRefused,
      isDrained: derivation.rights.isOwnershipEnforced,
    },
  );
}

function update(
  oldest: RequestedPool,
  existing: ExistingPool,
  given: { obstacle: DerivationObstacle | undefined; isRefused: boolean; isDrained: boolean },
): DerivationDecision {
  const { obstacle, isRefused, isDrained } = given;
  const hasObstacle = obstacle !== undefined;
  const { nad } = oldest;
  const { pool } = existing;
  const followed = hasObstacle ? withAddressesOf(pool, oldest.spec) : oldest.spec;
  const spec = isRefused ? refusedSpec(oldest, existing, { hasObstacle, isDrained }) : followed;
  // administrators set it on the pool, and it is not read from the NAD
  const { publishMetrics } = pool.spec;
  const kept = publishMetrics === undefined ? spec : { ...spec, publishMetrics };
  return {
    ...(isDifferent(existing, spec, oldest) && { action: { kind: 'update', pool, spec: kept, nad } }),
    ...(hasObstacle && !isRefused && { obstacle }),
  };
}

function obstacleToShrink(
  requested: RequestedPool,
  existing: AddressPool,
  derivation: DerivationInput,
): DerivationObstacle | undefined {
  const { nad, spec, pool } = requested;
  const { compiled } = derivation;
  // there are many leases, and most syncs change nothing
  const outside = isDifferent({ pool: existing, compiled }, spec, requested)
    ? leasesOutside(derivation.leases(), pool)
    : [];
  if (outside.length === 0) return undefined;
  const describe = (reader?: string) =>
    `NAD ${objectKey(nad)} no longer contains addresses that are leased: ${formatLeases(outside, outside.length, reader)}; ` +
    'the pool keeps its subnets until they are free. Add them to the NAD again';
  return { reason: 'LeasedOutside', message: describe(), eventMessage: describe(derivation.namespace) };
}

/** Reports namespaces that the pool stops serving while their workloads have its addresses. */
function namespacesNotServedEvent(
  { pool, spec, nad }: Extract<DerivationAction, { kind: 'update' }>,
  { leases }: DerivationInput,
): NadEvent[] {
  const [before, after] = [pool.spec.namespaces, spec.namespaces];
  if (after === undefined) return [];
  const leftOut = new Set<string>();
  for (const { owner } of leases()) {
    if (owner === undefined || after.includes(owner.namespace)) continue;
    if (before?.includes(owner.namespace) ?? true) leftOut.add(owner.namespace);
  }
  if (leftOut.size === 0) return [];
  const names = nameFirst([...leftOut].sort(), MAX_NAMED);
  const message =
    `AddressPool ${pool.metadata.name} no longer serves namespaces ${names}: their workloads keep ` +
    `their addresses and get no new ones. To serve them, add them to "namespaces" in the ipam object of the NAD`;
  return [{ nad, reason: EventReason.NamespacesNotServed, message }];
}

/**
 * Addresses of the old address space may still be in use: those that are leased or cool down, and those that a CNI ADD is about to lease. The pool serves until
 * the last lease is gone. If it stopped at once, one edit would keep new VMs from starting as long as old ones exist.
 */
function obstacleToMove(
  { nad, pool: { addressSpace } }: RequestedPool,
  derivation: DerivationInput,
): DerivationObstacle | undefined {
  const { pool, leases, network, namespace, fenceMs } = derivation;
  const name = derivedPoolName(namespace, network);
  const elsewhere = [...leases()].filter((lease) => lease.addressSpace !== addressSpace);
  const says = `NAD ${objectKey(nad)} moves AddressPool ${name} to address space ${addressSpace}`;
  const [first] = elsewhere;
  if (first !== undefined) {
    const serves = pool !== undefined && !isBeingDeleted(pool);
    const meanwhile = serves ? `addresses come from ${first.addressSpace}` : 'no address is allocated';
    // a count would change, and cause a write, with every lease
    const shown = formatLeases(elsewhere, Math.min(elsewhere.length, MAX_NAMED));
    const who = elsewhere.length > MAX_NAMED ? `${shown} and others` : shown;
    const notice = `${says}: until the last lease in ${first.addressSpace} is gone, ${meanwhile}`;
    const message = `${notice}. Leases: ${who}. Delete their owners, or restore the address space of the NAD`;
    return { reason: 'MovePending', message, eventMessage: notice };
  }
  if (fenceMs === undefined) return undefined;
  const message = `${says}: no address is allocated until every CNI ADD that began before has ended, which takes up to ${fenceMs / 1000} s`;
  return { reason: 'MovePending', message, eventMessage: message };
}

function planWithoutRequest(
  derivation: DerivationInput,
  invalid: readonly ParsedNad[],
): Pick<DerivationPlan, 'action' | 'agreement'> {
  const { pool, blockingLeases, network, namespace, nads } = derivation;
  const [broken] = invalid;
  if (broken !== undefined) {
    // a mistake in a NAD must not change the pool that its workloads use
    const message = `NAD ${objectKey(broken)} is invalid: the pool stays as it is. Correct the NAD`;
    return { agreement: { agree: false, reason: 'NetworkInvalid', message } };
  }
  const moving = nads.find(({ delegation }) => delegation.kind === 'other' && delegation.type === WHEREABOUTS_IPAM);
  if (pool !== undefined && moving !== undefined) {
    // such a pool is created before its NAD is migrated, so that addresses in use are leased by then
    const message = `NAD ${objectKey(moving)} still delegates to ${WHEREABOUTS_IPAM}: until it delegates to Holdfast, the pool serves no workloads through it`;
    return { agreement: { agree: false, reason: 'NetworkGone', message } };
  }
  const message = `No NAD of namespace ${namespace} and network ${network} requests this pool: it is deleted once none of its addresses is leased`;
  const agreement: NadAgreement = { agree: false, reason: 'NetworkGone', message };
  const isDue = pool !== undefined && isDerived(pool, derivation) && !isBeingDeleted(pool) && blockingLeases() === 0;
  return { ...(isDue && { action: { kind: 'delete', pool } }), agreement };
}

function isDerived(pool: AddressPool, { namespace, network }: DerivationInput): boolean {
  return (
    nadNamespaceOf(pool) === namespace &&
    pool.spec.network === network &&
    pool.metadata.name === derivedPoolName(namespace, network)
  );
}
