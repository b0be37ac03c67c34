import { type AddressPool, type AddressPoolSpec, addressSpaceOf, nadNamespaceOf } from '../../api/address-pool.js';
import { shortHash } from '../../api/hash.js';
import { WHEREABOUTS_IPAM } from '../../api/ipam-delegation.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { EventReason } from '../../api/names.js';
import type { NetworkConfigProblem } from '../../api/network-attachment.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import type { LeaseRecord } from '../core/lease.js';
import { type Pool, compilePool } from '../core/pool.js';
import { addressSpaceRefusal } from '../core/address-space-rights.js';
import { derivedPool, derivedPoolName } from '../core/derived-pool.js';
import { type NadRights } from '../../api/nad-rights.js';
import { type NadEvent, type RequestedPool, describeProblems, readRequestedPools } from './requested-pools.js';
import { MAX_NAMED, listLeases } from './named-leases.js';
import { leasesOutside } from './usage.js';

/** What is known of the NADs of one namespace and network, and of the pool that is derived from them. */
export interface DerivationInput {
  namespace: string;
  network: string;
  /** Those whose config names the network, oldest first. */
  nads: readonly ParsedNad[];
  /** The object of the derived pool's name. */
  pool?: AddressPool;
  /** Leases of that pool. */
  leases: () => Iterable<LeaseRecord>;
  /** Of these, the ones for which a pool stays. */
  blockingLeases: number;
  /** A pool of an admin serves the users of the namespace. */
  hasAdminPool: boolean;
  /** The pool is being deleted, and stays so long, because a CNI ADD that began before may still be under way. */
  fenceMs?: number;
  rights: NadRights;
  /** The administrators' pools in an address space. */
  adminPoolsIn: (addressSpace: string) => readonly Pool[];
}

/** What NADs and derived pool say of each other: a condition of the pool. */
export interface NadAgreement {
  agree: boolean;
  reason:
    | 'NetworksAgree'
    | 'NetworksDisagree'
    | 'NetworkInvalid'
    | 'NetworkGone'
    | 'NotPermitted'
    | DerivationObstacle['reason'];
  message: string;
}

/** Why the pool cannot be what its NAD says yet. */
interface DerivationObstacle {
  reason: 'LeasedOutside' | 'MovePending';
  message: string;
  /** For the owner of the NAD. */
  eventMessage: string;
}

export type DerivationAction =
  | { kind: 'create'; pool: AddressPool; nad: ParsedNad }
  | { kind: 'update'; pool: AddressPool; spec: AddressPoolSpec; nad: ParsedNad }
  | { kind: 'delete'; pool: AddressPool };

export interface DerivationPlan {
  actions: DerivationAction[];
  events: NadEvent[];
  agreement: NadAgreement;
  /** That of the NAD in force, if it may have a pool in it. */
  addressSpace?: string;
  /** What the NAD in force asks for and its namespace may not have. */
  notPermitted: readonly NetworkConfigProblem[];
}

/** The derived pool follows the oldest NAD that asks for one; it outlives its NADs while it is leased from. */
export function planDerivation(derivation: DerivationInput): DerivationPlan {
  const { pool } = derivation;
  const { requested, events, invalid } = readRequestedPools(derivation);
  const [wish, ...others] = requested;
  if (wish === undefined) return { ...planWithoutRequest(derivation, invalid), events, notPermitted: [] };
  const disagreeing = others.filter(({ pool }) => !isSame(pool, wish.pool));
  for (const { nad } of disagreeing) events.push(disagreementEvent(nad, wish.nad, derivation.network));
  const refusals = addressSpaceProblems(wish, derivation);
  const [refused] = refusals;
  const { action, obstacle } = decide(wish, refused !== undefined, derivation);
  let agreement = agreementOf(wish, disagreeing, invalid);
  if (obstacle !== undefined) {
    const { reason, message, eventMessage } = obstacle;
    const event = reason === 'MovePending' ? EventReason.MovePending : EventReason.NetworksDisagree;
    events.push({ nad: wish.nad, reason: event, message: eventMessage });
    agreement = { agree: false, reason, message };
  }
  if (refused !== undefined) {
    const message = describeProblems(refusals);
    events.push({ nad: wish.nad, reason: EventReason.NetworkNotPermitted, message });
    if (pool === undefined || isDifferent(pool, wish.spec))
      agreement = { agree: false, reason: 'NotPermitted', message };
  }
  if (action?.kind === 'update') events.push(...namespacesNotServedEvent(action, derivation));
  return {
    actions: action === undefined ? [] : [action],
    events,
    agreement,
    ...(refused === undefined && { addressSpace: wish.pool.addressSpace }),
    notPermitted: [...wish.reduced, ...refusals],
  };
}

