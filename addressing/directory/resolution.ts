import { type IPAMClaim, claimNadOf } from '../../api/ipam-claim.js';
import { truncate } from '../../api/json.js';
import { joinKey, objectKey, splitKey } from '../../api/meta.js';
import { describesPool } from '../../api/networks/ipam-config.js';
import { RESPONDERS_NAMESPACE } from '../../api/names.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { type Pool, servesNamespace } from '../pool/pool.js';
import type { EvaluatedPool } from './pool-state.js';

/** Which pool serves a claim, or why none does. */
export type Resolution =
  | { kind: 'served'; pool: Pool }
  /**
   * Holdfast is responsible, but no pool can serve it. `isUncertain`: it may belong to another IPAM, so leave it alone for now.
   * `isPoolPending`: a NAD describes the pool, which is going to be created.
   */
  | { kind: 'unserved'; message: string; isUncertain?: true; isPoolPending?: true }
  /**
   * Another IPAM is responsible: never touch it. `isUncertain`: nobody knows which one, because its NAD is missing or cannot be used, or it has
   * addresses of a pool that no cache shows.
   */
  | { kind: 'foreign'; message: string; isUncertain?: true };

/** The NADs and pools that decide about a claim. */
export interface ResolutionTable {
  /** If false, a missing NAD proves nothing. */
  areNadsServed(): boolean;
  nad(key: string): ParsedNad | undefined;
  /** The NADs in the namespace whose config names the network, oldest first. */
  nadsOf(namespace: string, network: string): readonly ParsedNad[];
  /** Administrators' pools, oldest first. */
  adminPools(network: string): readonly EvaluatedPool[];
  derivedPools(network: string, nadNamespace: string): readonly EvaluatedPool[];
}

/** The IPAM to which the NAD of a claim delegates. `unknown`: there is no such NAD. */
type IpamDelegate =
  | { kind: 'ours'; problem?: string; describesPool?: boolean }
  | { kind: 'foreign'; message: string }
  /** The NAD has no IPAM, and a pool may serve its guests. */
  | { kind: 'guest'; message: string }
  | { kind: 'unknown'; message: string };

/** A workload that needs addresses of a network. */
export interface NetworkUser {
  /** The namespace of the workload. */
  readonly namespace: string;
  readonly network: string;
  /** `namespace/name` of the NAD that attaches it; unknown for claims that others created. */
  readonly nad?: string | undefined;
  /** It shows addresses. A tenant may have written them. */
  readonly hasAddresses?: boolean;
  /** A derived pool serves it even if the pool does not serve its namespace. */
  readonly keepsPool?: boolean;
  /** It is a claim, whose addresses a guest may get where the NAD has no IPAM. A pod without a claim gets none there. */
  readonly isClaim?: boolean;
}

export function userOfClaim(claim: IPAMClaim): NetworkUser {
  const { metadata, spec, status } = claim;
  const { namespace = '' } = metadata;
  // other components write claims too, and may leave out parts of the status
  const ips = status?.ips ?? [];
  return { namespace, network: spec.network, nad: claimNadOf(claim), hasAddresses: ips.length > 0, isClaim: true };
}

/** Returns the namespace whose derived pool may serve a user. */
export function nadNamespaceOfUser({ namespace, nad }: NetworkUser): string {
  return nad === undefined ? namespace : splitKey(nad).namespace;
}

export function resolve(user: NetworkUser, table: ResolutionTable): Resolution {
  const { namespace, network, nad: nadKey } = user;
  const nadNamespace = nadNamespaceOfUser(user);
  const delegate = nadKey === undefined ? delegateOfNetwork(user, table) : delegateOfNad(nadKey, user, table);
  if (delegate.kind === 'foreign') return delegate;
  if (delegate.kind === 'guest') return resolveGuest(user, delegate.message, table);
  if (delegate.kind === 'unknown' && !table.areNadsServed()) {
    return {
      kind: 'unserved',
      message: 'the API server does not serve NetworkAttachmentDefinitions: install their CRD',
      isUncertain: true,
    };
  }
  const found = servingPool(user, nadNamespace, table);
  if (found !== undefined) return found;
  if (delegate.kind === 'unknown') {
    const message = `${delegate.message}, and no AddressPool serves network ${truncate(network)}`;
    return { kind: 'foreign', message, isUncertain: true };
  }
  if (delegate.problem !== undefined) return { kind: 'unserved', message: delegate.problem };
  const [restrictedPool] = table.derivedPools(network, nadNamespace);
  if (restrictedPool !== undefined)
    return { kind: 'unserved', message: namespaceNotServed(restrictedPool, namespace, nadNamespace) };
  const subject = `no AddressPool serves network ${truncate(network)} for namespace ${namespace}`;
  if (delegate.describesPool === true) {
    return { kind: 'unserved', message: `${subject} yet: see the events of its NAD`, isPoolPending: true };
  }
  return { kind: 'unserved', message: `${subject}: create one, or add subnets to the ipam object of the NAD` };
}

/**
 * On a NAD without IPAM, only pools with `spec.guest` serve. A claim that has addresses keeps its pool, whose `spec.guest` may be gone. Nobody but
 * such a pool gives it addresses there, so if there is none, the cache may not show it yet.
 */
