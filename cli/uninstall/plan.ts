import { nameFirst } from '../../api/json.js';
import { type KubeObject, type ObjectMeta, isObjectName, objectKey } from '../../api/meta.js';
import type { Resource } from '../../kube/resource.js';
import { ADDRESS_BLOCKS, ADDRESS_LEASES, ADDRESS_POOLS, PODS } from '../../kube/resources.js';
import type { ClusterFlags } from '../cluster-client.js';
import { DAEMON_SETS, DEPLOYMENTS, POLICIES, POLICY_BINDINGS, STATEFUL_SETS, WEBHOOK_KINDS } from '../installation.js';

/** One object of an installation. */
export interface InstalledObject {
  readonly resource: Resource;
  readonly metadata: ObjectMeta;
}

/** A pod that uses addresses of Holdfast. */
export interface RemainingUser {
  /** `namespace/name`. */
  readonly pod: string;
  /** `namespace/name` of its VM, for a launcher. */
  readonly vm?: string;
}

/** Everything that only `--everything` removes, and what depends on it. */
export interface ObservedData {
  /** Claims that Holdfast created or adopted. */
  readonly claims: number;
  /** Claims of other software, which stay. */
  readonly otherClaims: number;
  readonly pools: number;
  readonly blocks: number;
  readonly leases: number;
  readonly users: readonly RemainingUser[];
  /** `namespace/name` of NADs that delegate to Holdfast. */
  readonly nads: readonly string[];
  /** Nodes that show addresses as extended resources. */
  readonly nodes: readonly string[];
  /** CustomResourceDefinitions of Holdfast. */
  readonly crds: readonly string[];
  /** The policy that stays with the kinds, and its binding. */
  readonly keptPolicy: readonly InstalledObject[];
}

/** A namespace of the installation that others use. */
interface SharedNamespace {
  readonly name: string;
  /** An example of what other software or a user has in it. */
  readonly content: string;
}

export interface ObservedInstallation {
  /** What the tool that installed Holdfast has to remove before the data. */
  readonly installed: readonly InstalledObject[];
  readonly sharedNamespaces: readonly SharedNamespace[];
  /** Where the agents install the plugin; undefined if there is no DaemonSet. */
  readonly pluginFolder: string | undefined;
  readonly data: ObservedData;
}

export interface UninstallOptions {
  /** Removes the data and the kinds. */
  readonly everything?: boolean;
  /** Removes everything even while pods use addresses of Holdfast. */
  readonly ignoreRunningPods?: boolean;
  /** Does not ask. */
  readonly yes?: boolean;
  /** Prints the plan only. */
  readonly dryRun?: boolean;
}

/** The largest number of names in a refusal, and of commands. */
const MAX_NAMES = 5;

/** Returns why Holdfast, or with `everything` its data, may not be removed now. */
export function findRefusals(
  { installed, sharedNamespaces, data }: ObservedInstallation,
  { everything, ignoreRunningPods }: UninstallOptions,
  flags: ClusterFlags,
): string[] {
  if (!everything) return refuseSharedNamespaces(sharedNamespaces);
  return [...refuseInstalled(installed, flags), ...(ignoreRunningPods ? [] : refuseUsers(data))];
}

/** Returns how to remove the objects with the tools that created them. Other tools would create them again, or keep a record of them. */
export function removalCommands(installed: readonly InstalledObject[], flags: ClusterFlags): string[] {
  const remedies = new Set(installed.flatMap(({ metadata }) => removalByManager({ metadata }, flags) ?? []));
  if (remedies.size === 0) return [`kubectl delete -k <your overlay>${flags.clusterFlags}`];
  return [...remedies].slice(0, MAX_NAMES);
}

export function describeInstalled({ resource, metadata }: InstalledObject): string {
  return `${resource.kind} ${objectKey({ metadata })}`;
}

/** True if nothing of Holdfast is left, or only claims of other software. */
export function isNothingLeft({ installed, data }: ObservedInstallation): boolean {
  const { claims, pools, blocks, leases, nodes, crds, keptPolicy } = data;
  const lists = [installed, nodes, crds, keptPolicy];
  return claims + pools + blocks + leases === 0 && lists.every(({ length }) => length === 0);
}