function addressSpaceProblems(
  { nad, spec, pool }: RequestedPool,
  { namespace, adminPoolsIn }: DerivationInput,
): NetworkConfigProblem[] {
  const request = { pool, namespace, isNamed: spec.addressSpace !== undefined };
  const message = addressSpaceRefusal(request, adminPoolsIn(pool.addressSpace));
  return message === undefined ? [] : [{ field: `NAD ${objectKey(nad)}: addressSpace`, message }];
}

/** What brings the pool to what the NAD says, and what keeps the pool's addresses as they are for now. */
interface DerivationDecision {
  action?: DerivationAction;
  obstacle?: DerivationObstacle;
}

/** @param isRefused the NAD may not have its address space: no pool is made in it, and no address is added to one that is there */
function decide(wish: RequestedPool, isRefused: boolean, derivation: DerivationInput): DerivationDecision {
  const { nad, spec, pool } = wish;
  const { namespace, network, pool: existing } = derivation;
  if (existing === undefined) {
    if (isRefused) return {};
    const obstacle = obstacleToMove(wish, derivation);
    return obstacle ? { obstacle } : { action: { kind: 'create', pool: derivedPool(namespace, spec), nad } };
  }
  if (!isDerived(existing, derivation)) {
    const message = `AddressPool ${existing.metadata.name} was not made for NADs of namespace ${namespace} and network ${network}: rename that pool`;
    return { obstacle: { reason: 'LeasedOutside', message, eventMessage: message } };
  }
  // the API server lets no pool change it: two owners could have one address
  const moves = addressSpaceOf(existing) !== pool.addressSpace && !isRefused;
  const obstacle = moves ? obstacleToMove(wish, derivation) : undefined;
  // it is made anew once it is gone
  if (isBeingDeleted(existing)) return obstacle ? { obstacle } : {};
  if (moves && obstacle === undefined) return { action: { kind: 'delete', pool: existing } };
  return update(wish, existing, { isRefused, obstacle: obstacle ?? obstacleToShrink(wish, existing, derivation) });
}

/** Whom a pool serves, and its other terms, follow the NAD even if its addresses cannot. */
function update(
  { nad, spec }: RequestedPool,
  existing: AddressPool,
  { isRefused, obstacle }: { isRefused: boolean; obstacle: DerivationObstacle | undefined },
): DerivationDecision {
  const { subnets, addressSpace } = existing.spec;
  const { addressSpace: _asked, ...terms } = spec;
  const next =
    isRefused || obstacle !== undefined
      ? { ...terms, subnets, ...(addressSpace !== undefined && { addressSpace }) }
      : spec;
  return {
    ...(isDifferent(existing, next) && { action: { kind: 'update', pool: existing, spec: next, nad } }),
    ...(obstacle !== undefined && !isRefused && { obstacle }),
  };
}

function obstacleToShrink(
  { nad, spec, pool }: RequestedPool,
  existing: AddressPool,
  derivation: DerivationInput,
): DerivationObstacle | undefined {
  // leases are many, and most syncs change nothing
  const outside = isDifferent(existing, spec) ? leasesOutside(derivation.leases(), pool) : [];
  if (outside.length === 0) return undefined;
  const describe = (reader?: string) =>
    `NAD ${objectKey(nad)} leaves out addresses that are leased: ${listLeases(outside, outside.length, () => true, reader)}; ` +
    'the pool keeps its subnets until they are free, so add them to the NAD again';
  return { reason: 'LeasedOutside', message: describe(), eventMessage: describe(derivation.namespace) };
}

/** Whether the spec can be served and means something else than the pool's. */
function isDifferent(existing: AddressPool, spec: AddressPoolSpec): boolean {
  const [before, after] = [compilePool(existing), compilePool({ ...existing, spec })];
  return after.ok && !(before.ok && isSame(before.pool, after.pool));
}

/** Namespaces that the pool ceases to serve, and whose workloads have addresses of it. */
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
  const names = [...leftOut].sort();
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  const message =
    `AddressPool ${pool.metadata.name} does not serve namespaces ${names.slice(0, MAX_NAMED).join(', ')}${more}: their workloads keep the ` +
    `addresses that they have and get no others; to serve them, add them to "namespaces" in the ipam object of the NAD`;
  return [{ nad, reason: EventReason.NamespacesNotServed, message }];
}

