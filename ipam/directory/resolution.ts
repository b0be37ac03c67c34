import { type IPAMClaim, claimNadOf } from '../../api/ipam-claim.js';
import { truncate } from '../../api/json.js';
import { joinKey, objectKey, splitKey } from '../../api/meta.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import type { Pool } from '../core/pool.js';
import type { EvaluatedPool } from './pool-state.js';

/** Who serves a claim. */
export type Resolution =
  | { kind: 'served'; pool: Pool }
  /**
   * It is ours, and no pool can: the message says why and what to do. `isUncertain`: it may be somebody else's, to be left alone for now.
   * `isOnItsWay`: a NAD describes the pool, which will be made.
   */
  | { kind: 'unserved'; message: string; isUncertain?: true; isPoolPending?: true }
  /** It is somebody else's, never to be touched. */
  | { kind: 'foreign'; message: string };

/** What is looked at for a claim. */
export interface ResolutionTable {
  /** While the API server does not know NADs, that there is none proves nothing. */
  areNadsServed(): boolean;
  nad(key: string): ParsedNad | undefined;
  /** Those in the namespace whose config names the network, in the order of their age. */
  nadsOf(namespace: string, network: string): readonly ParsedNad[];
  /** Admins' pools, oldest first. */
  adminPools(network: string): readonly EvaluatedPool[];
  derivedPools(network: string, nadNamespace: string): readonly EvaluatedPool[];
}

/** To whom the NAD of a claim delegates. `unknown`: there is none that could say it. */
type IpamDelegate =
  | { kind: 'ours'; problem?: string; describesPool?: boolean }
  | { kind: 'foreign'; message: string }
  | { kind: 'unknown'; message: string };

/** Who asks for addresses of a network. */
export interface NetworkUser {
  /** Of the workload. */
  readonly namespace: string;
  readonly network: string;
  /** `namespace/name` of the NAD by which it is attached; claims of others do not tell. */
  readonly nad?: string | undefined;
  /** It was given addresses before: a derived pool that ceases to serve its namespace goes on serving it. */
  readonly hasAddresses?: boolean;
}

export function userOfClaim(claim: IPAMClaim): NetworkUser {
  const { metadata, spec, status } = claim;
  // others, too, write claims, and not all of them write all of a status
  const ips = status?.ips ?? [];
  const hasAddresses = ips.length > 0;
  return { namespace: metadata.namespace ?? '', network: spec.network, nad: claimNadOf(claim), hasAddresses };
}

export function resolve(user: NetworkUser, table: ResolutionTable): Resolution {
  const { namespace, network, nad: nadKey } = user;
  const nadNamespace = nadKey === undefined ? namespace : splitKey(nadKey).namespace;
  const delegate =
    nadKey === undefined ? delegateOfNetwork(namespace, network, table) : delegateOfNad(nadKey, network, table);
  if (delegate.kind === 'foreign') return delegate;
  if (delegate.kind === 'unknown' && !table.areNadsServed()) {
    return { kind: 'unserved', message: 'the API server serves no NetworkAttachmentDefinitions', isUncertain: true };
  }
  const found = servingPool(user, nadNamespace, table);
  if (found !== undefined) return found;
  if (delegate.kind === 'unknown') {
    return { kind: 'foreign', message: `${delegate.message}, and no AddressPool serves network ${truncate(network)}` };
  }
  if (delegate.problem !== undefined) return { kind: 'unserved', message: delegate.problem };
  const [restrictedPool] = table.derivedPools(network, nadNamespace);
  if (restrictedPool !== undefined)
    return { kind: 'unserved', message: namespaceNotServed(restrictedPool, namespace, nadNamespace) };
  const subject = `no AddressPool serves network ${truncate(network)} for namespace ${namespace}`;
  if (delegate.describesPool === true) {
    return { kind: 'unserved', message: `${subject} yet: the events of its NAD say why`, isPoolPending: true };
  }
  return { kind: 'unserved', message: `${subject}: create one, or give the NAD subnets` };
}

function delegateOfNad(key: string, network: string, table: ResolutionTable): IpamDelegate {
  const nad = table.nad(key);
  if (nad === undefined) return { kind: 'unknown', message: `NAD ${key} is gone` };
  if (!nad.config.ok) return { kind: 'unknown', message: unusableNad(nad, nad.config.problem) };
  const { name } = nad.config.network;
  // what the NAD says is about another network now
  return name === network
    ? delegateOf(nad)
    : { kind: 'unknown', message: `NAD ${key} is for network ${truncate(name)} now` };
}

/** For claims made by others, which do not name their NAD. */
function delegateOfNetwork(namespace: string, network: string, table: ResolutionTable): IpamDelegate {
  const delegates = table.nadsOf(namespace, network).map(delegateOf);
  const own = delegates.find(({ kind }) => kind === 'ours');
  return (
    own ??
    delegates[0] ?? { kind: 'unknown', message: `no NAD in namespace ${namespace} is for network ${truncate(network)}` }
  );
}

function delegateOf(nad: ParsedNad): IpamDelegate {
  const { delegation } = nad;
  switch (delegation.kind) {
    case 'none':
      return { kind: 'foreign', message: `NAD ${objectKey(nad)} has no IPAM` };
    case 'other':
      return { kind: 'foreign', message: `NAD ${objectKey(nad)} delegates IPAM to ${truncate(delegation.type)}` };
    case 'invalid':
      return { kind: 'ours', problem: unusableNad(nad, delegation.problem) };
    case 'holdfast':
      return { kind: 'ours', describesPool: delegation.config.subnets.length > 0 };
  }
}

function unusableNad(nad: ParsedNad, { field, message }: { field: string; message: string }): string {
  return `NAD ${objectKey(nad)} cannot be used: ${field} ${message}`;
}

/** An admin's pool wins. One that is going away leaves its users to the next. */
function servingPool(
  { network, namespace, hasAddresses = false }: NetworkUser,
  nadNamespace: string,
  table: ResolutionTable,
): Resolution | undefined {
  const admins = table.adminPools(network).filter((pool) => allowsNamespace(pool, namespace));
  const derived = table
    .derivedPools(network, nadNamespace)
    .filter((pool) => hasAddresses || allowsNamespace(pool, namespace));
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

/** Why a claim that has addresses of a pool gets no others of it; undefined if the pool serves its namespace. */
export function namespaceRefusal(claim: IPAMClaim, pool: Pool): string | undefined {
  const { namespace, nad } = userOfClaim(claim);
  if (pool.namespaces === undefined || pool.namespaces.has(namespace)) return undefined;
  return namespaceNotServed(pool, namespace, nad === undefined ? namespace : splitKey(nad).namespace);
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

/** Whether an admin's pool has the users of a namespace, rather than a pool derived from their NAD: it may still be unable to serve them. */
export function isServingNamespace(admin: EvaluatedPool, namespace: string): boolean {
  return isNotBeingDeleted(admin) && allowsNamespace(admin, namespace);
}

function isNotBeingDeleted({ state }: EvaluatedPool): boolean {
  return state.kind !== 'closing';
}

function allowsNamespace({ namespaces }: EvaluatedPool, namespace: string): boolean {
  return namespaces === undefined || namespaces.includes(namespace);
}

/** A key of the tables by (namespace, network). */
export function networkKey(namespace: string, network: string): string {
  return joinKey(namespace, network);
}