function refuseSharedNamespaces(shared: readonly SharedNamespace[]): string[] {
  return shared.map(
    ({ name, content }) =>
      `Namespace ${name} contains ${content}, which ends with the namespace: move or remove it first`,
  );
}

function refuseInstalled(installed: readonly InstalledObject[], flags: ClusterFlags): string[] {
  if (installed.length === 0) return [];
  const names = nameFirst(installed.map(describeInstalled), MAX_NAMES);
  return [
    `Holdfast is still installed (${installed.length}): ${names}. First remove it, and wait until these objects are gone: ${removalCommands(installed, flags).join('; ')}`,
  ];
}

function refuseUsers({ users }: ObservedData): string[] {
  if (users.length === 0) return [];
  const names = users.map(({ pod, vm }) => (vm === undefined ? pod : `${pod} (VM ${vm})`));
  return [
    `pods use addresses of Holdfast (${users.length}): ${nameFirst(names, MAX_NAMES)}. Stop these VMs and delete these pods first. With --ignore-running-pods they keep running with their addresses, but another IPAM may allocate the same addresses again`,
  ];
}

/**
 * Returns how to remove an object with the tool that manages it according to the labels and annotations that the tool sets. If somebody else
 * deletes the object, the tool restores it, or keeps a record of it.
 */
function removalByManager(
  { metadata }: Pick<KubeObject, 'metadata'>,
  { clusterFlags, helmClusterFlags }: ClusterFlags,
): string | undefined {
  const { labels = {}, annotations = {} } = metadata;
  // Flux and Argo CD come before Helm, because they render charts
  const release = labels['helm.toolkit.fluxcd.io/name'];
  if (release !== undefined) {
    return removalByFlux('helmrelease', release, labels['helm.toolkit.fluxcd.io/namespace']) + clusterFlags;
  }
  const kustomization = labels['kustomize.toolkit.fluxcd.io/name'];
  if (kustomization !== undefined) {
    return (
      removalByFlux('kustomization', kustomization, labels['kustomize.toolkit.fluxcd.io/namespace']) + clusterFlags
    );
  }
  // <application>:<group>/<kind>:<namespace>/<name>
  const application =
    annotations['argocd.argoproj.io/tracking-id']?.split(':')[0] ?? labels['argocd.argoproj.io/instance'];
  if (application !== undefined) {
    const name = nameIn(application);
    return `delete the Application ${name}: argocd app delete ${name}`;
  }
  const owner = labels['olm.owner'];
  if (owner !== undefined) {
    return `delete the Subscription, then the ClusterServiceVersion ${nameIn(owner)}`;
  }
  const chart = annotations['meta.helm.sh/release-name'];
  if (chart === undefined) return undefined;
  const namespace = annotations['meta.helm.sh/release-namespace'];
  const option = namespace === undefined ? '' : ` -n ${nameIn(namespace)}`;
  return `helm uninstall ${nameIn(chart)}${option}${helmClusterFlags}`;
}

function removalByFlux(kind: string, name: string, namespace = 'flux-system'): string {
  return `flux delete ${kind} ${nameIn(name)} -n ${nameIn(namespace)}`;
}

/** A name for a command that somebody copies into a shell. */
function nameIn(text: string): string {
  return isObjectName(text) ? text : '<name>';
}

const POLICY_KINDS: readonly Resource[] = [POLICY_BINDINGS, POLICIES];

/**
 * The kinds of an installation that have to be gone before its data is removed: processes would write the data again, responders use addresses,
 * webhooks without a process deny writes of pools, and policies protect claims. Other objects do nothing without the processes.
 */
export const INSTALLED_KINDS: readonly Resource[] = [
  DAEMON_SETS,
  DEPLOYMENTS,
  STATEFUL_SETS,
  ...WEBHOOK_KINDS,
  ...POLICY_KINDS,
  PODS,
];

/** The kinds of Holdfast's own objects. A lease is removed last: as long as a pool exists, its leases keep addresses from being allocated twice. */
export const OWN_KINDS: readonly Resource[] = [ADDRESS_POOLS, ADDRESS_BLOCKS, ADDRESS_LEASES];

/**
 * A policy that stays with the kinds, so that API servers find the parameters of a new installation. It is removed last: API servers then
 * know that the other parameters are gone, and deny instead of using old ones.
 */
export const KEPT_POLICY = { name: 'holdfast-configmap-informer', kinds: POLICY_KINDS } as const;
