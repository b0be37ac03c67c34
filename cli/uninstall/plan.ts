import { type ObjectMeta, objectKey } from '../../api/meta.js';
import type { Resource } from '../../kube/resource.js';
import { NAMESPACES } from '../../kube/resources.js';
import { type Manager, managerOf } from './managed-by.js';
import { firstOfMany } from '../output.js';
import type { Stage } from './stages.js';

/** One object of an installation. */
export interface InstalledObject {
  readonly resource: Resource;
  readonly metadata: ObjectMeta;
}

export interface ObservedStage {
  readonly stage: Stage;
  readonly objects: readonly InstalledObject[];
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

/** A namespace of the installation that stays. */
interface SharedNamespace {
  readonly name: string;
  /** An example of what other software or a user has in it. */
  readonly content: string;
}

export interface ObservedInstallation {
  /** Namespaces of the installation. Objects in other ones belong to others, whatever their names and labels are. */
  readonly namespaces: ReadonlySet<string>;
  readonly stages: readonly ObservedStage[];
  readonly sharedNamespaces: readonly SharedNamespace[];
  /** Where the agents install the plugin; undefined if there is no DaemonSet. */
  readonly pluginFolder: string | undefined;
  /** undefined without `--everything`. */
  readonly data: ObservedData | undefined;
}

export interface UninstallOptions {
  /** Removes the data and the kinds too. */
  readonly everything: boolean;
  /** Removes everything even while pods use addresses of Holdfast. */
  readonly ignoreRunningPods: boolean;
  /** Does not ask. */
  readonly yes: boolean;
  /** Prints the plan only. */
  readonly dryRun: boolean;
}

export interface UninstallPlan {
  /** Why nothing may be removed. */
  readonly refusals: readonly string[];
  /** In order. Stages without objects stay in the list, because an earlier run may have been killed between the removal and the end of the pods. */
  readonly stages: readonly ObservedStage[];
  readonly keptNamespaces: readonly SharedNamespace[];
  readonly data: ObservedData | undefined;
  /** There is nothing to remove. */
  readonly isEmpty: boolean;
}

/** The largest number of names in a refusal, and of refusals because of managers. */
const MAX_NAMES = 5;

/** Decides what is removed, and what prevents it. */
export function planUninstall(observed: ObservedInstallation, options: UninstallOptions): UninstallPlan {
  const { data, sharedNamespaces } = observed;
  const shared = new Set(sharedNamespaces.map(({ name }) => name));
  const stages = observed.stages.map(({ stage, objects }) => ({
    stage,
    objects: objects.filter(({ resource, metadata }) => resource !== NAMESPACES || !shared.has(metadata.name)),
  }));
  return {
    refusals: [...refuseManaged(observed.stages), ...(data && !options.ignoreRunningPods ? refuseUsers(data) : [])],
    stages,
    keptNamespaces: sharedNamespaces,
    data,
    isEmpty: stages.every(({ objects }) => objects.length === 0) && (data === undefined || isEmptyData(data)),
  };
}

/** A tool would create again what is removed, or keep a record of an installation that no longer exists. */
function refuseManaged(stages: readonly ObservedStage[]): string[] {
  const found = new Map<string, { manager: Manager; example: string }>();
  for (const { resource, metadata } of stages.flatMap(({ objects }) => objects)) {
    const manager = managerOf({ metadata });
    if (manager !== undefined && !found.has(manager.remedy)) {
      found.set(manager.remedy, { manager, example: `${resource.kind} ${objectKey({ metadata })}` });
    }
  }
  return [...found.values()]
    .slice(0, MAX_NAMES)
    .map(
      ({ manager: { tool, remedy }, example }) =>
        `${tool} manages this installation, for example ${example}. Uninstall with that tool: ${remedy}`,
    );
}

function refuseUsers({ users }: ObservedData): string[] {
  if (users.length === 0) return [];
  const names = users.map(({ pod, vm }) => (vm === undefined ? pod : `${pod} (VM ${vm})`));
  return [
    `pods use addresses of Holdfast (${users.length}): ${firstOfMany(names, MAX_NAMES)}. Stop these VMs and delete these pods first. With --ignore-running-pods they keep running with their addresses, but another IPAM may allocate the same addresses again`,
  ];
}

function isEmptyData({ claims, pools, blocks, leases, nodes, crds, keptPolicy }: ObservedData): boolean {
  return claims.length + pools + blocks + leases + nodes.length + crds.length + keptPolicy.length === 0;
}
