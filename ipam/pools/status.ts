import { type AddressPoolStatus, PoolCondition } from '../../api/address-pool.js';
import type { Condition } from '../../api/meta.js';
import type { NetworkConfigProblem } from '../../api/network-attachment.js';
import { toSafeNumber } from '../core/safe-number.js';
import { type LeaseRecord, stateOf } from '../core/lease.js';
import { type Pool, addressesOf } from '../core/pool.js';
import type { NadAgreement } from './derivation.js';
import type { AdminOverride } from './admin-override.js';
import { MAX_NAMED, listLeases } from './named-leases.js';
import type { LeaseCounts } from './usage.js';
import { describeProblems } from './requested-pools.js';
import type { PoolState } from '../directory/pool-state.js';

export type PoolCounts = Omit<AddressPoolStatus, 'conditions' | 'observedGeneration'>;
/** A condition before it is known since when it holds. */
export type DesiredCondition = Omit<Condition, 'lastTransitionTime'>;

/** @param free addresses that anybody may have */
export function countsOf(pool: Pool | undefined, usage: LeaseCounts, free: bigint): PoolCounts {
  const onRequest = pool === undefined ? 0n : countAddresses(pool, 'requestable') - countAddresses(pool, 'open');
  const reservations = usage.reserved - usage.ineffectiveReservations.size;
  const reserved = onRequest - BigInt(usage.requestOnly) + BigInt(reservations);
  const inUse = BigInt(usage.held) + BigInt(usage.released);
  return {
    capacity: toSafeNumber(inUse + free + reserved),
    leased: usage.held,
    heldByStopped: usage.stopped,
    cooling: usage.released,
    free: toSafeNumber(free),
    reserved: toSafeNumber(reserved),
  };
}

export interface PoolStatusInput {
  verdict: PoolState;
  usage: LeaseCounts;
  /** It is being deleted, and stays so long, because a CNI ADD that began before may still be under way. */
  fenceMs?: number;
  /** Where the messages find the leases that they name. */
  leases: { ofPool(): Iterable<LeaseRecord>; get(name: string): LeaseRecord | undefined };
  /** Of a derived pool. */
  agreement?: NadAgreement;
  /** What the NAD of a derived pool asks for and may not have. */
  notPermitted?: readonly NetworkConfigProblem[];
  /** Of a derived pool whose users an admin's pool has. */
  adminOverride?: AdminOverride;
  /** What another pool on the same layer-2 segment has of its addresses. */
  overlap?: string | undefined;
}

/** What the pool's conditions say. */
export function conditionsOf(judgement: PoolStatusInput): DesiredCondition[] {
  const { verdict, agreement, overlap, notPermitted = [] } = judgement;
  const findings = [readyCondition(judgement), conflictCondition(judgement)];
  if (agreement !== undefined) findings.push(agreementCondition(agreement));
  if (notPermitted.length > 0) findings.push(permissionCondition(notPermitted));
  if (verdict.kind === 'closing') findings.push(deletionCondition(judgement));
  if (overlap !== undefined) findings.push(overlapCondition(overlap));
  return findings;
}

/** Conditions that were so before keep their time. @param now milliseconds since the epoch */
export function withTransitionTimes(
  findings: readonly DesiredCondition[],
  before: readonly Condition[] | undefined,
  now: number,
): Condition[] {
  return findings.map((finding) => {
    const known = before?.find(({ type }) => type === finding.type);
    const since = known?.status === finding.status ? known.lastTransitionTime : undefined;
    return { ...finding, lastTransitionTime: since ?? `${new Date(now).toISOString().slice(0, 19)}Z` };
  });
}

function readyCondition({ verdict, usage, leases, adminOverride }: PoolStatusInput): DesiredCondition {
  const type = PoolCondition.Ready;
  switch (verdict.kind) {
    case 'served': {
      if (adminOverride?.isComplete === true) {
        return { type, status: 'False', reason: 'Conflict', message: adminOverride.message };
      }
      const outside = describeLeasesOutside(verdict.pool, usage, leases);
      if (outside !== undefined)
        return { type, status: 'True', reason: 'LeasedOutside', message: `serves; ${outside}` };
      const whom = adminOverride === undefined ? '' : ' for other namespaces';
      return { type, status: 'True', reason: 'Serving', message: `serves network ${verdict.pool.network}${whom}` };
    }
    case 'invalid':
      return { type, status: 'False', reason: 'InvalidSpec', message: verdict.message };
    case 'conflict':
      return { type, status: 'False', reason: 'Conflict', message: verdict.message };
    case 'closing':
      return { type, status: 'False', reason: 'Deleting', message: verdict.message };
  }
}

