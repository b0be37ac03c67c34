import { type AddressPool, type PoolSubnet, addressSpaceOf } from '../../api/address-pool.js';
import { splitKey } from '../../api/meta.js';
import { formatTable } from '../table.js';
import type { ApplyResult } from './apply.js';
import type { MigrationStep } from './next-steps.js';
import type { Conflict, LeftOut, LeftOutReason, NadChange, Plan, VmAddress } from './plan-types.js';

/** Of a long list the first ones are printed; JSON has all. */
const MAX_LINES = 20;

const REASON_TEXTS: Readonly<Record<LeftOutReason, string>> = {
  'pod-gone': 'the pod is gone, or has ended',
  stale: 'the pod has other addresses: they were an earlier one’s of its name',
  unconfirmed: 'a pod reports it that has it by nothing else',
  unreadable: 'cannot be read',
  outside: 'in no subnet of the network',
  'not-leasable': 'excluded, or the gateway: nobody gets it, the pod keeps it',
  'no-nad': 'no NAD of whereabouts that could use it',
};

/** The plan, to be read by people. */
export function formatPlan(plan: Plan): string[] {
  return [
    ...section('Pools', poolLines(plan)),
    ...section('Leases', leaseLines(plan)),
    ...section('Left out', leftOutLines(plan.leftOut)),
    ...section('Conflicts: somebody has to decide', conflictLines(plan.conflicts)),
    ...section('Virtual machines', vmLines(plan.vms)),
    ...section('NADs: to be changed by you, after the leases are there', plan.changes.flatMap(diffLines)),
  ];
}

/**
 * How it goes on from a plan.
 * @param command that carries it out, where it has no conflicts
 */
export function formatOutlook(plan: Plan, command: string): string[] {
  const { pools, leases, leftOut, conflicts, changes } = plan;
  const open = leases.filter(({ state }) => state !== 'done').length;
  const made = pools.filter(({ state }) => state === 'create').length;
  const summary = [
    `${countNoun(made, 'pool')} and ${countNoun(open, 'lease')} to make`,
    `${countNoun(leases.length - open, 'lease')} there`,
    `${leftOut.length} left out`,
    countNoun(conflicts.length, 'conflict'),
  ].join(', ');
  if (conflicts.length > 0) {
    const decide = `Nothing is written yet: ${summary}. Resolve the conflicts, and look again.`;
    const kept = conflicts.filter(({ reservation }) => reservation !== undefined).length;
    if (made + open + changes.length + kept === 0) return [decide];
    return [`${decide} This does what has none, and keeps from everybody what has:`, `${command} --skip-conflicts`];
  }
  if (made + open > 0) return [`Nothing is written yet: ${summary}. This does it:`, command];
  if (changes.length > 0) return [`The NADs are left, to be changed by you: ${summary}. This says how:`, command];
  return [`There is nothing to do: ${summary}.`];
}

/** What came of it. */
export function formatResult(applied: ApplyResult, released: readonly string[]): string[] {
  const { poolsMade, leasesMade, leasesThere, reserved, failed } = applied;
  return [
    `made ${countNoun(poolsMade.length, 'pool')} and ${countNoun(leasesMade.length, 'lease')}; ${countNoun(leasesThere.length, 'lease')} were there already; released ${released.length} of pods that have gone meanwhile`,
    ...failed.slice(0, MAX_LINES).map(({ name, message }) => `failed: ${name}: ${message}`),
    ...remainderLines(failed.length),
    ...reservedLines(reserved),
  ];
}

function reservedLines(reserved: ApplyResult['reserved']): string[] {
  if (reserved.length === 0) return [];
  return [
    `kept from everybody, for they are in conflict: ${countNoun(reserved.length, 'address', 'addresses')}; of each, once that is resolved:`,
    ...reserved.slice(0, MAX_LINES).map(({ pool, address }) => `  kubectl holdfast unreserve ${pool} ${address}`),
    ...remainderLines(reserved.length),
  ];
}

/** What is to be done then: commands for the NADs that can move. */
export function formatNextSteps(steps: readonly MigrationStep[]): string[] {
  const ready = steps.filter(({ missing }) => missing.length === 0);
  const waiting = steps.filter(({ missing }) => missing.length > 0);
  return [...readyLines(ready), ...waiting.map(waitingLine)];
}

