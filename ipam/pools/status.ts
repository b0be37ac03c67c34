import { nameFirst } from '../../api/json.js';
import { PoolCondition } from '../../api/conditions.js';
import type { AddressPoolStatus } from '../../api/address-pool.js';
import { type Condition, transitionTimeOf } from '../../api/meta.js';
import type { NetworkConfigProblem } from '../../api/networks/network-attachment.js';
import { COUNTS, type CountField } from '../../addressing/address-states.js';
import { toSafeNumber } from '../../addressing/address/ranges.js';
import { FAMILIES, type Family } from '../../addressing/address/address.js';
import { type LeaseRecord, isHeldOrReserved } from '../../addressing/lease/lease.js';
import { type Pool, addressesOf, hasDraining } from '../../addressing/pool/pool.js';
import type { QuarantinedByMac } from '../../addressing/lease/lease-quarantine.js';
import { type AdminOverride, type DesiredCondition, drainingCondition, probingCondition } from './pool-conditions.js';
import { type NadAgreement, describeProblems } from './requested-pools.js';
import { MAX_NAMED, formatLeases } from './named-leases.js';
import type { LeaseCounts } from './usage.js';
import type { PoolState } from '../../addressing/directory/pool-state.js';

export type PoolCounts = Omit<AddressPoolStatus, 'conditions' | 'observedGeneration'>;
const FAMILY_FIELDS = { 4: 'ipv4', 6: 'ipv6' } as const satisfies Record<Family, keyof PoolCounts>;

/** The addresses of one family of a pool, by state. */
export interface FamilyCounts extends Readonly<Record<CountField, bigint>> {
  readonly family: Family;
}

/** @param freeOf the number of addresses that any owner may get */
export function usesOf(
  pool: Pool | undefined,
  { byFamily }: LeaseCounts,
  freeOf: (family: Family) => bigint,
): FamilyCounts[] {
  return FAMILIES.map((family) => {
    const { states, requestOnly, ineffective } = byFamily[family];
    const onRequest =
      pool === undefined
        ? 0n
        : addressesOf(pool, family, 'requestable').size - addressesOf(pool, family, 'open').size - BigInt(requestOnly);
    return {
      family,
      leased: BigInt(states.held),
      cooling: BigInt(states.released),
      free: freeOf(family),
      reserved: onRequest + BigInt(states.reserved - ineffective),
      quarantined: BigInt(states.quarantined),
    };
  });
}

export function capacityOf(use: FamilyCounts): bigint {
  return COUNTS.reduce((sum, { field }) => sum + use[field], 0n);
}

export function countsOf(pool: Pool | undefined, usage: LeaseCounts, uses: readonly FamilyCounts[]): PoolCounts {
  const isCounted = (use: FamilyCounts) => pool?.families.includes(use.family) === true || capacityOf(use) > 0n;
  return {
    ...sumOf(uses),
    heldByStopped: usage.stopped,
    ...(pool !== undefined && hasDraining(pool) && { draining: usage.draining.size }),
    ...Object.fromEntries(uses.filter(isCounted).map((use) => [FAMILY_FIELDS[use.family], sumOf([use])])),
  };
}

function sumOf(uses: readonly FamilyCounts[]): { capacity: number } & Record<CountField, number> {
  const sum = (countOf: (use: FamilyCounts) => bigint) =>
    toSafeNumber(uses.reduce((all, use) => all + countOf(use), 0n));
  const counts = COUNTS.map(({ field, isOptional }) => ({ field, isOptional, count: sum((use) => use[field]) }));
  const shown = counts.filter(({ isOptional, count }) => !isOptional || count > 0);
  const fields = Object.fromEntries(shown.map(({ field, count }) => [field, count])) as Record<CountField, number>;
  return { capacity: sum(capacityOf), ...fields };
}

export interface PoolStatusInput {
  state: PoolState;
  usage: LeaseCounts;
  /** The pool is being deleted, and stays this long, because a CNI ADD that began earlier may still be running. */
  fenceMs?: number;
  /** The source of the leases that messages name. */
  leases: { ofPool(): Iterable<LeaseRecord>; get(name: string): LeaseRecord | undefined };
  /** Of a derived pool. */
  agreement?: NadAgreement;
  /** What the NAD of a derived pool requests without permission. */
  notPermitted?: readonly NetworkConfigProblem[];
  /** The administrator's pool that serves users of this derived pool. */
  adminOverride?: AdminOverride;
  /** The quarantined leases of the pool. Default: none. */
  quarantined?: QuarantinedByMac;
  /** A message about another pool on the same layer-2 segment that has some of the addresses. */
  overlap?: string | undefined;
  /** Names derived pools that have addresses of this pool, which does not serve their namespaces. */
  usedByOthers?: string | undefined;
}