/** @returns undefined where all leases of the pool are at addresses that it may lease */
function describeLeasesOutside(pool: Pool, usage: LeaseCounts, leases: PoolStatusInput['leases']): string | undefined {
  const { outside, ineffectiveReservations: idle } = usage;
  const said: string[] = [];
  if (outside.size > 0) {
    const who = listLeases(leasesByName(outside, leases), outside.size, () => true);
    said.push(
      `outside of what it may lease are ${who}: they stay with their owners, so add them to spec.subnets again`,
    );
  }
  if (idle.size > 0) {
    const which = [...idle].slice(0, MAX_NAMED).join(', ');
    const more = idle.size > MAX_NAMED ? ` and ${idle.size - MAX_NAMED} more` : '';
    said.push(
      `to no effect are reserved ${which}${more}: delete these leases, or make them for addresses of spec.subnets in address space ${pool.addressSpace}`,
    );
  }
  return said.length === 0 ? undefined : said.join('; ');
}

function conflictCondition({ verdict, adminOverride }: PoolStatusInput): DesiredCondition {
  const type = PoolCondition.Conflict;
  if (verdict.kind === 'conflict') return { type, status: 'True', reason: 'OlderPool', message: verdict.message };
  if (adminOverride !== undefined) return { type, status: 'True', reason: 'AdminPool', message: adminOverride.message };
  return { type, status: 'False', reason: 'NoConflict', message: 'no other pool serves its users in its place' };
}

function agreementCondition({ agree, reason, message }: NadAgreement): DesiredCondition {
  return { type: PoolCondition.NetworksAgree, status: agree ? 'True' : 'False', reason, message };
}

function permissionCondition(problems: readonly NetworkConfigProblem[]): DesiredCondition {
  const message = describeProblems(problems);
  return { type: PoolCondition.NotPermitted, status: 'True', reason: 'AdministratorRequired', message };
}

/** It serves all the same: else one tenant could switch off the pool of another. */
function overlapCondition(message: string): DesiredCondition {
  return { type: PoolCondition.OverlapsOnWire, status: 'True', reason: 'OtherAddressSpace', message };
}

function deletionCondition({ usage, leases, agreement, fenceMs }: PoolStatusInput): DesiredCondition {
  const type = PoolCondition.DeletionBlocked;
  const total = countBlockingLeases(usage);
  if (agreement?.reason === 'MovePending') {
    return { type, status: 'True', reason: agreement.reason, message: agreement.message };
  }
  if (total === 0 && fenceMs !== undefined) {
    const message = `no address of it is leased; it stays until no CNI ADD that began before can be under way, which takes up to ${fenceMs / 1000} s`;
    return { type, status: 'True', reason: 'AddsUnderWay', message };
  }
  if (total === 0) return { type, status: 'False', reason: 'NotLeased', message: 'no address of it is leased' };
  const who = listLeases(leases.ofPool(), total, (lease) => stateOf(lease) !== 'released');
  const message = `it stays until these are gone: ${who}`;
  return { type, status: 'True', reason: 'Leased', message };
}

/** Leases for which a pool stays: addresses that only cool down are no reason, for they cool down without a pool, too. */
export function countBlockingLeases(usage: LeaseCounts): number {
  return usage.held + usage.reserved;
}

function* leasesByName(names: Iterable<string>, leases: PoolStatusInput['leases']): Iterable<LeaseRecord> {
  for (const name of names) {
    const lease = leases.get(name);
    if (lease !== undefined) yield lease;
  }
}

function countAddresses(pool: Pool, which: 'open' | 'requestable'): bigint {
  return pool.families.reduce((sum, family) => sum + addressesOf(pool, family, which).size, 0n);
}