function readyLines(steps: readonly MigrationStep[]): string[] {
  if (steps.length === 0) return [];
  return [
    'Next; pods that run keep their addresses, and pods that start get free ones from Holdfast:',
    ...steps.flatMap(({ space, changes, alone }) => [
      alone
        ? `  Address space ${space}:`
        : `  Address space ${space}, all together; start no pods on its networks until all have moved and this was run again:`,
      ...changes.map((change) => `    ${patchCommandFor(change)}`),
    ]),
    'Run this again right after: until then whereabouts has given out addresses of the network.',
    'Leave whereabouts installed until the last pod is gone that it gave an address to: the runtime ends such pods with it.',
  ];
}

function patchCommandFor({ nad, config }: NadChange): string {
  const { namespace, name } = splitKey(nad);
  const patch = JSON.stringify({ spec: { config } }).replaceAll("'", String.raw`'\''`);
  return `kubectl -n ${namespace} patch net-attach-def ${name} --type=merge -p '${patch}'`;
}

function waitingLine({ space, changes, missing }: MigrationStep): string {
  const shown = missing.slice(0, MAX_LINES).join('; ');
  const rest = missing.length > MAX_LINES ? `; … and ${missing.length - MAX_LINES} more` : '';
  return `Not yet, address space ${space} (${changes.map(({ nad }) => nad).join(', ')}): resolve first ${shown}${rest}`;
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`${title}:`, ...lines.map((line) => `  ${line}`), ''];
}

function poolLines({ pools, leases }: Plan): string[] {
  const rows = pools.map(({ pool, network, state }) => {
    const own = leases.filter(({ request }) => request.pool === pool.metadata.name);
    const done = own.filter((lease) => lease.state === 'done').length;
    return [
      pool.metadata.name,
      network,
      addressSpaceOf(pool),
      subnetsOf(pool),
      namespacesOf(pool),
      state,
      `${own.length - done}`,
      `${done}`,
    ];
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
    .map(({ name, request, pod }) => [
      name,
      `${pod.namespace}/${pod.name}`,
      request.owner.kind === 'Pod' ? '' : `${request.owner.kind} ${request.owner.name}`,
      request.node ?? '',
      request.interface ?? '',
    ]);
  return [...formatTable(['LEASE', 'POD', 'FOR', 'NODE', 'INTERFACE'], rows), ...remainderLines(open.length)];
}

function leftOutLines(leftOut: readonly LeftOut[]): string[] {
  return Object.entries(REASON_TEXTS).flatMap(([reason, meaning]) => {
    const own = leftOut.filter((each) => each.reason === reason);
    if (own.length === 0) return [];
    const lines = own
      .slice(0, MAX_LINES)
      .map(({ source, address, message }) => `  ${address === undefined ? '' : `${address}: `}${message} (${source})`);
    return [`${own.length}: ${meaning}`, ...lines, ...remainderLines(own.length).map((line) => `  ${line}`)];
  });
}

function conflictLines(conflicts: readonly Conflict[]): string[] {
  return [
    ...conflicts.slice(0, MAX_LINES).map(({ subject, message }) => `${subject}: ${message}`),
    ...remainderLines(conflicts.length),
  ];
}

function vmLines(vms: readonly VmAddress[]): string[] {
  const lines = vms
    .slice(0, MAX_LINES)
    .map(({ vm, nad, address, claim }) =>
      claim
        ? `${vm} has ${address} on ${nad}: its lease is the launcher’s; the VM gets a claim, and keeps this very address over a restart if it asks for it (annotation network.kubevirt.io/addresses)`
        : `${vm} has ${address} on ${nad}: its lease is the launcher’s, and ends with it; the VM gets a claim only where the NAD says "allowPersistentIPs": true`,
    );
  return [...lines, ...remainderLines(vms.length)];
}

function diffLines({ nad, path, removed, added }: NadChange): string[] {
  return [`NAD ${nad}, ${path}:`, ...removed.map((line) => `  - ${line}`), ...added.map((line) => `  + ${line}`)];
}

function subnetsOf({ spec }: AddressPool): string {
  return spec.subnets.map(formatSubnet).join('; ');
}

function formatSubnet({ cidr, ranges, exclude, gateway }: PoolSubnet): string {
  return [
    cidr,
    ...(ranges ? [`ranges ${ranges.join(' ')}`] : []),
    ...(exclude ? [`exclude ${exclude.join(' ')}`] : []),
    ...(gateway ? [`gateway ${gateway}`] : []),
  ].join(', ');
}

function namespacesOf(pool: AddressPool): string {
  return pool.spec.namespaces?.join(' ') ?? 'all';
}

function remainderLines(length: number): string[] {
  return length > MAX_LINES ? [`… and ${length - MAX_LINES} more: -o json has all`] : [];
}

function countNoun(number: number, noun: string, many = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : many}`;
}
