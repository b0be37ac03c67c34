import { nameFirst } from '../../api/json.js';
import { type PoolSubnet, addressSpaceOf } from '../../api/address-pool.js';
import { splitKey } from '../../api/meta.js';
import { shellWord } from '../cluster-flags.js';
import { groupBy } from '../group-by.js';
import { count, formatTable, section } from '../output.js';
import type { ApplyFailure, ApplyResult } from './apply.js';
import type { LeftOut, LeftOutReason, NadChange, Plan, VmAddress } from './plan-types.js';

/** Longer lists are cut; JSON output contains all entries. */
const MAX_LINES = 20;

const REASON_TEXTS: Readonly<Record<LeftOutReason, string>> = {
  'pod-gone': 'the pod is gone or has terminated',
  stale: 'the pod has other addresses: an earlier pod of that name had these',
  unconfirmed: 'only the pod itself reports the address',
  unreadable: 'invalid entry',
  outside: 'in no subnet of the network',
  'not-leasable': 'excluded, outside the ranges, or the gateway: the pod keeps the address without a lease',
  'no-nad': 'no NAD with whereabouts uses it',
};

/** Formats the plan for people. */
export function formatMigrationPlan(plan: Plan): string[] {
  return [
    ...section('Pools', poolLines(plan)),
    ...section('Leases', leaseLines(plan)),
    ...section('Left out', leftOutLines(plan.leftOut)),
    ...section(
      'Conflicts that you have to resolve',
      firstLines(plan.conflicts, ({ subject, message }) => `${subject}: ${message}`),
    ),
    ...section('Virtual machines', vmLines(plan.vms)),
    ...section('NADs that you have to change after the leases are created', plan.changes.flatMap(diffLines)),
  ];
}

/**
 * Formats the summary of a plan and the next command.
 * @param command applies a plan without conflicts
 */
export function formatOutlook(plan: Plan, command: string): string[] {
  const { pools, leases, leftOut, conflicts, changes } = plan;
  const open = leases.filter(({ state }) => state !== 'done').length;
  const made = pools.filter(({ state }) => state === 'create').length;
  const summary = [
    `${count(made, 'pool')} and ${count(open, 'lease')} to create`,
    count(leases.length - open, 'existing lease'),
    `${leftOut.length} left out`,
    count(conflicts.length, 'conflict'),
  ].join(', ');
  if (conflicts.length > 0) {
    const decide = `Nothing has been written yet: ${summary}. Resolve the conflicts and run this command again.`;
    const kept = conflicts.filter(({ reservation }) => reservation !== undefined).length;
    if (made + open + changes.length + kept === 0) return [decide];
    return [
      `${decide} To migrate everything else and reserve the addresses in conflict, run:`,
      `${command} --skip-conflicts`,
    ];
  }
  if (made + open > 0) return [`Nothing has been written yet: ${summary}. To apply the plan, run:`, command];
  if (changes.length > 0) return [`You only have to change the NADs: ${summary}. To print the commands, run:`, command];
  return [`There is nothing to do: ${summary}.`];
}

export function formatResult(applied: ApplyResult, clusterFlags: string): string[] {
  const { poolsMade, leasesMade, leasesThere, reserved, failed } = applied;
  return [
    `created ${count(poolsMade.length, 'pool')} and ${count(leasesMade.length, 'lease')}; ${count(leasesThere.length, 'lease')} existed already`,
    ...firstLines(failed, ({ name, message }) => `failed: ${name}: ${message}`),
    ...reservedLines(reserved, clusterFlags),
  ];
}

function reservedLines(reserved: ApplyResult['reserved'], clusterFlags: string): string[] {
  if (reserved.length === 0) return [];
  return [
    `reserved because of conflicts: ${count(reserved.length, 'address', 'addresses')}. After you have resolved a conflict, run the command for its address:`,
    ...firstLines(reserved, ({ pool, address }) => `  kubectl holdfast unreserve ${pool} ${address}${clusterFlags}`),
  ];
}

/** Formats the next steps, with commands for the NADs that can change. */
export function formatNextSteps(steps: readonly MigrationStep[], clusterFlags: string): string[] {
  const ready = steps.filter(({ missing }) => missing.length === 0);
  const waiting = steps.filter(({ missing }) => missing.length > 0);
  return [...readyLines(ready, clusterFlags), ...waiting.map(waitingLine)];
}

function readyLines(steps: readonly MigrationStep[], clusterFlags: string): string[] {
  if (steps.length === 0) return [];
  return [
    'Next, change these NADs. Running pods keep their addresses, and new pods get free ones from Holdfast:',
    ...steps.flatMap(({ space, changes, alone }) => [
      alone
        ? `  Address space ${space}:`
        : `  Address space ${space}: change all NADs together, and start no pods on their networks until you have run this command again:`,
      ...changes.map((change) => `    ${patchCommandFor(change)}${clusterFlags}`),
    ]),
    'Run this command again right after the change because whereabouts may have allocated more addresses until then.',
    'Keep whereabouts installed until the last pod with an address from it is gone: the runtime needs it to delete such pods.',
  ];
}

function patchCommandFor({ nad, config }: NadChange): string {
  const { namespace, name } = splitKey(nad);
  const patch = shellWord(JSON.stringify({ spec: { config } }));
  return `kubectl -n ${namespace} patch net-attach-def ${name} --type=merge -p ${patch}`;
}

