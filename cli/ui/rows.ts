import { BAD_CLAIM_CONDITIONS, PoolCondition } from '../../api/conditions.js';
import { type AddressPool, type AddressPoolStatus, familyCountsOf } from '../../api/address-pool.js';
import { type IPAMClaim, claimMacOf, claimVmNetworkOf } from '../../api/ipam-claim.js';
import { omitUndefined, truncate } from '../../api/json.js';
import { type Condition, MAX_NAME_LENGTH, isBeingDeleted, joinKey } from '../../api/meta.js';
import { IPS_ALLOCATED } from '../../api/names.js';
import { COUNTS, type CountField } from '../../addressing/address-states.js';
import { formatAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import type { Finding } from '../doctor/finding.js';
import { badConditionsOf } from '../usage/pools.js';
import { MAX_SHOWN_TEXT, shownAddressesOf, vmNameOf } from './bounds.js';
import type { ClusterWatch } from './cluster-watch.js';
import type { ClaimRow, ConditionRow, FindingRow, LeaseRow, ShownPoolCounts, PoolRow } from './protocol.js';

const MAX_CONDITIONS = 32;

export function conditionRows(conditions: readonly Condition[] = []): ConditionRow[] {
  return conditions.slice(0, MAX_CONDITIONS).map(({ type, status, reason, message, lastTransitionTime }) => {
    return { type, status, reason, message: truncate(message, MAX_SHOWN_TEXT), since: lastTransitionTime };
  });
}

export function poolRow(pool: AddressPool, used: PoolRow['used']): PoolRow {
  const { metadata, spec, status } = pool;
  const problems = conditionRows(badConditionsOf(pool));
  return {
    name: metadata.name,
    network: spec.network,
    cidrs: spec.subnets.map(({ cidr }) => cidr),
    counts: countsOf(status),
    ...(status !== undefined && { heldByStopped: status.heldByStopped }),
    isReady: status?.conditions?.some(({ type, status: is }) => type === PoolCondition.Ready && is === 'True') ?? false,
    problems,
    used,
  };
}

function countsOf(status: AddressPoolStatus | undefined): ShownPoolCounts[] {
  return (status === undefined ? [] : familyCountsOf(status)).map((ofFamily) => {
    const counts = Object.fromEntries(COUNTS.map(({ field }) => [field, ofFamily[field] ?? 0]));
    return { family: ofFamily.family, capacity: ofFamily.capacity, ...(counts as Record<CountField, number>) };
  });
}

export function leaseRow(lease: LeaseRecord, vm?: string): LeaseRow {
  const { owner, node, mac, releasedAt, quarantine } = lease;
  return omitUndefined({
    address: formatAddress(lease.address),
    pool: lease.pool,
    state: stateOf(lease),
    owner: owner && omitUndefined({ kind: owner.kind, namespace: owner.namespace, name: owner.name, vm }),
    ...{ node, mac, takenBy: quarantine?.mac },
    releasedAt: releasedAt === undefined ? undefined : new Date(releasedAt).toISOString(),
  });
}

/** A claim without addresses waits; others may have problems too. */
export function claimRow(claim: IPAMClaim): ClaimRow {
  const { namespace = '', name } = claim.metadata;
  return {
    namespace,
    name,
    vm: vmNameOf(claim),
    network: truncate(claimVmNetworkOf(claim) ?? claim.spec.network, MAX_NAME_LENGTH),
    addresses: shownAddressesOf(claim),
    mac: claimMacOf(claim) ?? '',
    state: claimState(claim),
    problems: conditionRows(claim.status?.conditions).filter(({ type, status: is }) =>
      BAD_CLAIM_CONDITIONS.some((bad) => bad.type === type && bad.status === is),
    ),
  };
}

function claimState(claim: IPAMClaim): string {
  const { ips = [], conditions = [], ownerPod } = claim.status ?? {};
  if (isBeingDeleted(claim)) return 'Releasing';
  if (ips.length === 0) return conditions.find(({ type }) => type === IPS_ALLOCATED)?.reason ?? 'Waiting';
  return ownerPod?.name ? 'In use' : 'Not in use';
}

export function findingRow({ severity, object, problem, remedy }: Finding): FindingRow {
  return {
    ...{ severity, object: truncate(object, 2 * MAX_NAME_LENGTH), remedy: truncate(remedy, MAX_SHOWN_TEXT) },
    problem: truncate(problem, MAX_SHOWN_TEXT),
  };
}

/** Names the VM of a lease whose owner is a claim. */
export function describeLease(lease: LeaseRecord, cluster: ClusterWatch): LeaseRow {
  const { owner } = lease;
  const claim =
    owner?.kind === 'IPAMClaim' ? cluster.claims.cache.get(joinKey(owner.namespace, owner.name)) : undefined;
  return leaseRow(lease, claim?.metadata.uid === owner?.uid && claim ? vmNameOf(claim) || undefined : undefined);
}

/** Returns the items whose text contains each word of a query, in upper or lower case. */
export function matching<T>(items: readonly T[], query: string, textOf: (item: T) => string): readonly T[] {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return items;
  return items.filter((item) => {
    const text = textOf(item).toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
