/** What the administrator allows the NADs of one namespace. */
export interface NadRights {
  /** A pool serves all namespaces, unless its NAD names some. */
  readonly servesAll: boolean;
  /** Nodes may show how many addresses of a pool are free. */
  readonly publishesCapacity: boolean;
}

/** By the namespace of the NADs. */
export type NadRightsLookup = (namespace: string) => NadRights;

/** What an administrator configures. */
export interface NadRightsConfig {
  readonly globalNamespaces: readonly string[];
  readonly capacityNamespaces: readonly string[];
}

export function nadRightsFrom({ globalNamespaces, capacityNamespaces }: NadRightsConfig): NadRightsLookup {
  return (namespace) => ({
    servesAll: globalNamespaces.includes(namespace),
    publishesCapacity: capacityNamespaces.includes(namespace),
  });
}
