/** What the administrator allows the NADs of one namespace. */
export interface NadRights {
  /** A pool serves all namespaces, unless its NAD names some. */
  readonly servesAll: boolean;
  /** Nodes may show how many addresses of a pool are free. */
  readonly publishesCapacity: boolean;
}

/** By the namespace of the NADs. */
export type RightsOf = (namespace: string) => NadRights;

/** What an administrator configures. */
export interface RightsConfig {
  readonly globalNamespaces: readonly string[];
  readonly capacityNamespaces: readonly string[];
}

export function rightsBy({ globalNamespaces, capacityNamespaces }: RightsConfig): RightsOf {
  return (namespace) => ({
    servesAll: globalNamespaces.includes(namespace),
    publishesCapacity: capacityNamespaces.includes(namespace),
  });
}
