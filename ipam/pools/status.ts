import { type AddressPoolStatus, PoolCondition } from '../../api/address-pool.js';
import type { Condition } from '../../api/meta.js';
import type { NetworkConfigProblem } from '../../api/network-attachment.js';
import { capped } from '../core/capped.js';
import { type LeaseRecord, stateOf } from '../core/lease.js';
import { type Pool, addressesOf } from '../core/pool.js';
import type { Agreement } from './derivation.js';
import type { Displacement } from './displacement.js';
import { NAMED, named } from './named-leases.js';
import type { Usage } from './usage.js';
import { describeProblems } from './wishes.js';
import type { PoolVerdict } from '../directory/verdict.js';

export type Counts = Omit<AddressPoolStatus, 'conditions' | 'observedGeneration'>;
/** A condition before it is known since when it holds. */
export type Finding = Omit<Condition, 'lastTransitionTime'>;

/** @param free addresses that anybody may have */
export function countsOf(pool: Pool | undefined, usage: Usage, free: bigint): Counts {
  const onRequest = pool === undefined ? 0n : sizeOf(pool, 'requestable') - sizeOf(pool, 'open');
  const reservations = usage.reserved - usage.idleReservations.size;
  const reserved = onRequest - BigInt(usage.requestOnly) + BigInt(reservations);
  const inUse = BigInt(usage.held) + BigInt(usage.released);
  return {
    capacity: capped(inUse + free + reserved),
    leased: usage.held,
    heldByStopped: usage.stopped,
    cooling: usage.released,
    free: capped(free),
    reserved: capped(reserved),
  };
}

export interface Judgement {
  verdict: PoolVerdict;
  usage: Usage;
  /** It is being deleted, and stays so long, because a CNI ADD that began before may still be under way. */
  fenceMs?: number;
  /** Where the messages find the leases that they name. */
  leases: { ofPool(): Iterable<LeaseRecord>; get(name: string): LeaseRecord | undefined };
  /** Of a derived pool. */
  agreement?: Agreement;
  /** What the NAD of a derived pool asks for and may not have. */
  notPermitted?: readonly NetworkConfigProblem[];
  /** Of a derived pool whose users an admin's pool has. */
  displaced?: Displacement;
  /** What another pool on the same layer-2 segment has of its addresses. */
  overlap?: string | undefined;
}

/** What the pool's conditions say. */
export function conditionsOf(judgement: Judgement): Finding[] {
  const { verdict, agreement, overlap, notPermitted = [] } = judgement;
  const findings = [readiness(judgement), conflict(judgement)];
  if (agreement !== undefined) findings.push(ofAgreement(agreement));
  if (notPermitted.length > 0) findings.push(ofPermission(notPermitted));
  if (verdict.kind === 'closing') findings.push(deletion(judgement));
  if (overlap !== undefined) findings.push(onWire(overlap));
  return findings;
}

/** Conditions that were so before keep their time. @param now milliseconds since the epoch */
export function stamp(
  findings: readonly Finding[],
  before: readonly Condition[] | undefined,
  now: number,
): Condition[] {
  return findings.map((finding) => {
    const known = before?.find(({ type }) => type === finding.type);
    const since = known?.status === finding.status ? known.lastTransitionTime : undefined;
    return { ...finding, lastTransitionTime: since ?? `${new Date(now).toISOString().slice(0, 19)}Z` };
  });
}

function readiness({ verdict, usage, leases, displaced }: Judgement): Finding {
  const type = PoolCondition.Ready;
  switch (verdict.kind) {
    case 'served': {
      if (displaced?.isWhole === true) {
        return { type, status: 'False', reason: 'Conflict', message: displaced.message };
      }
      const outside = outsideOfIt(verdict.pool, usage, leases);
      if (outside !== undefined)
        return { type, status: 'True', reason: 'LeasedOutside', message: `serves; ${outside}` };
      const whom = displaced === undefined ? '' : ' for other namespaces';
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
function outsideOfIt(pool: Pool, usage: Usage, leases: Judgement['leases']): string | undefined {
  const { outside, idleReservations: idle } = usage;
  const said: string[] = [];
  if (outside.size > 0) {
    const who = named(lookUp(outside, leases), outside.size, () => true);
    said.push(
      `outside of what it may lease are ${who}: they stay with their owners, so add them to spec.subnets again`,
    );
  }
  if (idle.size > 0) {
    const which = [...idle].slice(0, NAMED).join(', ');
    const more = idle.size > NAMED ? ` and ${idle.size - NAMED} more` : '';
    said.push(
      `to no effect are reserved ${which}${more}: delete these leases, or make them for addresses of spec.subnets in address space ${pool.addressSpace}`,
    );
  }
  return said.length === 0 ? undefined : said.join('; ');
}

function conflict({ verdict, displaced }: Judgement): Finding {
  const type = PoolCondition.Conflict;
  if (verdict.kind === 'conflict') return { type, status: 'True', reason: 'OlderPool', message: verdict.message };
  if (displaced !== undefined) return { type, status: 'True', reason: 'AdminPool', message: displaced.message };
  return { type, status: 'False', reason: 'NoConflict', message: 'no other pool serves its users in its place' };
}

function ofAgreement({ agree, reason, message }: Agreement): Finding {
  return { type: PoolCondition.NetworksAgree, status: agree ? 'True' : 'False', reason, message };
}

function ofPermission(problems: readonly NetworkConfigProblem[]): Finding {
  const message = describeProblems(problems);
  return { type: PoolCondition.NotPermitted, status: 'True', reason: 'AdministratorRequired', message };
}

/** It serves all the same: else one tenant could switch off the pool of another. */
function onWire(message: string): Finding {
  return { type: PoolCondition.OverlapsOnWire, status: 'True', reason: 'OtherAddressSpace', message };
}

function deletion({ usage, leases, agreement, fenceMs }: Judgement): Finding {
  const type = PoolCondition.DeletionBlocked;
  const total = blockersOf(usage);
  if (agreement?.reason === 'MovePending') {
    return { type, status: 'True', reason: agreement.reason, message: agreement.message };
  }
  if (total === 0 && fenceMs !== undefined) {
    const message = `no address of it is leased; it stays until no CNI ADD that began before can be under way, which takes up to ${fenceMs / 1000} s`;
    return { type, status: 'True', reason: 'AddsUnderWay', message };
  }
  if (total === 0) return { type, status: 'False', reason: 'NotLeased', message: 'no address of it is leased' };
  const who = named(leases.ofPool(), total, (lease) => stateOf(lease) !== 'released');
  const message = `it stays until these are gone: ${who}`;
  return { type, status: 'True', reason: 'Leased', message };
}

/** Leases for which a pool stays: addresses that only cool down are no reason, for they cool down without a pool, too. */
export function blockersOf(usage: Usage): number {
  return usage.held + usage.reserved;
}

function* lookUp(names: Iterable<string>, leases: Judgement['leases']): Iterable<LeaseRecord> {
  for (const name of names) {
    const lease = leases.get(name);
    if (lease !== undefined) yield lease;
  }
}

function sizeOf(pool: Pool, which: 'open' | 'requestable'): bigint {
  return pool.families.reduce((sum, family) => sum + addressesOf(pool, family, which).size, 0n);
}
