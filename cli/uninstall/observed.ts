import type { ObjectMeta } from '../../api/meta.js';
import type { Resource } from '../../kube/resource.js';
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

/** A claim that Holdfast created or adopted. */
export interface ObservedClaim {
  /** `namespace/name`. */
  readonly key: string;
  /** A user has deleted it. */
  readonly isBeingDeleted: boolean;
}

/** A pod that uses addresses of Holdfast. */
export interface AddressUser {
  /** `namespace/name`. */
  readonly pod: string;
  /** `namespace/name` of its VM, for a launcher. */
  readonly vm?: string;
}

/** Everything that only `--everything` removes, and what depends on it. */
export interface ObservedData {
  readonly claims: readonly ObservedClaim[];
  /** Claims of other software, which stay. */
  readonly otherClaims: number;
  readonly pools: number;
  readonly blocks: number;
  readonly leases: number;
  readonly users: readonly AddressUser[];
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
export interface SharedNamespace {
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
