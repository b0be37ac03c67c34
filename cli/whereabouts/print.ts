import { type AddressPool, type PoolSubnet, addressSpaceOf } from '../../api/address-pool.js';
import { splitKey } from '../../api/meta.js';
import { tableOf } from '../table.js';
import type { Applied } from './apply.js';
import type { Step } from './next.js';
import type { Conflict, LeftOut, LeftOutReason, NadChange, Plan, VmNote } from './plan-types.js';

/** Of a long list the first ones are printed; JSON has all. */
const SHOWN = 20;

const REASONS: Readonly<Record<LeftOutReason, string>> = {
  'pod-gone': 'the pod is gone, or has ended',
  stale: 'the pod has other addresses: they were an earlier one’s of its name',
  unconfirmed: 'a pod reports it that has it by nothing else',
  unreadable: 'cannot be read',
  outside: 'in no subnet of the network',
  'not-leasable': 'excluded, or the gateway: nobody gets it, the pod keeps it',
  'no-nad': 'no NAD of whereabouts that could use it',
};

/** The plan, to be read by people. */
export function printPlan(plan: Plan): string[] {
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
export function printOutlook(plan: Plan, command: string): string[] {
  const { pools, leases, leftOut, conflicts, changes } = plan;
  const open = leases.filter(({ state }) => state !== 'done').length;
  const made = pools.filter(({ state }) => state === 'create').length;
  const summary = [
    `${count(made, 'pool')} and ${count(open, 'lease')} to make`,
    `${count(leases.length - open, 'lease')} there`,
    `${leftOut.length} left out`,
    count(conflicts.length, 'conflict'),
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
export function printApplied(applied: Applied, released: readonly string[]): string[] {
  const { poolsMade, leasesMade, leasesThere, reserved, failed } = applied;
  return [
    `made ${count(poolsMade.length, 'pool')} and ${count(leasesMade.length, 'lease')}; ${count(leasesThere.length, 'lease')} were there already; released ${released.length} of pods that have gone meanwhile`,
    ...failed.slice(0, SHOWN).map(({ name, message }) => `failed: ${name}: ${message}`),
    ...more(failed.length),
    ...reservedLines(reserved),
  ];
}

function reservedLines(reserved: Applied['reserved']): string[] {
  if (reserved.length === 0) return [];
  return [
    `kept from everybody, for they are in conflict: ${count(reserved.length, 'address', 'addresses')}; of each, once that is resolved:`,
    ...reserved.slice(0, SHOWN).map(({ pool, address }) => `  kubectl holdfast unreserve ${pool} ${address}`),
    ...more(reserved.length),
  ];
}

/** What is to be done then: commands for the NADs that can move. */
export function printNext(steps: readonly Step[]): string[] {
  const ready = steps.filter(({ missing }) => missing.length === 0);
  const waiting = steps.filter(({ missing }) => missing.length > 0);
  return [...readyLines(ready), ...waiting.map(waitingLine)];
}

function readyLines(steps: readonly Step[]): string[] {
  if (steps.length === 0) return [];
  return [
    'Next; pods that run keep their addresses, and pods that start get free ones from Holdfast:',
    ...steps.flatMap(({ space, changes, alone }) => [
      alone
        ? `  Address space ${space}:`
        : `  Address space ${space}, all together; start no pods on its networks until all have moved and this was run again:`,
      ...changes.map((change) => `    ${commandFor(change)}`),
    ]),
    'Run this again right after: until then whereabouts has given out addresses of the network.',
    'Leave whereabouts installed until the last pod is gone that it gave an address to: the runtime ends such pods with it.',
  ];
}

function commandFor({ nad, config }: NadChange): string {
  const { namespace, name } = splitKey(nad);
  const patch = JSON.stringify({ spec: { config } }).replaceAll("'", String.raw`'\''`);
  return `kubectl -n ${namespace} patch net-attach-def ${name} --type=merge -p '${patch}'`;
}

function waitingLine({ space, changes, missing }: Step): string {
  const shown = missing.slice(0, SHOWN).join('; ');
  const rest = missing.length > SHOWN ? `; … and ${missing.length - SHOWN} more` : '';
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
    : tableOf(['NAME', 'NETWORK', 'SPACE', 'SUBNETS', 'NAMESPACES', 'STATE', 'TO LEASE', 'LEASED'], rows);
}

function leaseLines({ leases }: Plan): string[] {
  const open = leases.filter(({ state }) => state !== 'done');
  if (open.length === 0) return [];
  const rows = open
    .slice(0, SHOWN)
    .map(({ name, request, pod }) => [
      name,
      `${pod.namespace}/${pod.name}`,
      request.owner.kind === 'Pod' ? '' : `${request.owner.kind} ${request.owner.name}`,
      request.node ?? '',
      request.interface ?? '',
    ]);
  return [...tableOf(['LEASE', 'POD', 'FOR', 'NODE', 'INTERFACE'], rows), ...more(open.length)];
}

function leftOutLines(leftOut: readonly LeftOut[]): string[] {
  return Object.entries(REASONS).flatMap(([reason, meaning]) => {
    const own = leftOut.filter((each) => each.reason === reason);
    if (own.length === 0) return [];
    const lines = own
      .slice(0, SHOWN)
      .map(({ source, address, message }) => `  ${address === undefined ? '' : `${address}: `}${message} (${source})`);
    return [`${own.length}: ${meaning}`, ...lines, ...more(own.length).map((line) => `  ${line}`)];
  });
}

function conflictLines(conflicts: readonly Conflict[]): string[] {
  return [
    ...conflicts.slice(0, SHOWN).map(({ subject, message }) => `${subject}: ${message}`),
    ...more(conflicts.length),
  ];
}

function vmLines(vms: readonly VmNote[]): string[] {
  const lines = vms
    .slice(0, SHOWN)
    .map(({ vm, nad, address, claim }) =>
      claim
        ? `${vm} has ${address} on ${nad}: its lease is the launcher’s; the VM gets a claim, and keeps this very address over a restart if it asks for it (annotation network.kubevirt.io/addresses)`
        : `${vm} has ${address} on ${nad}: its lease is the launcher’s, and ends with it; the VM gets a claim only where the NAD says "allowPersistentIPs": true`,
    );
  return [...lines, ...more(vms.length)];
}

function diffLines({ nad, path, removed, added }: NadChange): string[] {
  return [`NAD ${nad}, ${path}:`, ...removed.map((line) => `  - ${line}`), ...added.map((line) => `  + ${line}`)];
}

function subnetsOf({ spec }: AddressPool): string {
  return spec.subnets.map(describeSubnet).join('; ');
}

function describeSubnet({ cidr, ranges, exclude, gateway }: PoolSubnet): string {
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

function more(length: number): string[] {
  return length > SHOWN ? [`… and ${length - SHOWN} more: -o json has all`] : [];
}

function count(number: number, noun: string, many = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : many}`;
}
