import { type AddressPool, type AddressPoolSpec, addressSpaceOf, nadNamespaceOf } from '../../api/address-pool.js';
import { shortHash } from '../../api/hash.js';
import { WHEREABOUTS_IPAM } from '../../api/ipam-delegation.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { EventReason } from '../../api/names.js';
import type { NetworkConfigProblem } from '../../api/network-attachment.js';
import type { NetworkAttachment } from '../../cluster/shrink.js';
import type { LeaseRecord } from '../core/lease.js';
import { type Pool, compilePool } from '../core/pool.js';
import { spaceRefusal } from '../core/address-space-rights.js';
import { derivedPool, derivedPoolName } from '../core/derived-pool.js';
import { type NadRights } from '../../api/nad-rights.js';
import { type NadNotice, type Wish, describeProblems, readWishes } from './wishes.js';
import { NAMED, named } from './named-leases.js';
import { outsideOf } from './usage.js';

/** What is known of the NADs of one namespace and network, and of the pool that is derived from them. */
export interface Derivation {
  namespace: string;
  network: string;
  /** Those whose config names the network, oldest first. */
  nads: readonly NetworkAttachment[];
  /** The object of the derived pool's name. */
  pool?: AddressPool;
  /** Leases of that pool. */
  leases: () => Iterable<LeaseRecord>;
  /** Of these, the ones for which a pool stays. */
  blockers: number;
  /** A pool of an admin serves the users of the namespace. */
  hasAdminPool: boolean;
  /** The pool is being deleted, and stays so long, because a CNI ADD that began before may still be under way. */
  fenceMs?: number;
  rights: NadRights;
  /** The administrators' pools in an address space. */
  adminPoolsIn: (addressSpace: string) => readonly Pool[];
}

/** What NADs and derived pool say of each other: a condition of the pool. */
export interface Agreement {
  agree: boolean;
  reason: 'NetworksAgree' | 'NetworksDisagree' | 'NetworkInvalid' | 'NetworkGone' | 'NotPermitted' | Obstacle['reason'];
  message: string;
}

/** Why the pool cannot be what its NAD says yet. */
interface Obstacle {
  reason: 'LeasedOutside' | 'MovePending';
  message: string;
  /** For the owner of the NAD. */
  notice: string;
}

export type DerivationAction =
  | { kind: 'create'; pool: AddressPool; nad: NetworkAttachment }
  | { kind: 'update'; pool: AddressPool; spec: AddressPoolSpec; nad: NetworkAttachment }
  | { kind: 'delete'; pool: AddressPool };

export interface DerivationPlan {
  actions: DerivationAction[];
  notices: NadNotice[];
  agreement: Agreement;
  /** That of the NAD in force, if it may have a pool in it. */
  addressSpace?: string;
  /** What the NAD in force asks for and its namespace may not have. */
  notPermitted: readonly NetworkConfigProblem[];
}

/** The derived pool follows the oldest NAD that asks for one; it outlives its NADs while it is leased from. */
export function planDerivation(derivation: Derivation): DerivationPlan {
  const { pool } = derivation;
  const { wishes, notices, invalid } = readWishes(derivation);
  const [wish, ...others] = wishes;
  if (wish === undefined) return { ...planWithout(derivation, invalid), notices, notPermitted: [] };
  const disagreeing = others.filter(({ pool }) => !isSame(pool, wish.pool));
  for (const { nad } of disagreeing) notices.push(disagreement(nad, wish.nad, derivation.network));
  const refusals = refusedSpace(wish, derivation);
  const [refused] = refusals;
  const { action, obstacle } = decide(wish, refused !== undefined, derivation);
  let agreement = agreementOf(wish, disagreeing, invalid);
  if (obstacle !== undefined) {
    const { reason, message, notice } = obstacle;
    const event = reason === 'MovePending' ? EventReason.MovePending : EventReason.NetworksDisagree;
    notices.push({ nad: wish.nad, reason: event, message: notice });
    agreement = { agree: false, reason, message };
  }
  if (refused !== undefined) {
    const message = describeProblems(refusals);
    notices.push({ nad: wish.nad, reason: EventReason.NetworkNotPermitted, message });
    if (pool === undefined || isOther(pool, wish.spec)) agreement = { agree: false, reason: 'NotPermitted', message };
  }
  if (action?.kind === 'update') notices.push(...noticeOfLeftOut(action, derivation));
  return {
    actions: action === undefined ? [] : [action],
    notices,
    agreement,
    ...(refused === undefined && { addressSpace: wish.pool.addressSpace }),
    notPermitted: [...wish.reduced, ...refusals],
  };
}

