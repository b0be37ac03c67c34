import { type IPAMClaim, nadOf } from '../../api/ipam-claim.js';
import { shorten } from '../../api/json.js';
import { joinKey, objectKey, splitKey } from '../../api/meta.js';
import type { NetworkAttachment } from '../../cluster/shrink.js';
import type { Pool } from '../core/pool.js';
import type { JudgedPool } from './verdict.js';

/** Who serves a claim. */
export type Resolution =
  | { kind: 'served'; pool: Pool }
  /**
   * It is ours, and no pool can: the message says why and what to do. `isUncertain`: it may be somebody else's, to be left alone for now.
   * `isOnItsWay`: a NAD describes the pool, which will be made.
   */
  | { kind: 'unserved'; message: string; isUncertain?: true; isOnItsWay?: true }
  /** It is somebody else's, never to be touched. */
  | { kind: 'foreign'; message: string };

/** What is looked at for a claim. */
export interface ResolutionTable {
  /** While the API server does not know NADs, that there is none proves nothing. */
  areNadsServed(): boolean;
  nad(key: string): NetworkAttachment | undefined;
  /** Those in the namespace whose config names the network, in the order of their age. */
  nadsOf(namespace: string, network: string): readonly NetworkAttachment[];
  /** Admins' pools, oldest first. */
  adminPools(network: string): readonly JudgedPool[];
  derivedPools(network: string, nadNamespace: string): readonly JudgedPool[];
}

/** To whom the NAD of a claim delegates. `unknown`: there is none that could say it. */
type Delegate =
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
  return { namespace: metadata.namespace ?? '', network: spec.network, nad: nadOf(claim), hasAddresses };
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
    return { kind: 'foreign', message: `${delegate.message}, and no AddressPool serves network ${shorten(network)}` };
  }
  if (delegate.problem !== undefined) return { kind: 'unserved', message: delegate.problem };
  const [closed] = table.derivedPools(network, nadNamespace);
  if (closed !== undefined) return { kind: 'unserved', message: notAdmitted(closed, namespace, nadNamespace) };
  const subject = `no AddressPool serves network ${shorten(network)} for namespace ${namespace}`;
  if (delegate.describesPool === true) {
    return { kind: 'unserved', message: `${subject} yet: the events of its NAD say why`, isOnItsWay: true };
  }
  return { kind: 'unserved', message: `${subject}: create one, or give the NAD subnets` };
}

function delegateOfNad(key: string, network: string, table: ResolutionTable): Delegate {
  const nad = table.nad(key);
  if (nad === undefined) return { kind: 'unknown', message: `NAD ${key} is gone` };
  if (!nad.config.ok) return { kind: 'unknown', message: unreadable(nad, nad.config.problem) };
  const { name } = nad.config.network;
  // what the NAD says is about another network now
  return name === network ? judge(nad) : { kind: 'unknown', message: `NAD ${key} is for network ${shorten(name)} now` };
}

/** For claims made by others, which do not name their NAD. */
function delegateOfNetwork(namespace: string, network: string, table: ResolutionTable): Delegate {
  const delegates = table.nadsOf(namespace, network).map(judge);
  const own = delegates.find(({ kind }) => kind === 'ours');
  return (
    own ??
    delegates[0] ?? { kind: 'unknown', message: `no NAD in namespace ${namespace} is for network ${shorten(network)}` }
  );
}

function judge(nad: NetworkAttachment): Delegate {
  const { delegation } = nad;
  switch (delegation.kind) {
    case 'none':
      return { kind: 'foreign', message: `NAD ${objectKey(nad)} has no IPAM` };
    case 'other':
      return { kind: 'foreign', message: `NAD ${objectKey(nad)} delegates IPAM to ${shorten(delegation.type)}` };
    case 'invalid':
      return { kind: 'ours', problem: unreadable(nad, delegation.problem) };
    case 'holdfast':
      return { kind: 'ours', describesPool: delegation.config.subnets.length > 0 };
  }
}

function unreadable(nad: NetworkAttachment, { field, message }: { field: string; message: string }): string {
  return `NAD ${objectKey(nad)} cannot be used: ${field} ${message}`;
}

/** An admin's pool wins. One that is going away leaves its users to the next. */
function servingPool(
  { network, namespace, hasAddresses = false }: NetworkUser,
  nadNamespace: string,
  table: ResolutionTable,
): Resolution | undefined {
  const admins = table.adminPools(network).filter((pool) => admits(pool, namespace));
  const derived = table.derivedPools(network, nadNamespace).filter((pool) => hasAddresses || admits(pool, namespace));
  const candidates = [admins.filter(isNotClosing), derived.filter(isNotClosing), admins, derived];
  const pools = candidates.find((group) => group.length > 0);
  if (pools === undefined) return undefined;
  let message = '';
  for (const { verdict } of pools) {
    if (verdict.kind === 'served') return { kind: 'served', pool: verdict.pool };
    message ||= verdict.message;
  }
  return { kind: 'unserved', message };
}

/** Why a claim that has addresses of a pool gets no others of it; undefined if the pool serves its namespace. */
export function closedTo(claim: IPAMClaim, pool: Pool): string | undefined {
  const { namespace, nad } = userOfClaim(claim);
  if (pool.namespaces === undefined || pool.namespaces.has(namespace)) return undefined;
  return notAdmitted(pool, namespace, nad === undefined ? namespace : splitKey(nad).namespace);
}

function notAdmitted(
  { name, network }: Pick<Pool, 'name' | 'network'>,
  namespace: string,
  nadNamespace: string,
): string {
  return (
    `AddressPool ${name} does not serve namespace ${namespace}: add it to "namespaces" in the ipam object of the NADs of network ` +
    `${shorten(network)} in namespace ${nadNamespace}, or ask the administrator for an AddressPool`
  );
}

/** Whether an admin's pool has the users of a namespace, rather than a pool derived from their NAD: it may still be unable to serve them. */
export function takesUsers(admin: JudgedPool, namespace: string): boolean {
  return isNotClosing(admin) && admits(admin, namespace);
}

function isNotClosing({ verdict }: JudgedPool): boolean {
  return verdict.kind !== 'closing';
}

function admits({ namespaces }: JudgedPool, namespace: string): boolean {
  return namespaces === undefined || namespaces.includes(namespace);
}

/** A key of the tables by (namespace, network). */
export function networkKey(namespace: string, network: string): string {
  return joinKey(namespace, network);
}
