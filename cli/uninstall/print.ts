import { count } from '../output.js';
import { KEPT_POLICY } from './kinds.js';
import { type ObservedData, type ObservedInstallation, describeInstalled, removalCommands } from './plan.js';

/** Longer lists are cut. */
const MAX_LINES = 20;
const DEFAULT_PLUGIN_FOLDER = '/opt/cni/bin';
/** The path becomes part of a command, which somebody runs as root. */
const PLAIN_PATH = /^\/[A-Za-z0-9._/-]+$/;

/** Formats what is installed, and what stays when the tool that installed it has removed it. */
export function formatInstallation({ installed, data }: ObservedInstallation): string[] {
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
export function formatRemovalSteps({ installed, pluginFolder }: ObservedInstallation): string[] {
  return [
    ...(installed.length === 0
      ? []
      : [
          'Nothing has been removed. To remove the processes, policies and rights, run:',
          ...removalCommands(installed).map((command) => `  ${command}`),
          'Then new pods on networks with "type": "holdfast" wait until Holdfast is installed again.',
        ]),
    'To remove what is kept too, run afterwards: kubectl holdfast uninstall --everything',
    ...formatPlugin(pluginFolder),
  ];
}

/** Formats what `--everything` removes and keeps. */
export function formatRemoval({ data }: ObservedInstallation): string[] {
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
export function formatRemainder({ data: { nads } }: ObservedInstallation): string[] {
  return [
    'All data of Holdfast is removed.',
    ...(nads.length > 0
      ? [
          `These NADs still have "type": "holdfast", so new pods on them cannot start (${nads.length}): ${cut(nads).join(', ')}`,
        ]
      : []),
    ...formatPlugin(undefined),
    'If no other software uses claims, run: kubectl delete crd ipamclaims.k8s.cni.cncf.io',
    'Before you install Holdfast again, restart the API servers: until then they find no parameters of policies (kubernetes/kubernetes#130887).',
  ];
}

/** @param folder of the DaemonSet; undefined if it is gone */
function formatPlugin(folder: string | undefined): string[] {
  const isPlain = folder !== undefined && PLAIN_PATH.test(folder);
  return [
    'The plugin stays on the nodes, because pods with addresses from Holdfast need it to end. When none is left, run on each node:',
    `  rm -rf ${isPlain ? folder : DEFAULT_PLUGIN_FOLDER}/holdfast /run/holdfast`,
    ...(isPlain ? [] : ['Replace the directory if the DaemonSet of the agents had another one.']),
  ];
}

function formatData({ claims, pools, blocks, leases, nodes, crds, keptPolicy }: ObservedData): string[] {
  return [
    `claims: ${count(claims.length, 'IPAMClaim')} that Holdfast manages`,
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

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`${title}:`, ...lines.map((line) => `  ${line}`), ''];
}

function cut(lines: readonly string[]): string[] {
  return lines.length <= MAX_LINES
    ? [...lines]
    : [...lines.slice(0, MAX_LINES), `… and ${lines.length - MAX_LINES} more`];
}
