import { shortHash } from '../../api/names.js';
import type { Address } from '../address/address.js';
import { overlap } from '../address/cidr.js';
import { type Pool, servesNamespace } from './pool.js';
import type { Subnet } from './subnet.js';

/** A pool of an address space, and who made it. */
export interface SpacePool {
  readonly pool: Pool;
  readonly createdAt: string;
  /** The namespace of its NADs; absent: an administrator created it. */
  readonly nadNamespace?: string | undefined;
}

/** A request of a NAD to have its pool in an address space. */
interface AddressSpaceRequest {
  readonly pool: Pool;
  /** The name of the derived pool, which exists or would be created. */
  readonly name: string;
  /** The NAD's namespace. */
  readonly namespace: string;
  /** True if the NAD names the address space; false if it gets the network's name by default. */
  readonly isNamed: boolean;
  /** Equal subnets alone do not permit pools of several namespaces to share addresses. */
  readonly isOwnershipEnforced: boolean;
}

/**
 * Returns why a NAD may not have its pool in an address space, or undefined if it may. The message names no pools and no addresses, because they
 * may be those of others.
 *
 * - If the NAD names a space with administrators' pools, one of them must serve its namespace.
 * - A pool with addresses of an administrator's pool may serve only namespaces that the administrator's pool serves.
 * - The same is true for addresses of an older pool of another namespace, unless both have equal subnets.
 * It yields between two pools, because tenants decide how many there are, and comparing two large ones takes 0.3 ms.
 * @param others all pools of the address space; the pool of the NAD may be one of them
 */
export function* addressSpaceRefusal(
  request: AddressSpaceRequest,
  others: readonly SpacePool[],
): Generator<undefined, string | undefined> {
  const { pool, name, namespace, isNamed } = request;
  const space = `"${pool.addressSpace}" is an address space of`;
  const restricting = others.filter(
    (other) => other.nadNamespace === undefined && (isNamed || other.pool.network !== pool.network),
  );
  if (restricting.length > 0 && !restricting.some((other) => servesNamespace(other.pool, namespace))) {
    return (
      `${space} pools that do not serve namespace ${namespace}: use another address space, or ask the administrator to add ` +
      `${namespace} to spec.namespaces of such a pool`
    );
  }
  const existing = others.find((other) => other.pool.name === name && other.nadNamespace === namespace);
  for (const other of others) {
    if (takesFrom(request, other, existing))
      return (
        `${space} a pool that has some of these addresses and does not serve ${firstUnserved(other.pool, request)}: use other addresses ` +
        'or another address space, ask the administrator, or ask the owner of that network to add the namespace to "namespaces" in its NAD'
      );
    yield;
  }
  return undefined;
}

/**
 * Returns the derived pools with addresses of a pool that does not serve their namespaces. Older derived pools are not returned for a derived one.
 * It yields between two pools, as {@link addressSpaceRefusal} does.
 */
export function* usersWithoutConsent(
  owner: SpacePool,
  others: readonly SpacePool[],
): Generator<undefined, SpacePool[]> {
  const users: SpacePool[] = [];
  for (const other of others) {
    if (isUserWithoutConsent(other, owner)) users.push(other);
    yield;
  }
  return users;
}

function isUserWithoutConsent(other: SpacePool, owner: SpacePool): boolean {
  return (
    other.nadNamespace !== undefined &&
    other.nadNamespace !== owner.nadNamespace &&
    (owner.nadNamespace === undefined || isOlder(owner, other)) &&
    !servesUsersOf(owner.pool, other.pool) &&
    sharesAddress(other.pool, owner.pool)
  );
}

/** @param existing the pool of the NAD as it is: what it has of a younger pool was never that pool's alone */
function takesFrom(request: AddressSpaceRequest, other: SpacePool, existing: SpacePool | undefined): boolean {
  const { pool, namespace, isOwnershipEnforced } = request;
  if (other.nadNamespace === namespace || servesUsersOf(other.pool, pool)) return false;
  if (other.nadNamespace === undefined) return sharesAddress(pool, other.pool);
  if (!sharesAddress(pool, other.pool)) return false;
  if (!isOwnershipEnforced && subnetsKey(pool) === subnetsKey(other.pool)) return false;
  return existing === undefined || isOlder(other, existing) || !sharesAddress(existing.pool, other.pool);
}

/** True if the owner serves all namespaces that the pool serves. */
function servesUsersOf(owner: Pool, { namespaces }: Pool): boolean {
  if (owner.namespaces === undefined) return true;
  return namespaces !== undefined && [...namespaces].every((namespace) => servesNamespace(owner, namespace));
}

function firstUnserved(owner: Pool, { pool, namespace }: AddressSpaceRequest): string {
  if (!servesNamespace(owner, namespace)) return `namespace ${namespace}`;
  const first = [...(pool.namespaces ?? [])].find((each) => !servesNamespace(owner, each));
  return first === undefined ? 'all namespaces' : `namespace ${first}`;
}

function isOlder(a: SpacePool, b: SpacePool): boolean {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt;
  return a.pool.name < b.pool.name;
}

/** True if the pool leases an address that belongs to the owner: one that the owner leases, its gateway, or one that it excludes. */
function sharesAddress(pool: Pool, owner: Pool): boolean {
  for (const [{ leasable }, { leasable: leased, excluded, gateway }] of overlappingSubnets(pool, owner)) {
    if (leasable.firstShared(leased) !== undefined || leasable.firstShared(excluded) !== undefined) return true;
    if (gateway !== undefined && leasable.has(gateway.value)) return true;
  }
  return false;
}

const keys = new WeakMap<Pool, string>();

/** Equal for pools with the same addresses, gateways and reserved addresses. Draining is left out: a range is drained in one NAD after the other. */
function subnetsKey(pool: Pool): string {
  const known = keys.get(pool) ?? describeSubnets(pool);
  keys.set(pool, known);
  return known;
}

function describeSubnets({ subnets }: Pool): string {
  const described = subnets.map(({ cidr, leasable, excluded, gateway, requestable, open }) => {
    const ranges = [leasable, excluded, requestable.subtract(open)].map((set) => set.ranges);
    return JSON.stringify([cidr, gateway, ranges], (_key, value: unknown) =>
      typeof value === 'bigint' ? value.toString() : value,
    );
  });
  // a hash, to save memory: it is kept as long as the pool
  return shortHash(described.sort().join(), 64);
}

/** Returns the pairs of subnets with addresses in common, leasable or not. Tenants decide how many ranges a subnet has, so most pools are told apart by CIDRs alone. */
export function* overlappingSubnets(one: Pool, other: Pool): Generator<[Subnet, Subnet]> {
  for (const ours of one.subnets)
    for (const theirs of other.subnets) if (overlap(ours.cidr, theirs.cidr)) yield [ours, theirs];
}

/** Returns an address that both pools can lease: the first one of a subnet. Their address spaces do not matter. */
export function firstSharedAddress(one: Pool, other: Pool): Address | undefined {
  for (const [{ cidr, leasable }, theirs] of overlappingSubnets(one, other)) {
    const value = leasable.firstShared(theirs.leasable);
    if (value !== undefined) return { family: cidr.family, value };
  }
  return undefined;
}