export function conditionsOf(input: PoolStatusInput): DesiredCondition[] {
  const { state, agreement, overlap, usedByOthers, notPermitted = [] } = input;
  const conditions = [readyCondition(input), conflictCondition(input)];
  const add = (condition: DesiredCondition) => conditions.push(condition);
  if (agreement !== undefined) {
    const { agree, reason, message } = agreement;
    add({ type: PoolCondition.NetworksAgree, status: agree ? 'True' : 'False', reason, message });
  }
  if (notPermitted.length > 0) {
    const message = describeProblems(notPermitted);
    add({ type: PoolCondition.NotPermitted, status: 'True', reason: 'AdministratorRequired', message });
  }
  if (state.kind === 'closing') add(deletionCondition(input));
  // the pool serves nevertheless: otherwise one tenant could switch off the pool of another
  if (overlap !== undefined)
    add({ type: PoolCondition.OverlapsOnWire, status: 'True', reason: 'OtherAddressSpace', message: overlap });
  // pools that existed before this one continue to serve, because the administrator may have meant it
  if (usedByOthers !== undefined)
    add({ type: PoolCondition.UsedByOthers, status: 'True', reason: 'NamespaceNotServed', message: usedByOthers });
  const draining =
    state.kind === 'served' && drainingCondition(state.pool, input.usage, (name) => input.leases.get(name));
  if (draining) add(draining);
  const stopped = state.kind === 'served' && probingCondition(state.pool, input.quarantined);
  if (stopped) add(stopped);
  return conditions;
}

/**
 * Adds transition times: a condition whose status has not changed keeps its own.
 * @param now milliseconds since the epoch
 */
export function withTransitionTimes(
  conditions: readonly Omit<Condition, 'lastTransitionTime'>[],
  before: readonly Condition[] | undefined,
  now: number,
): Condition[] {
  return conditions.map((condition) => {
    const known = before?.find(({ type }) => type === condition.type);
    return { ...condition, lastTransitionTime: transitionTimeOf(known, condition.status, now) };
  });
}

function readyCondition({ state, usage, leases, adminOverride }: PoolStatusInput): DesiredCondition {
  const type = PoolCondition.Ready;
  switch (state.kind) {
    case 'served': {
      if (adminOverride?.isComplete === true) {
        return { type, status: 'False', reason: 'Conflict', message: adminOverride.message };
      }
      const outside = describeLeasesOutside(state.pool, usage, leases);
      if (outside !== undefined)
        return {
          type,
          status: 'True',
          reason: 'LeasedOutside',
          message: `Serves network ${state.pool.network}. ${outside}`,
        };
      const whom = adminOverride === undefined ? '' : ' for other namespaces';
      return { type, status: 'True', reason: 'Serving', message: `Serves network ${state.pool.network}${whom}` };
    }
    case 'invalid':
      return { type, status: 'False', reason: 'InvalidSpec', message: state.message };
    case 'conflict':
      return { type, status: 'False', reason: 'Conflict', message: state.message };
    case 'closing':
      return { type, status: 'False', reason: 'Deleting', message: state.message };
  }
}

/** @returns undefined if all leases of the pool are at addresses that it may lease */
function describeLeasesOutside(pool: Pool, usage: LeaseCounts, leases: PoolStatusInput['leases']): string | undefined {
  const { outside, ineffectiveReservations: idle } = usage;
  const said: string[] = [];
  if (outside.size > 0) {
    const who = formatLeases(leasesByName(outside, leases), outside.size);
    said.push(`Leased outside spec.subnets: ${who}. The owners keep them: add them to spec.subnets again`);
  }
  if (idle.size > 0) {
    said.push(
      `Reservations without effect: ${nameFirst([...idle], MAX_NAMED)}. Delete these leases, or create them for addresses of spec.subnets in address space ${pool.addressSpace}`,
    );
  }
  return said.length === 0 ? undefined : said.join('. ');
}

function conflictCondition({ state, adminOverride }: PoolStatusInput): DesiredCondition {
  const type = PoolCondition.Conflict;
  if (state.kind === 'conflict') return { type, status: 'True', reason: 'OlderPool', message: state.message };
  if (adminOverride !== undefined) return { type, status: 'True', reason: 'AdminPool', message: adminOverride.message };
  return { type, status: 'False', reason: 'NoConflict', message: 'No other pool serves the users of this pool' };
}

function deletionCondition({ usage, leases, agreement, fenceMs }: PoolStatusInput): DesiredCondition {
  const type = PoolCondition.DeletionBlocked;
  const total = countBlockingLeases(usage);
  if (agreement?.reason === 'MovePending') {
    return { type, status: 'True', reason: agreement.reason, message: agreement.message };
  }
  if (total === 0 && fenceMs !== undefined) {
    const message = `No address is leased. The pool stays for up to ${fenceMs / 1000} s, until every CNI ADD that began before has ended`;
    return { type, status: 'True', reason: 'AddsUnderWay', message };
  }
  if (total === 0) return { type, status: 'False', reason: 'NotLeased', message: 'No address is leased' };
  const who = formatLeases(unreleased(leases.ofPool()), total);
  const message = `The pool stays until these leases are gone: ${who}`;
  return { type, status: 'True', reason: 'Leased', message };
}

/** Counts the leases that keep a pool from being deleted. Released and quarantined ones do not, because they expire without a pool as well. */
export function countBlockingLeases(usage: LeaseCounts): number {
  return usage.in('held') + usage.in('reserved');
}

/** Lazily: a message names a few leases of a pool that may have 100,000. */
function* unreleased(leases: Iterable<LeaseRecord>): Iterable<LeaseRecord> {
  for (const lease of leases) if (isHeldOrReserved(lease)) yield lease;
}

function* leasesByName(names: Iterable<string>, leases: PoolStatusInput['leases']): Iterable<LeaseRecord> {
  for (const name of names) {
    const lease = leases.get(name);
    if (lease !== undefined) yield lease;
  }
}
