import { objectKey } from '../../api/meta.js';
import { count } from '../output.js';
import type { ObservedData, ObservedStage, UninstallPlan } from './plan.js';
import { KEPT_POLICY } from './stages.js';

/** Longer lists are cut. */
const MAX_LINES = 20;
const DEFAULT_PLUGIN_FOLDER = '/opt/cni/bin';
/** The path becomes part of a command, which somebody runs as root. */
const PLAIN_PATH = /^\/[A-Za-z0-9._/-]+$/;

/** Formats what the command removes and what it keeps. */
export function formatUninstallPlan({ stages, data, keptNamespaces }: UninstallPlan): string[] {
  return [
    ...section('To be removed, in this order', [
      ...stages.filter(({ objects }) => objects.length > 0).map(formatStage),
      ...(data === undefined ? [] : formatData(data)),
    ]),
    ...(data === undefined ? [] : formatUsers(data)),
    ...section('Kept', [
      ...(data === undefined
        ? [
            `all kinds, the policy ${KEPT_POLICY.name}, pools, leases and claims: VMs keep their addresses, and a new installation finds them again`,
          ]
        : ['the kind IPAMClaim, because other software may use it']),
      ...(data !== undefined && data.otherClaims > 0 ? [`${count(data.otherClaims, 'claim')} of other software`] : []),
      ...keptNamespaces.map(({ name, content }) => `Namespace ${name}: it contains ${content}`),
    ]),
  ];
}

/** Formats what the user has to do afterwards. */
export function formatRemainder({ data }: UninstallPlan, pluginFolder = DEFAULT_PLUGIN_FOLDER): string[] {
  if (data === undefined) {
    return [
      'Holdfast is uninstalled. Pods on networks with "type": "holdfast" keep running, but new ones wait until it is installed again.',
      'To remove pools, leases, claims and kinds too, run: kubectl holdfast uninstall --everything',
    ];
  }
  const isPlain = PLAIN_PATH.test(pluginFolder);
  return [
    'Holdfast and all of its data are removed.',
    ...(data.nads.length > 0
      ? [
          `These NADs still have "type": "holdfast", so new pods on them cannot start (${data.nads.length}): ${cut(data.nads).join(', ')}`,
        ]
      : []),
    'The plugin stays on the nodes, because pods with addresses from Holdfast need it to end. When none is left, run on each node:',
    `  rm -rf ${isPlain ? pluginFolder : DEFAULT_PLUGIN_FOLDER}/holdfast /run/holdfast`,
    ...(isPlain
      ? []
      : [
          'Replace the directory: the DaemonSet had another one, which is not shown because a shell could interpret it.',
        ]),
    'If no other software uses claims, run: kubectl delete crd ipamclaims.k8s.cni.cncf.io',
    'Before you install Holdfast again, restart the API servers: until then they find no parameters of policies (kubernetes/kubernetes#130887).',
  ];
}

function formatStage({ stage, objects }: ObservedStage): string {
  const names = objects.map(({ resource, metadata }) => `${resource.kind} ${objectKey({ metadata })}`);
  const shown = names.length > 4 ? `${objects.length} objects` : names.join(', ');
  return `${stage.title}: ${shown}`;
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