/**
 * Addresses of another address space may still be in use: those that are leased, those that cool down, and those that a CNI ADD is about to lease.
 * The pool serves until the last lease is gone: if it stopped at once, one edit would keep new VMs from starting as long as old ones exist.
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
    const meanwhile = serves ? `addresses come from ${first.addressSpace}` : 'no address is given out';
    // a count would change, and be written, with every lease
    const shown = listLeases(elsewhere, Math.min(elsewhere.length, MAX_NAMED), () => true);
    const who = elsewhere.length > MAX_NAMED ? `${shown} and others` : shown;
    const notice = `${says}: until the last lease in ${first.addressSpace} is gone, ${meanwhile}`;
    const message = `${notice}. Leased are ${who}: delete their owners, or set the address space of the NAD back`;
    return { reason: 'MovePending', message, eventMessage: notice };
  }
  if (fenceMs === undefined) return undefined;
  const message = `${says}: no address is given out until no CNI ADD that began before can be under way, which takes up to ${fenceMs / 1000} s`;
  return { reason: 'MovePending', message, eventMessage: message };
}

function planWithoutRequest(
  derivation: DerivationInput,
  invalid: readonly ParsedNad[],
): Pick<DerivationPlan, 'actions' | 'agreement'> {
  const { pool, blockingLeases, network, namespace, nads } = derivation;
  const [broken] = invalid;
  if (broken !== undefined) {
    // whoever mends it wants to find the pool as it was
    const message = `NAD ${objectKey(broken)} cannot be used: the pool stays as it is; correct the NAD`;
    return { actions: [], agreement: { agree: false, reason: 'NetworkInvalid', message } };
  }
  const moving = nads.find(({ delegation }) => delegation.kind === 'other' && delegation.type === WHEREABOUTS_IPAM);
  if (pool !== undefined && moving !== undefined) {
    // made before its NAD moves over, so that what is in use is leased by then
    const message = `NAD ${objectKey(moving)} still delegates to ${WHEREABOUTS_IPAM}: the pool waits for it to move over, and serves nobody by it`;
    return { actions: [], agreement: { agree: false, reason: 'NetworkGone', message } };
  }
  const message = `no NAD of namespace ${namespace} and network ${network} asks for it any more: it goes when no address of it is leased`;
  const agreement: NadAgreement = { agree: false, reason: 'NetworkGone', message };
  const isDue = pool !== undefined && isDerived(pool, derivation) && !isBeingDeleted(pool) && blockingLeases === 0;
  return { actions: isDue ? [{ kind: 'delete', pool }] : [], agreement };
}

function agreementOf(
  wish: RequestedPool,
  disagreeing: readonly RequestedPool[],
  invalid: readonly ParsedNad[],
): NadAgreement {
  const inForce = `NAD ${objectKey(wish.nad)} is in force`;
  const keys = (nads: readonly ParsedNad[]) => {
    const more = nads.length > MAX_NAMED ? ` and ${nads.length - MAX_NAMED} more` : '';
    return `${nads.slice(0, MAX_NAMED).map(objectKey).join(', ')}${more}`;
  };
  if (disagreeing.length > 0) {
    const message = `${inForce}; others ask for other addresses: ${keys(disagreeing.map(({ nad }) => nad))}`;
    return { agree: false, reason: 'NetworksDisagree', message };
  }
  if (invalid.length > 0) {
    return { agree: false, reason: 'NetworkInvalid', message: `${inForce}; others cannot be used: ${keys(invalid)}` };
  }
  return { agree: true, reason: 'NetworksAgree', message: inForce };
}

function disagreementEvent(nad: ParsedNad, older: ParsedNad, network: string): NadEvent {
  const message = `the older NAD ${objectKey(older)} of network ${network} asks for other addresses and is in force: make both equal, or name another network`;
  return { nad, reason: EventReason.NetworksDisagree, message };
}

function isDerived(pool: AddressPool, { namespace, network }: DerivationInput): boolean {
  return (
    nadNamespaceOf(pool) === namespace &&
    pool.spec.network === network &&
    pool.metadata.name === derivedPoolName(namespace, network)
  );
}

/** The same addresses on the same terms, however they are written. */
function isSame(one: Pool, other: Pool): boolean {
  return meaningOf(one) === meaningOf(other);
}

const meanings = new WeakMap<Pool, string>();

function meaningOf(pool: Pool): string {
  const known = meanings.get(pool) ?? hashMeaning(pool);
  meanings.set(pool, known);
  return known;
}

/** A hash, because it is kept for as long as the pool. */
function hashMeaning(pool: Pool): string {
  const { addressSpace, subnets, cooldownMs, stickyMs, retainsClaims, blockSize, publishesCapacity } = pool;
  const { namespaces, nodeSelector } = pool;
  const meaning = [
    [addressSpace, subnets, cooldownMs, stickyMs, retainsClaims, blockSize, publishesCapacity],
    namespaces && [...namespaces].sort(),
    nodeSelector && Object.entries(nodeSelector).sort(([a], [b]) => (a < b ? -1 : 1)),
  ];
  const text = JSON.stringify(meaning, (_key, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
  return shortHash(text, 64);
}
