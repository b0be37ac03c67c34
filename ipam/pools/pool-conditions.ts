import { nameFirst } from '../../api/json.js';
import { formatAddress } from '../../addressing/address/address.js';
import type { EvaluatedPool } from '../../addressing/directory/pool-state.js';
import { isServingNamespace } from '../../addressing/directory/resolution.js';
import type { QuarantinedByMac } from '../../addressing/lease/lease-quarantine.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { type Pool, hasDraining } from '../../addressing/pool/pool.js';
import { PoolCondition, type ReasonOf } from '../../api/conditions.js';
import type { Condition } from '../../api/meta.js';
import { type ProbingStop, probingStopOf } from '../leases/probing-stop.js';
import { MAX_NAMED, formatLeases } from './named-leases.js';
import type { LeaseCounts } from './usage.js';

/** A condition without its transition time. */
export type DesiredCondition = {
  [Type in PoolCondition]: { type: Type; status: Condition['status']; reason: ReasonOf<Type>; message: string };
}[PoolCondition];

/** Says who is still in the draining ranges of a pool. @returns undefined if it has none */
export function drainingCondition(
  pool: Pool,
  { draining }: Pick<LeaseCounts, 'draining'>,
  leaseOf: (name: string) => LeaseRecord | undefined,
): DesiredCondition | undefined {
  if (!hasDraining(pool)) return undefined;
  const type = PoolCondition.Draining;
  const count = draining.size;
  if (count === 0) {
    const message = 'No address of the draining ranges is in use: remove them from spec.subnets';
    return { type, status: 'False', reason: 'Drained', message };
  }
  const leases = [...draining].flatMap((name) => leaseOf(name) ?? []);
  const subject = count === 1 ? '1 address of the draining ranges is' : `${count} addresses of the draining ranges are`;
  const message =
    `${subject} in use: ${formatLeases(leases, count)}. VMs get other addresses at their next start, pods when they are ` +
    'created again. Delete reservations';
  return { type, status: 'True', reason: 'AddressesInUse', message };
}

/** Says why the addresses of a pool are not probed for a while. @returns undefined if they are, or if the pool does not probe */
export function probingCondition(pool: Pool, quarantined: QuarantinedByMac = new Map()): DesiredCondition | undefined {
  const stop = pool.guest?.probe === true ? probingStopOf(pool, quarantined) : undefined;
  if (stop === undefined) return undefined;
  return { type: PoolCondition.ProbingStopped, status: 'True', reason: stop.reason, message: messageOf(stop) };
}

function messageOf(stop: ProbingStop): string {
  const named = stop.leases.slice(0, MAX_NAMED).map((lease) => {
    const by = stop.reason === 'ProxyARP' ? '' : ` (${lease.quarantine?.mac ?? ''})`;
    return `${formatAddress(lease.address)}${by}`;
  });
  const addresses = nameFirst(named, MAX_NAMED, stop.leases.length);
  const consequence = 'New addresses are not probed until one of these leases expires or is deleted';
  return stop.reason === 'ProxyARP'
    ? `The host with MAC address ${stop.mac} answers for ${addresses}: it is a proxy, or an attacker. ${consequence}`
    : `No more addresses may be quarantined. Other hosts have ${addresses}: give them other addresses, or exclude these from the pool. ${consequence}`;
}

/** An administrator's pool serves users of a derived pool. */
export interface AdminOverride {
  /** Whether the derived pool has no users left. Otherwise it may serve other namespaces through its NADs. */
  readonly isComplete: boolean;
  readonly message: string;
}

/**
 * Returns the administrator's pool that serves the namespace of a derived pool's NADs; undefined if there is none.
 * @param derived its `namespaces` are those that it serves; absent: all
 * @param pools all pools of the network
 */
export function adminOverrideOf(
  {
    name,
    nadNamespace,
    namespaces,
  }: { name: string; nadNamespace: string; namespaces?: readonly string[] | undefined },
  pools: readonly EvaluatedPool[],
): AdminOverride | undefined {
  const admins = pools.filter((pool) => pool.nadNamespace === undefined && isServingNamespace(pool, nadNamespace));
  const winner = admins.find(({ state }) => state.kind === 'served') ?? admins[0];
  if (winner === undefined) return undefined;
  const isTaken = (namespace: string) =>
    pools.some((pool) => pool.nadNamespace === undefined && isServingNamespace(pool, namespace));
  const isWhole = admins.some((admin) => admin.namespaces === undefined) || namespaces?.every(isTaken) === true;
  const message =
    `AddressPool ${name} serves no workloads${isWhole ? '' : ` of namespace ${nadNamespace}`}: AddressPool ${winner.name}, which an administrator ` +
    `created for network ${winner.network}, takes precedence. Existing leases stay. To use the addresses of the NAD, delete that pool, ` +
    `or set its spec.namespaces without ${nadNamespace}`;
  return { isComplete: isWhole, message };
}
