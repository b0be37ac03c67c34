import { type AddressPool, familyCountsOf } from '../../api/address-pool.js';
import { EventReason } from '../../api/event-reasons.js';
import { joinKey, objectKey } from '../../api/meta.js';
import { compilePool } from '../../addressing/pool/pool.js';
import { addressMapOf } from '../usage/address-map.js';
import { waitingClaims } from '../usage/summary.js';
import type { Finding } from '../doctor/finding.js';
import { boundedList } from './bounds.js';
import type { ClusterWatch, EventRecord } from './cluster-watch.js';
import { subnetsOf, windowOf } from './map-window.js';
import {
  type AnyView,
  type EventRow,
  type FindingRow,
  type PoolRow,
  type PoolsView,
  type PoolView,
  type ServerView,
  type ViewRequest,
  type VmRow,
  type VmsView,
  type VmView,
  type WaitingView,
  isWhole,
} from './protocol.js';
import { claimRow, conditionRows, describeLease, findingRow, leaseRow, matching, poolRow } from './rows.js';
import { searchView } from './search.js';
import { POOL_SORTS, VM_SORTS, compareText, sortedList } from './sort-rows.js';
import type { PoolUseHistory } from './use-history.js';
import type { SharedRead } from './shared-read.js';
import type { VmStories } from './vm-stories.js';
import { vmRow } from './vm-table.js';

/** What views are made of. */
interface ViewSources {
  readonly cluster: ClusterWatch;
  readonly history: PoolUseHistory;
  readonly stories: Pick<VmStories, 'of'>;
  readonly findings: Pick<SharedRead<readonly Finding[]>, 'value' | 'failure'>;
  /** What is wrong with the leaders of the processes, which is read for all views. */
  readonly leaders: Pick<SharedRead<readonly Finding[]>, 'value'>;
  /** Milliseconds since the epoch. */
  readonly wall: () => number;
}

/** Builds the view that a page asks for, from what is in memory. An unknown view is that of the pools. */
export function buildView(request: ViewRequest, sources: ViewSources): ServerView {
  const { cluster } = sources;
  const parts = cluster.parts(request.view === 'vm' ? request.namespace : undefined);
  return { parts, alerts: alertsOf(request, sources), ...bodyOf(request, sources) };
}

/** Processes without a leader. Who may not read that sees it by claims that ipam does not answer, on the views for which all is read. */
function alertsOf({ view }: ViewRequest, { leaders, findings }: ViewSources): FindingRow[] {
  const read = view === 'vms' || view === 'waiting' ? findings.value : [];
  const silent = read?.find(({ reason }) => reason === EventReason.IpamNotResponding);
  return [...(leaders.value ?? []), ...(silent === undefined ? [] : [silent])].map(findingRow);
}

function bodyOf(request: ViewRequest, sources: ViewSources): AnyView {
  const { cluster } = sources;
  switch (request.view) {
    case 'pool':
      return poolView(request, sources);
    case 'vms':
      return vmsView(request, sources);
    case 'vm':
      return vmView(request, sources);
    case 'waiting':
      return waitingView(sources);
    case 'search':
      return searchView(request.query, cluster);
    default:
      return poolsView(request, sources);
  }
}

function poolRows({ cluster, history }: ViewSources): PoolRow[] {
  const rows = cluster.pools.cache.list().map((pool) => poolRow(pool, history.of(pool.metadata.name)));
  return rows.sort((a, b) => compareText(a.name, b.name));
}

function poolsView({ query, sort }: ViewRequest, sources: ViewSources): PoolsView {
  const textOf = ({ name, network, cidrs }: PoolRow) => `${name} ${network} ${cidrs.join(' ')}`;
  const rows = matching(poolRows(sources), query, textOf);
  return { view: 'pools', times: sources.history.times, pools: sortedList(rows, sort, POOL_SORTS) };
}

