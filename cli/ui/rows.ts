import { BAD_CLAIM_CONDITIONS, PoolCondition } from '../../api/conditions.js';
import { type AddressPool, type AddressPoolStatus, familyCountsOf } from '../../api/address-pool.js';
import { type IPAMClaim, claimMacOf, claimOwnerOf, claimVmNetworkOf } from '../../api/ipam-claim.js';
import { omitUndefined, truncate } from '../../api/json.js';
import { type Condition, isBeingDeleted, joinKey } from '../../api/meta.js';
import { IPS_ALLOCATED, VIRTUAL_MACHINE_INSTANCE_KIND, VIRTUAL_MACHINE_KIND } from '../../api/names.js';
import { NamespacedMap } from '../../kube/informers/namespaced-map.js';
import { COUNTS, type CountField } from '../../addressing/address-states.js';
import { formatAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import type { Finding } from '../doctor/finding.js';
import { badConditionsOf } from '../usage/pools.js';
import type { ClusterWatch, VmObjects } from './cluster-watch.js';
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
import { compareText } from './sort-rows.js';

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
  const rows = rowsOf({ vms: vms.cache.list(), vmis: vmis.cache.list(), claims: claims.cache.list() });
  for (const kind of [VIRTUAL_MACHINE_KIND, VIRTUAL_MACHINE_INSTANCE_KIND])
    for (const finding of findings) {
      const [of, key = ''] = finding.object.split(' ');
      const row = of === kind ? rows.get(key) : undefined;
      if (row?.problem === '') row.problem = truncate(`${finding.problem} → ${finding.remedy}`, MAX_MESSAGE_LENGTH);
    }
  return rows.values().sort((a, b) => compareText(a.namespace, b.namespace) || compareText(a.name, b.name));
}

/** Returns one VM, without what the doctor says. @param key `namespace/name` */
export function vmRow(cluster: ClusterWatch, key: string): VmRow | undefined {
  const vm = cluster.vms.cache.get(key);
  const vmi = cluster.vmis.cache.get(key);
  return rowsOf({ vms: vm ? [vm] : [], vmis: vmi ? [vmi] : [], claims: cluster.claimsOfVm(key) }).get(key);
}

type MutableVmRow = { -readonly [Field in keyof VmRow]: VmRow[Field] };

/** Each view of many VMs does this for all of them: it copies nothing, and joins no keys. */
function rowsOf({ vms, vmis, claims }: VmObjects): NamespacedMap<MutableVmRow> {
  const rows = new NamespacedMap<MutableVmRow>();
  const rowOf = (namespace = '', name: string) => {
    const key = { namespace, name };
    const known = rows.at(key);
    if (known !== undefined) return known;
    const row: MutableVmRow = { namespace, name, status: '', node: '', addresses: [], problem: '' };
    rows.set(key, row);
    return row;
  };
  for (const { metadata, phase, node } of vmis) {
    const row = rowOf(metadata.namespace, metadata.name);
    row.status = phase;
    row.node = node;
  }
  for (const { metadata, status } of vms) {
    const row = rowOf(metadata.namespace, metadata.name);
    row.status = status || row.status;
  }
  for (const claim of claims) {
    const vm = claimOwnerOf(claim)?.name ?? '';
    if (vm === '') continue;
    const row = rowOf(claim.metadata.namespace, vm);
    row.addresses = row.addresses.concat(claim.status?.ips ?? []);
  }
  return rows;
}

export function findingRow({ severity, object, problem, remedy }: Finding): FindingRow {
  return {
    ...{ severity, object: truncate(object, 2 * MAX_NAME_LENGTH), remedy: truncate(remedy, MAX_MESSAGE_LENGTH) },
    problem: truncate(problem, MAX_MESSAGE_LENGTH),
  };
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