function waitingLine({ space, changes, missing }: MigrationStep): string {
  const shown = nameFirst(missing, MAX_LINES, missing.length, '; ');
  return `Not yet: address space ${space} (${changes.map(({ nad }) => nad).join(', ')}). Resolve first: ${shown}`;
}

function poolLines({ pools, leases }: Plan): string[] {
  const rows = pools.map(({ pool, network, state }) => {
    const own = leases.filter(({ request }) => request.pool === pool.metadata.name);
    const done = own.filter((lease) => lease.state === 'done').length;
    const { subnets, namespaces = ['all'] } = pool.spec;
    const described = [subnets.map(formatSubnet).join('; '), namespaces.join(' ')];
    return [pool.metadata.name, network, addressSpaceOf(pool), ...described, state, `${own.length - done}`, `${done}`];
  });
  return rows.length === 0
    ? []
    : formatTable(['NAME', 'NETWORK', 'SPACE', 'SUBNETS', 'NAMESPACES', 'STATE', 'TO LEASE', 'LEASED'], rows);
}

function leaseLines({ leases }: Plan): string[] {
  const open = leases.filter(({ state }) => state !== 'done');
  if (open.length === 0) return [];
  const rows = open
    .slice(0, MAX_LINES)
    .map(({ name, request: { owner, node = '', interface: podInterface = '' }, pod }) => {
      const claim = owner.kind === 'Pod' ? '' : `${owner.kind} ${owner.name}`;
      return [name, `${pod.namespace}/${pod.name}`, claim, node, podInterface];
    });
  return [...formatTable(['LEASE', 'POD', 'FOR', 'NODE', 'INTERFACE'], rows), ...remainderLines(open.length)];
}

function leftOutLines(leftOut: readonly LeftOut[]): string[] {
  return Object.entries(REASON_TEXTS).flatMap(([reason, meaning]) => {
    const own = leftOut.filter((each) => each.reason === reason);
    if (own.length === 0) return [];
    const lines = firstLines(
      own,
      ({ source, address, message }) => `${address === undefined ? '' : `${address}: `}${message} (${source})`,
    );
    return [`${own.length}: ${meaning}`, ...lines.map((line) => `  ${line}`)];
  });
}

function vmLines(vms: readonly VmAddress[]): string[] {
  return firstLines(vms, ({ vm, nad, address, claim }) =>
    claim
      ? `${vm} has ${address} on ${nad} by a lease of its launcher. The VM will get a claim; to keep this address, request it in the annotation network.kubevirt.io/addresses`
      : `${vm} has ${address} on ${nad} by a lease of its launcher, which ends with the launcher. For a persistent address, set "allowPersistentIPs": true in the NAD`,
  );
}

function diffLines({ nad, path, removed, added }: NadChange): string[] {
  return [`NAD ${nad}, ${path}:`, ...removed.map((line) => `  - ${line}`), ...added.map((line) => `  + ${line}`)];
}

function formatSubnet({ cidr, ranges, exclude, gateway }: PoolSubnet): string {
  return [
    cidr,
    ...(ranges ? [`ranges ${ranges.join(' ')}`] : []),
    ...(exclude ? [`exclude ${exclude.join(' ')}`] : []),
    ...(gateway ? [`gateway ${gateway}`] : []),
  ].join(', ');
}

function firstLines<T>(entries: readonly T[], format: (entry: T) => string): string[] {
  return [...entries.slice(0, MAX_LINES).map(format), ...remainderLines(entries.length)];
}

function remainderLines(length: number): string[] {
  return length > MAX_LINES ? [`… and ${length - MAX_LINES} more: -o json prints all`] : [];
}

/** NADs that share addresses. They change together because each must know the allocations of the others. */
interface MigrationStep {
  readonly space: string;
  readonly changes: readonly NadChange[];
  /** No other NAD or pool uses the address space. */
  readonly alone: boolean;
  /** What the user has to do first: names of failed objects and subjects of conflicts. Empty: the NADs can change. */
  readonly missing: readonly string[];
}

/**
 * Plans the next steps after the leases were created.
 * @param earlier the plan of the first pass, of which writes may have failed too
 */
export function nextSteps(plan: Plan, earlier: Plan, failed: readonly ApplyFailure[]): MigrationStep[] {
  const places = spacesByName([earlier, plan]);
  return [...groupBy(plan.changes, ({ space }) => space)].map(([space, changes]) => {
    const pools = plan.pools.filter(({ pool }) => addressSpaceOf(pool) === space);
    const networks = new Set([...changes, ...pools].map(({ network }) => network));
    const missing = [
      ...failed.filter(({ name }) => places.get(name) === space).map(({ name }) => name),
      ...plan.conflicts
        .filter((each) => each.networks.some((network) => networks.has(network)))
        .map(({ subject }) => subject),
    ];
    return { space, changes, alone: changes.length === 1 && networks.size === 1, missing };
  });
}

/** Returns the address space of each planned pool and lease. */
function spacesByName(plans: readonly Plan[]): Map<string, string> {
  const spaces = new Map<string, string>();
  for (const { pools, leases } of plans) {
    for (const { pool } of pools) spaces.set(pool.metadata.name, addressSpaceOf(pool));
    for (const { name, request } of leases) spaces.set(name, request.addressSpace);
  }
  return spaces;
}
