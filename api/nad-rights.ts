/** What an administrator allows the NADs of one namespace to do. */
export interface NadRights {
  /** Pools serve all namespaces, unless their NADs list some. */
  readonly servesAll: boolean;
  /** NADs may set publishCapacity. */
  readonly publishesCapacity: boolean;
  /** Pools share addresses with those of other namespaces only with consent, and existing pools without permission are drained. */
  readonly isOwnershipEnforced: boolean;
}

/** Returns the rights of the NADs of a namespace. */
export type NadRightsLookup = (namespace: string) => NadRights;

/** The flags that grant rights to NADs. */
export interface NadRightsConfig {
  readonly globalNamespaces: readonly string[];
  readonly capacityNamespaces: readonly string[];
  readonly enforceAddressOwnership: boolean;
}

export function nadRightsFrom(config: NadRightsConfig): NadRightsLookup {
  const { globalNamespaces, capacityNamespaces, enforceAddressOwnership } = config;
  return (namespace) => ({
    servesAll: globalNamespaces.includes(namespace),
    publishesCapacity: capacityNamespaces.includes(namespace),
    isOwnershipEnforced: enforceAddressOwnership,
  });
}
