import { BAD_CLAIM_CONDITIONS, PoolCondition } from '../../api/conditions.js';
import { type AddressPool, type AddressPoolStatus, familyCountsOf } from '../../api/address-pool.js';
import { type IPAMClaim, claimMacOf, claimOwnerOf, claimVmNetworkOf } from '../../api/ipam-claim.js';
import { truncate } from '../../api/json.js';
import { type Condition, isBeingDeleted, joinKey } from '../../api/meta.js';
import { IPS_ALLOCATED, VIRTUAL_MACHINE_INSTANCE_KIND, VIRTUAL_MACHINE_KIND } from '../../api/names.js';
import { COUNTS, type CountField } from '../../addressing/address-states.js';
import { formatAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import type { Finding } from '../doctor/finding.js';
import { badConditionsOf } from '../usage/pools.js';
import type { ClusterWatch } from './cluster-watch.js';
import { groupBy } from '../group-by.js';
import type {
  BoundedList,
  ClaimRow,
  ConditionRow,
  FindingRow,
  LeaseRow,
  ShownPoolCounts,
  PoolRow,
  VmRow,
} from './protocol.js';

/** More rows than this are counted, but not sent. */
const MAX_ROWS = 200;
const MAX_MESSAGE_LENGTH = 1_024;
const MAX_NAME_LENGTH = 253;
const MAX_CONDITIONS = 32;

export function boundedList<Row>(rows: readonly Row[], max = MAX_ROWS): BoundedList<Row> {
  return { rows: rows.slice(0, max), total: rows.length };
}

export function conditionRows(conditions: readonly Condition[] = []): ConditionRow[] {
  return conditions.slice(0, MAX_CONDITIONS).map(({ type, status, reason, message, lastTransitionTime }) => {
    return { type, status, reason, message: truncate(message, MAX_MESSAGE_LENGTH), since: lastTransitionTime };
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
  return {
    address: formatAddress(lease.address),
    pool: lease.pool,
    state: stateOf(lease),
    ...(owner !== undefined && {
      owner: { kind: owner.kind, namespace: owner.namespace, name: owner.name, ...(vm !== undefined && { vm }) },
    }),
    ...(node !== undefined && { node }),
    ...(mac !== undefined && { mac }),
    ...(quarantine !== undefined && { takenBy: quarantine.mac }),
    ...(releasedAt !== undefined && { releasedAt: new Date(releasedAt).toISOString() }),
  };
}

/** A claim without addresses waits; others may have problems too. */
export function claimRow(claim: IPAMClaim): ClaimRow {
  const { namespace = '', name } = claim.metadata;
  const { ips = [], conditions } = claim.status ?? {};
  return {
    namespace,
    name,
    vm: claimOwnerOf(claim)?.name ?? '',
    network: truncate(claimVmNetworkOf(claim) ?? claim.spec.network, MAX_NAME_LENGTH),
    addresses: ips,
    mac: claimMacOf(claim) ?? '',
    state: claimState(claim),
    problems: conditionRows(conditions).filter(({ type, status: is }) =>
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

/**
 * The VMs of the cluster: those that the user may read, and those that claims name. By namespace, then by name.
 * @param findings what the doctor says
 */
export function vmRows({ vms, vmis, claims }: ClusterWatch, findings: readonly Finding[] = []): VmRow[] {
  const problems = groupBy(findings, ({ object }) => object);
  const rows = new Map<string, VmRow>();
  const put = (namespace = '', name: string, change: (known: VmRow) => Partial<VmRow>) => {
    const key = joinKey(namespace, name);
    const known = rows.get(key) ?? { namespace, name, status: '', node: '', addresses: [], problem: '' };
    rows.set(key, { ...known, ...change(known) });
  };
  for (const { metadata, phase, node } of vmis.cache.list()) {
    put(metadata.namespace, metadata.name, () => ({ status: phase, node }));
  }
  for (const { metadata, status } of vms.cache.list()) {
    put(metadata.namespace, metadata.name, (known) => ({ status: status || known.status }));
  }
  for (const claim of claims.cache.list().map(claimRow)) {
    if (claim.vm === '') continue;
    put(claim.namespace, claim.vm, ({ addresses }) => ({ addresses: [...addresses, ...claim.addresses] }));
  }
  const all = [...rows.values()].map((row) => {
    const [first] = [VIRTUAL_MACHINE_KIND, VIRTUAL_MACHINE_INSTANCE_KIND].flatMap(
      (kind) => problems.get(`${kind} ${joinKey(row.namespace, row.name)}`) ?? [],
    );
    return first === undefined ? row : { ...row, problem: textOfFinding(first) };
  });
  return all.sort((a, b) => compareText(a.namespace, b.namespace) || compareText(a.name, b.name));
}

/** What is wrong, and what to do. */
function textOfFinding({ problem, remedy }: Pick<Finding, 'problem' | 'remedy'>): string {
  return truncate(`${problem} → ${remedy}`, MAX_MESSAGE_LENGTH);
}

export function findingRow({ severity, object, problem, remedy }: Finding): FindingRow {
  return {
    ...{ severity, object: truncate(object, 2 * MAX_NAME_LENGTH), remedy: truncate(remedy, MAX_MESSAGE_LENGTH) },
    problem: truncate(problem, MAX_MESSAGE_LENGTH),
  };
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Names the VM of a lease whose owner is a claim. */
export function describeLease(lease: LeaseRecord, cluster: ClusterWatch): LeaseRow {
  const { owner } = lease;
  const claim =
    owner?.kind === 'IPAMClaim' ? cluster.claims.cache.get(joinKey(owner.namespace, owner.name)) : undefined;
  return leaseRow(lease, claim?.metadata.uid === owner?.uid && claim ? claimOwnerOf(claim)?.name : undefined);
}

/** Whether each word of a query is part of one of the texts, in upper or lower case. */
export function contains(texts: readonly string[], query: string): boolean {
  const all = texts.map((text) => text.toLowerCase());
  const words = query.toLowerCase().split(/\s+/);
  return words.every((word) => all.some((text) => text.includes(word)));
}