function poolView({ name, at, bits }: ViewRequest, { cluster, history, wall }: ViewSources): PoolView {
  const pool = cluster.pools.cache.get(name);
  const row = pool && poolRow(pool, history.of(name));
  const conditions = conditionRows(pool?.status?.conditions);
  const waiting = pool === undefined ? [] : waitingClaims(pool, cluster.claims.cache.list()).map(claimRow);
  const base = { view: 'pool' as const, pool: row, conditions, times: history.times, waiting: boundedList(waiting) };
  const compiled = pool && compilePool(pool);
  // without the leases, every address would look free
  if (!compiled?.ok || !isWhole(cluster.leases.status)) return { ...base, subnets: [] };
  const leases = cluster.leasesOfSpace(compiled.pool.addressSpace);
  const map = addressMapOf(compiled.pool, { leases }, wall());
  const window = windowOf(map, { at, bits }, leases, (lease) => describeLease(lease, cluster));
  return { ...base, subnets: subnetsOf(map), ...(window !== undefined && { window }) };
}

function vmsView({ query, sort }: ViewRequest, { cluster, findings }: ViewSources): VmsView {
  const textOf = ({ namespace, name, node, status, addresses }: VmRow) =>
    `${namespace}/${name} ${node} ${status} ${addresses.join(' ')}`;
  const rows = matching(cluster.vmTable.rows(findings.value), query, textOf);
  return { view: 'vms', vms: sortedList(rows, sort, VM_SORTS) };
}

function vmView({ namespace, name }: ViewRequest, { cluster, stories }: ViewSources): VmView {
  const { value: tree, failure } = stories.of(namespace, name) ?? {};
  const claims = cluster.claimsOfVm(joinKey(namespace, name));
  const leases = claims.flatMap((claim) =>
    cluster.leasesOfOwner(objectKey(claim)).filter(({ owner }) => owner?.uid === claim.metadata.uid),
  );
  const claimNames = new Set(claims.map(({ metadata }) => metadata.name));
  const isAbout = ({ object }: EventRecord) =>
    object.kind === 'IPAMClaim'
      ? claimNames.has(object.name)
      : object.name === name || (object.kind === 'Pod' && isLauncherName(object.name, name));
  const events = cluster
    .eventsOf(namespace)
    .filter(isAbout)
    .map(({ row }) => row)
    .sort((a, b) => Number(isWarning(b)) - Number(isWarning(a)) || compareText(b.last, a.last));
  return {
    view: 'vm',
    vm: vmRow(cluster, { namespace, name }),
    ...(tree !== undefined && { story: tree }),
    ...(failure !== undefined && { failure }),
    leases: leases.map((lease) => leaseRow(lease)),
    events: boundedList(events),
  };
}

/** The API server appends five random characters to the first 58 of a generated name. VM `web-db` has launchers `virt-launcher-web-db-…`, too. */
function isLauncherName(pod: string, vm: string): boolean {
  const prefix = `virt-launcher-${vm}-`.slice(0, 58);
  return pod.startsWith(prefix) && pod.length === prefix.length + 5;
}

function isWarning({ type }: EventRow): boolean {
  return type === 'Warning';
}

function waitingView(sources: ViewSources): WaitingView {
  const { value, failure } = sources.findings;
  const pools = poolRows(sources).filter(
    ({ isReady, problems, counts }) => !isReady || problems.length > 0 || counts.some(({ free }) => free === 0),
  );
  return {
    view: 'waiting',
    ...(value !== undefined && { findings: boundedList(value.map(findingRow)) }),
    ...(failure !== undefined && { failure }),
    pools: boundedList(pools),
  };
}

/** Pools for the history. */
export function usedOf({ metadata, status }: AddressPool): { name: string; used: number | undefined } {
  const shares =
    status && familyCountsOf(status).map(({ leased, cooling, capacity }) => (leased + cooling) / Math.max(capacity, 1));
  return { name: metadata.name, used: shares && Math.max(...shares) };
}
