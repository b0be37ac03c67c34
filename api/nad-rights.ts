/** What an administrator allows the NADs of one namespace to do. */
export interface NadRights {
  /** Pools serve all namespaces, unless their NADs list some. */
  readonly servesAll: boolean;
  /** NADs may set publishCapacity. */
  readonly publishesCapacity: boolean;
}

/** Returns the rights of the NADs of a namespace. */
export type NadRightsLookup = (namespace: string) => NadRights;

/** The flags that grant rights to NADs, as lists of namespaces. */
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