function refusedSpace({ nad, spec, pool }: Wish, { namespace, adminPoolsIn }: Derivation): NetworkConfigProblem[] {
  const request = { pool, namespace, isNamed: spec.addressSpace !== undefined };
  const message = spaceRefusal(request, adminPoolsIn(pool.addressSpace));
  return message === undefined ? [] : [{ field: `NAD ${objectKey(nad)}: addressSpace`, message }];
}

/** What brings the pool to what the NAD says, and what keeps the pool's addresses as they are for now. */
interface Decision {
  action?: DerivationAction;
  obstacle?: Obstacle;
}

/** @param isRefused the NAD may not have its address space: no pool is made in it, and no address is added to one that is there */
function decide(wish: Wish, isRefused: boolean, derivation: Derivation): Decision {
  const { nad, spec, pool } = wish;
  const { namespace, network, pool: existing } = derivation;
  if (existing === undefined) {
    if (isRefused) return {};
    const obstacle = obstacleToMove(wish, derivation);
    return obstacle ? { obstacle } : { action: { kind: 'create', pool: derivedPool(namespace, spec), nad } };
  }
  if (!isDerived(existing, derivation)) {
    const message = `AddressPool ${existing.metadata.name} was not made for NADs of namespace ${namespace} and network ${network}: rename that pool`;
    return { obstacle: { reason: 'LeasedOutside', message, notice: message } };
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
  { nad, spec }: Wish,
  existing: AddressPool,
  { isRefused, obstacle }: { isRefused: boolean; obstacle: Obstacle | undefined },
): Decision {
  const { subnets, addressSpace } = existing.spec;
  const { addressSpace: _asked, ...terms } = spec;
  const next =
    isRefused || obstacle !== undefined
      ? { ...terms, subnets, ...(addressSpace !== undefined && { addressSpace }) }
      : spec;
  return {
    ...(isOther(existing, next) && { action: { kind: 'update', pool: existing, spec: next, nad } }),
    ...(obstacle !== undefined && !isRefused && { obstacle }),
  };
}

function obstacleToShrink(
  { nad, spec, pool }: Wish,
  existing: AddressPool,
  derivation: Derivation,
): Obstacle | undefined {
  // leases are many, and most syncs change nothing
  const outside = isOther(existing, spec) ? outsideOf(derivation.leases(), pool) : [];
  if (outside.length === 0) return undefined;
  const describe = (reader?: string) =>
    `NAD ${objectKey(nad)} leaves out addresses that are leased: ${named(outside, outside.length, () => true, reader)}; ` +
    'the pool keeps its subnets until they are free, so add them to the NAD again';
  return { reason: 'LeasedOutside', message: describe(), notice: describe(derivation.namespace) };
}

/** Whether the spec can be served and means something else than the pool's. */
function isOther(existing: AddressPool, spec: AddressPoolSpec): boolean {
  const [before, after] = [compilePool(existing), compilePool({ ...existing, spec })];
  return after.ok && !(before.ok && isSame(before.pool, after.pool));
}

/** Namespaces that the pool ceases to serve, and whose workloads have addresses of it. */
function noticeOfLeftOut(
  { pool, spec, nad }: Extract<DerivationAction, { kind: 'update' }>,
  { leases }: Derivation,
): NadNotice[] {
  const [before, after] = [pool.spec.namespaces, spec.namespaces];
  if (after === undefined) return [];
  const leftOut = new Set<string>();
  for (const { owner } of leases()) {
    if (owner === undefined || after.includes(owner.namespace)) continue;
    if (before?.includes(owner.namespace) ?? true) leftOut.add(owner.namespace);
  }
  if (leftOut.size === 0) return [];
  const names = [...leftOut].sort();
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  const message =
    `AddressPool ${pool.metadata.name} does not serve namespaces ${names.slice(0, NAMED).join(', ')}${more}: their workloads keep the ` +
    `addresses that they have and get no others; to serve them, add them to "namespaces" in the ipam object of the NAD`;
  return [{ nad, reason: EventReason.NamespacesNotServed, message }];
}

/**
 * Addresses of another address space may still be in use: those that are leased, those that cool down, and those that a CNI ADD is about to lease.
 * The pool serves until the last lease is gone: if it stopped at once, one edit would keep new VMs from starting as long as old ones exist.
 */
function obstacleToMove({ nad, pool: { addressSpace } }: Wish, derivation: Derivation): Obstacle | undefined {
  const { pool, leases, network, namespace, fenceMs } = derivation;
  const name = derivedPoolName(namespace, network);
  const elsewhere = [...leases()].filter((lease) => lease.addressSpace !== addressSpace);
  const says = `NAD ${objectKey(nad)} moves AddressPool ${name} to address space ${addressSpace}`;
  const [first] = elsewhere;
  if (first !== undefined) {
    const serves = pool !== undefined && !isBeingDeleted(pool);
    const meanwhile = serves ? `addresses come from ${first.addressSpace}` : 'no address is given out';
    // a count would change, and be written, with every lease
    const shown = named(elsewhere, Math.min(elsewhere.length, NAMED), () => true);
    const who = elsewhere.length > NAMED ? `${shown} and others` : shown;
    const notice = `${says}: until the last lease in ${first.addressSpace} is gone, ${meanwhile}`;
    const message = `${notice}. Leased are ${who}: delete their owners, or set the address space of the NAD back`;
    return { reason: 'MovePending', message, notice };
  }
  if (fenceMs === undefined) return undefined;
  const message = `${says}: no address is given out until no CNI ADD that began before can be under way, which takes up to ${fenceMs / 1000} s`;
  return { reason: 'MovePending', message, notice: message };
}

function planWithout(
  derivation: Derivation,
  invalid: readonly NetworkAttachment[],
): Pick<DerivationPlan, 'actions' | 'agreement'> {
  const { pool, blockers, network, namespace, nads } = derivation;
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
  const agreement: Agreement = { agree: false, reason: 'NetworkGone', message };
  const isDue = pool !== undefined && isDerived(pool, derivation) && !isBeingDeleted(pool) && blockers === 0;
  return { actions: isDue ? [{ kind: 'delete', pool }] : [], agreement };
}

function agreementOf(wish: Wish, disagreeing: readonly Wish[], invalid: readonly NetworkAttachment[]): Agreement {
  const inForce = `NAD ${objectKey(wish.nad)} is in force`;
  const keys = (nads: readonly NetworkAttachment[]) => {
    const more = nads.length > NAMED ? ` and ${nads.length - NAMED} more` : '';
    return `${nads.slice(0, NAMED).map(objectKey).join(', ')}${more}`;
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

function disagreement(nad: NetworkAttachment, older: NetworkAttachment, network: string): NadNotice {
  const message = `the older NAD ${objectKey(older)} of network ${network} asks for other addresses and is in force: make both equal, or name another network`;
  return { nad, reason: EventReason.NetworksDisagree, message };
}

function isDerived(pool: AddressPool, { namespace, network }: Derivation): boolean {
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
  const known = meanings.get(pool) ?? readMeaning(pool);
  meanings.set(pool, known);
  return known;
}

/** A hash, because it is kept for as long as the pool. */
function readMeaning(pool: Pool): string {
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
