import { type ObjectMeta, objectKey } from '../../api/meta.js';
import type { Resource } from '../../kube/resource.js';
import { firstOfMany } from '../output.js';
import { removalByManager } from './managed-by.js';

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
  /** `namespace/name` of claims that Holdfast created or adopted. */
  readonly claims: readonly string[];
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
  readonly everything: boolean;
  /** Removes everything even while pods use addresses of Holdfast. */
  readonly ignoreRunningPods: boolean;
  /** Does not ask. */
  readonly yes: boolean;
  /** Prints the plan only. */
  readonly dryRun: boolean;
}

/** The largest number of names in a refusal, and of commands. */
const MAX_NAMES = 5;

/** Returns why Holdfast, or with `everything` its data, may not be removed now. */
export function findRefusals(
  { installed, sharedNamespaces, data }: ObservedInstallation,
  { everything, ignoreRunningPods }: UninstallOptions,
): string[] {
  if (!everything) return refuseSharedNamespaces(sharedNamespaces);
  return [...refuseInstalled(installed), ...(ignoreRunningPods ? [] : refuseUsers(data))];
}

/** Returns how to remove the objects with the tools that created them. Other tools would create them again, or keep a record of them. */
export function removalCommands(installed: readonly InstalledObject[]): string[] {
  const remedies = new Set(installed.flatMap(({ metadata }) => removalByManager({ metadata }) ?? []));
  if (remedies.size === 0) return ['kubectl delete -k <your overlay>'];
  return [...remedies].slice(0, MAX_NAMES);
}

export function describeInstalled({ resource, metadata }: InstalledObject): string {
  return `${resource.kind} ${objectKey({ metadata })}`;
}

/** True if nothing of Holdfast is left, or only claims of other software. */
export function isNothingLeft({ installed, data }: ObservedInstallation): boolean {
  const { claims, pools, blocks, leases, nodes, crds, keptPolicy } = data;
  const lists = [installed, claims, nodes, crds, keptPolicy];
  return pools + blocks + leases === 0 && lists.every(({ length }) => length === 0);
}

function refuseSharedNamespaces(shared: readonly SharedNamespace[]): string[] {
  return shared.map(
    ({ name, content }) =>
      `Namespace ${name} contains ${content}, which ends with the namespace: move or remove it first`,
  );
}

function refuseInstalled(installed: readonly InstalledObject[]): string[] {
  if (installed.length === 0) return [];
  const names = firstOfMany(installed.map(describeInstalled), MAX_NAMES);
  return [
    `Holdfast is still installed (${installed.length}): ${names}. First remove it, and wait until these objects are gone: ${removalCommands(installed).join('; ')}`,
  ];
}

function refuseUsers({ users }: ObservedData): string[] {
  if (users.length === 0) return [];
  const names = users.map(({ pod, vm }) => (vm === undefined ? pod : `${pod} (VM ${vm})`));
  return [
    `pods use addresses of Holdfast (${users.length}): ${firstOfMany(names, MAX_NAMES)}. Stop these VMs and delete these pods first. With --ignore-running-pods they keep running with their addresses, but another IPAM may allocate the same addresses again`,
  ];
}
