import type { Client } from '../../kube/client.js';
import type { ClusterFlags, Connection } from '../cluster-client.js';
import { CommandError } from '../exit-code.js';
import { count, section } from '../output.js';
import type { Terminal } from '../terminal.js';
import { observeInstallation } from './observe.js';
import {
  KEPT_POLICY,
  type ObservedData,
  type ObservedInstallation,
  type UninstallOptions,
  describeInstalled,
  findRefusals,
  isNothingLeft,
  removalCommands,
} from './plan.js';
import { type RemovalDeps, removeData, withRetriedReads } from './remove.js';
import { requireRights } from './rights.js';

export interface UninstallDeps extends RemovalDeps, ClusterFlags, Pick<Connection, 'server'>, Pick<Terminal, 'ask'> {
  readonly client: Pick<Client, 'listAs' | 'create' | 'patch' | 'delete'>;
  /** Prints a line of the result. */
  readonly print: (line: string) => void;
}

/**
 * Checks whether Holdfast can be removed, and says how. With `everything`, removes what is left afterwards; if it is killed, a second run continues.
 * @returns false if the state of the cluster prevents it, or if the user did not confirm
 * @throws {CommandError} if something cannot be removed
 */
export async function uninstall(options: UninstallOptions, deps: UninstallDeps): Promise<boolean> {
  const { everything = false, dryRun } = options;
  const observed = await observeInstallation(deps.client);
  const print = (lines: readonly string[]): true => {
    for (const line of lines) deps.print(line);
    return true;
  };
  if (isNothingLeft(observed)) return print([`There is nothing to remove on ${deps.server}.`]);
  print(everything ? formatRemoval(observed) : formatInstallation(observed));
  if (isRefused(observed, options, deps)) return false;
  await requireRights(observed, everything, deps.client);
  if (!everything) return print(formatRemovalSteps(observed, deps));
  if (dryRun) return print(['Nothing has been removed because of --dry-run.']);
  if (!(await isConfirmed(options, deps))) return false;
  await removeData(withRetriedReads(deps));
  return print(formatRemainder(observed, deps.clusterFlags));
}

function isRefused(observed: ObservedInstallation, options: UninstallOptions, deps: UninstallDeps): boolean {
  const refusals = findRefusals(observed, options, deps);
  for (const refusal of refusals) deps.printStatus(`refused: ${refusal}`);
  return refusals.length > 0;
}

async function isConfirmed(options: UninstallOptions, deps: UninstallDeps): Promise<boolean> {
  if (options.yes) return true;
  if (deps.ask === undefined) {
    throw new CommandError('nothing was removed: there is no terminal to confirm on, so add --yes');
  }
  const answer = await deps.ask(
    `Remove this from ${deps.server}? This cannot be undone. Type "everything" to continue: `,
  );
  if (answer.trim() !== 'everything') {
    deps.printStatus('nothing was removed: you did not confirm');
    return false;
  }
  // the user may answer long after the check
  return !isRefused(await observeInstallation(deps.client), options, deps);
}

/** Longer lists are cut. */
const MAX_LINES = 20;
const DEFAULT_PLUGIN_FOLDER = '/opt/cni/bin';
/** The path becomes part of a command, which somebody runs as root. */
const PLAIN_PATH = /^\/[A-Za-z0-9._/-]+$/;

/** Formats what is installed, and what stays when the tool that installed it has removed it. */
function formatInstallation({ installed, data }: ObservedInstallation): string[] {
  return [
    ...section('Installed', cut(installed.map(describeInstalled))),
    ...formatUsers(data),
    ...section('Kept', [
      ...formatData(data),
      'VMs and pods that run keep their addresses, and a new installation finds them again',
    ]),
  ];
}

/** Formats how to remove the installation, and the rest afterwards. */
function formatRemovalSteps({ installed, pluginFolder }: ObservedInstallation, flags: ClusterFlags): string[] {
  return [
    ...(installed.length === 0
      ? []
      : [
          'Nothing has been removed. To remove the processes, policies and rights, run:',
          ...removalCommands(installed, flags).map((command) => `  ${command}`),
          'Then new pods on networks with "type": "holdfast" wait until Holdfast is installed again.',
        ]),
    `To remove what is kept too, run afterwards: kubectl holdfast uninstall --everything${flags.clusterFlags}`,
    ...formatPlugin(pluginFolder),
  ];
}

/** Formats what `--everything` removes and keeps. */
function formatRemoval({ data }: ObservedInstallation): string[] {
  return [
    ...section('To be removed, in this order', formatData(data)),
    ...formatUsers(data),
    ...section('Kept', [
      'the kind IPAMClaim, because other software may use it',
      ...(data.otherClaims > 0 ? [`${count(data.otherClaims, 'claim')} of other software`] : []),
    ]),
  ];
}

/** Formats what the user has to do after everything is removed. */
function formatRemainder({ data: { nads } }: ObservedInstallation, clusterFlags: string): string[] {
  return [
    'All data of Holdfast is removed.',
    ...(nads.length > 0
      ? [
          `These NADs still have "type": "holdfast", so new pods on them cannot start (${nads.length}): ${cut(nads).join(', ')}`,
        ]
      : []),
    ...formatPlugin(undefined),
    `If no other software uses claims, run: kubectl delete crd ipamclaims.k8s.cni.cncf.io${clusterFlags}`,
    'Before you install Holdfast again, restart the API servers: until then they find no parameters of policies (kubernetes/kubernetes#130887).',
  ];
}

/** @param folder of the DaemonSet; undefined if it is gone */
function formatPlugin(folder: string | undefined): string[] {
  const isPlain = folder !== undefined && PLAIN_PATH.test(folder);
  const plugin = `${isPlain ? folder : DEFAULT_PLUGIN_FOLDER}/holdfast`;
  return [
    'The plugin stays on the nodes, because pods with addresses from Holdfast need it to end. When none is left, run on each node:',
    `  ${plugin} remove-guards && rm -rf ${plugin} /run/holdfast`,
    ...(isPlain ? [] : ['Replace the directory if the DaemonSet of the agents had another one.']),
  ];
}

function formatData({ claims, pools, blocks, leases, nodes, crds, keptPolicy }: ObservedData): string[] {
  return [
    `claims: ${count(claims, 'IPAMClaim')} that Holdfast manages`,
    `addresses: ${count(pools, 'pool')}, ${count(blocks, 'block')}, ${count(leases, 'lease')}`,
    ...(nodes.length > 0 ? [`extended resources ipam.holdfast.dev/… of ${count(nodes.length, 'node')}`] : []),
    ...(crds.length > 0 ? [`kinds: ${crds.join(', ')}`] : []),
    ...(keptPolicy.length > 0 ? [`the policy that stays with the kinds: ${KEPT_POLICY.name}`] : []),
  ];
}

function formatUsers({ users, nads }: ObservedData): string[] {
  const vms = new Set(users.flatMap(({ vm }) => vm ?? []));
  const pods = users.filter(({ vm }) => vm === undefined);
  return [
    ...section(
      `Pods that use addresses of Holdfast: ${users.length}, of them ${vms.size} of VMs`,
      cut([...[...vms].map((vm) => `VM ${vm}`), ...pods.map(({ pod }) => `Pod ${pod}`)]),
    ),
    ...section(`NADs with "type": "holdfast": ${nads.length}`, cut(nads)),
  ];
}

function cut(lines: readonly string[]): string[] {
  return lines.length <= MAX_LINES
    ? [...lines]
    : [...lines.slice(0, MAX_LINES), `… and ${lines.length - MAX_LINES} more`];
}