function resolveGuest(user: NetworkUser, message: string, table: ResolutionTable): Resolution {
  const { namespace, network } = user;
  const nadNamespace = nadNamespaceOfUser(user);
  const adminPools = () => table.adminPools(network).filter(({ servesGuests }) => servesGuests);
  const found =
    servingPool(user, nadNamespace, { ...table, adminPools, derivedPools: () => [] }) ??
    (user.hasAddresses === true ? servingPool(user, nadNamespace, table) : undefined);
  if (found !== undefined) return found;
  const pool = table.adminPools(network).find((each) => isServingNamespace(each, namespace));
  const problem =
    pool === undefined
      ? `no AddressPool with spec.guest serves network ${truncate(network)} for namespace ${namespace}`
      : `AddressPool ${pool.name} has no spec.guest`;
  return {
    kind: 'foreign',
    message: `${message}, and ${problem}`,
    ...(user.hasAddresses === true && { isUncertain: true }),
  };
}

function delegateOfNad(key: string, { network, isClaim }: NetworkUser, table: ResolutionTable): IpamDelegate {
  const nad = table.nad(key);
  if (nad === undefined) return { kind: 'unknown', message: `NAD ${key} does not exist` };
  if (!nad.config.ok) return { kind: 'unknown', message: unusableNad(nad, nad.config.problem) };
  const { name } = nad.config.network;
  // a NAD of another network says nothing about this one
  return name === network
    ? delegateOf(nad, isClaim)
    : { kind: 'unknown', message: `NAD ${key} is for network ${truncate(name)} now` };
}

/** For claims that other components created, which do not name their NAD. */
function delegateOfNetwork({ namespace, network, isClaim }: NetworkUser, table: ResolutionTable): IpamDelegate {
  const nads = table.nadsOf(namespace, network);
  const isOurs = ({ delegation }: ParsedNad) => delegation.kind === 'holdfast' || delegation.kind === 'invalid';
  const isForGuests = ({ delegation, delivery }: ParsedNad) => delegation.kind === 'none' && delivery.kind === 'guest';
  const nad = nads.find(isOurs) ?? (isClaim ? nads.find(isForGuests) : undefined) ?? nads[0];
  if (nad !== undefined) return delegateOf(nad, isClaim);
  return { kind: 'unknown', message: `no NAD in namespace ${namespace} is for network ${truncate(network)}` };
}

function delegateOf(nad: ParsedNad, isClaim = false): IpamDelegate {
  const { delegation, delivery } = nad;
  switch (delegation.kind) {
    case 'none': {
      const message = `NAD ${objectKey(nad)} has no IPAM`;
      if (isClaim && delivery.kind === 'guest') return { kind: 'guest', message };
      return {
        kind: 'foreign',
        message: isClaim && delivery.kind === 'none' ? `${message}, and ${delivery.why}` : message,
      };
    }
    case 'other':
      return { kind: 'foreign', message: `NAD ${objectKey(nad)} delegates IPAM to ${truncate(delegation.type)}` };
    case 'invalid':
      return { kind: 'ours', problem: unusableNad(nad, delegation.problem) };
    case 'holdfast':
      return { kind: 'ours', describesPool: describesPool(delegation.config) };
  }
}

function unusableNad(nad: ParsedNad, { field, message }: { field: string; message: string }): string {
  return `NAD ${objectKey(nad)} cannot be used: ${field} ${message}`;
}

/** An administrator's pool wins. A pool that is being deleted serves only if there is no other. */
function servingPool(
  { network, namespace, keepsPool = false }: NetworkUser,
  nadNamespace: string,
  table: ResolutionTable,
): Resolution | undefined {
  const admins = table.adminPools(network).filter((pool) => allowsNamespace(pool, namespace));
  const derived = table
    .derivedPools(network, nadNamespace)
    .filter((pool) => keepsPool || allowsNamespace(pool, namespace));
  const candidates = [admins.filter(isNotBeingDeleted), derived.filter(isNotBeingDeleted), admins, derived];
  const pools = candidates.find((group) => group.length > 0);
  if (pools === undefined) return undefined;
  let message = '';
  for (const { state } of pools) {
    if (state.kind === 'served') return { kind: 'served', pool: state.pool };
    message ||= state.message;
  }
  return { kind: 'unserved', message };
}

/** Returns why a claim with addresses of a pool gets no other address of it; undefined if the pool serves its namespace. */
export function namespaceRefusal(claim: IPAMClaim, pool: Pool): string | undefined {
  const user = userOfClaim(claim);
  const { namespace } = user;
  if (servesNamespace(pool, namespace)) return undefined;
  if (namespace === RESPONDERS_NAMESPACE && pool.guest?.dhcp !== undefined) return undefined;
  return namespaceNotServed(pool, namespace, nadNamespaceOfUser(user));
}

function namespaceNotServed(
  { name, network }: Pick<Pool, 'name' | 'network'>,
  namespace: string,
  nadNamespace: string,
): string {
  return (
    `AddressPool ${name} does not serve namespace ${namespace}: add it to "namespaces" in the ipam object of the NADs of network ` +
    `${truncate(network)} in namespace ${nadNamespace}, or ask the administrator for an AddressPool`
  );
}

/** True if an administrator's pool, instead of a derived one, is responsible for a namespace. It may still be invalid. */
export function isServingNamespace(admin: EvaluatedPool, namespace: string): boolean {
  return isNotBeingDeleted(admin) && allowsNamespace(admin, namespace);
}

function isNotBeingDeleted({ state }: EvaluatedPool): boolean {
  return state.kind !== 'closing';
}

/** The pool of a network also serves the claims of its own responders. */
function allowsNamespace({ namespaces, hasResponders }: EvaluatedPool, namespace: string): boolean {
  if (namespaces === undefined || namespaces.includes(namespace)) return true;
  return namespace === RESPONDERS_NAMESPACE && hasResponders;
}

/** Returns the key of tables by namespace and network. */
export function networkKey(namespace: string, network: string): string {
  return joinKey(namespace, network);
}
