import { type AddressPool, type AddressPoolSpec, addressSpaceOf, nadNamespaceOf } from '../../api/address-pool.js';
import { WHEREABOUTS_IPAM } from '../../api/ipam-delegation.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { EventReason } from '../../api/names.js';
import type { NetworkAttachment } from '../../process/shrink.js';
import type { LeaseRecord } from '../core/lease.js';
import { type Pool, compilePool } from '../core/pool.js';
import { derivedPool, derivedPoolName } from '../core/derived-pool.js';
import { type NadNotice, type Wish, readWishes } from './wishes.js';
import { NAMED, named } from './status.js';
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
}

/** What NADs and derived pool say of each other: a condition of the pool. */
export interface Agreement {
  agree: boolean;
  reason: 'NetworksAgree' | 'NetworksDisagree' | 'NetworkInvalid' | 'NetworkGone' | Obstacle['reason'];
  message: string;
}

/** Why the pool cannot be what its NAD says yet. */
interface Obstacle {
  kind: 'obstacle';
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
  /** That of the NAD in force. */
  addressSpace?: string;
}

/** The derived pool follows the oldest NAD that asks for one; it outlives its NADs while it is leased from. */
export function planDerivation(derivation: Derivation): DerivationPlan {
  const { wishes, notices, invalid } = readWishes(derivation);
  const [wish, ...others] = wishes;
  if (wish === undefined) return { ...planWithout(derivation, invalid), notices };
  const disagreeing = others.filter(({ pool }) => !isSame(pool, wish.pool));
  for (const { nad } of disagreeing) notices.push(disagreement(nad, wish.nad, derivation.network));
  const plan = { notices, addressSpace: wish.pool.addressSpace };
  const decided = decide(wish, derivation);
  if (decided?.kind !== 'obstacle') {
    const actions = decided === undefined ? [] : [decided];
    return { ...plan, actions, agreement: agreementOf(wish, disagreeing, invalid) };
  }
  const { reason, message, notice } = decided;
  const event = reason === 'MovePending' ? EventReason.MovePending : EventReason.NetworksDisagree;
  notices.push({ nad: wish.nad, reason: event, message: notice });
  return { ...plan, actions: [], agreement: { agree: false, reason, message } };
}

/** What brings the pool to what the NAD says; undefined where nothing is to be done; or why it cannot be done now. */
function decide(wish: Wish, derivation: Derivation): DerivationAction | Obstacle | undefined {
  const { nad, spec, pool } = wish;
  const { namespace, network, pool: existing, leases } = derivation;
  if (existing === undefined) {
    return obstacleToMove(wish, derivation) ?? { kind: 'create', pool: derivedPool(namespace, spec), nad };
  }
  if (!isDerived(existing, derivation)) {
    const message = `AddressPool ${existing.metadata.name} was not made for NADs of namespace ${namespace} and network ${network}: rename that pool`;
    return { kind: 'obstacle', reason: 'LeasedOutside', message, notice: message };
  }
  // the API server lets no pool change it: two owners could have one address
  const moves = addressSpaceOf(existing) !== pool.addressSpace;
  if (moves) {
    const obstacle = obstacleToMove(wish, derivation);
    if (obstacle !== undefined) return obstacle;
  }
  // it is made anew once it is gone
  if (isBeingDeleted(existing)) return undefined;
  if (moves) return { kind: 'delete', pool: existing };
  const compiled = compilePool(existing);
  if (compiled.ok && isSame(compiled.pool, pool)) return undefined;
  const outside = outsideOf(leases(), pool);
  if (outside.length === 0) return { kind: 'update', pool: existing, spec, nad };
  const who = named(outside, outside.length, () => true);
  const message = `NAD ${objectKey(nad)} leaves out addresses that are leased: ${who}; the pool stays as it is until they are free, so add them to the NAD again`;
  return { kind: 'obstacle', reason: 'LeasedOutside', message, notice: message };
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
    return { kind: 'obstacle', reason: 'MovePending', message, notice };
  }
  if (fenceMs === undefined) return undefined;
  const message = `${says}: no address is given out until no CNI ADD that began before can be under way, which takes up to ${fenceMs / 1000} s`;
  return { kind: 'obstacle', reason: 'MovePending', message, notice: message };
}

function planWithout(derivation: Derivation, invalid: readonly NetworkAttachment[]): Omit<DerivationPlan, 'notices'> {
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
  const keys = (nads: readonly NetworkAttachment[]) => nads.map(objectKey).join(', ');
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

function meaningOf(pool: Pool): string {
  const { addressSpace, subnets, cooldownMs, stickyMs, retainsClaims, blockSize, publishesCapacity } = pool;
  const { namespaces, nodeSelector } = pool;
  const meaning = [
    [addressSpace, subnets, cooldownMs, stickyMs, retainsClaims, blockSize, publishesCapacity],
    namespaces && [...namespaces].sort(),
    nodeSelector && Object.entries(nodeSelector).sort(([a], [b]) => (a < b ? -1 : 1)),
  ];
  return JSON.stringify(meaning, (_key, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}
