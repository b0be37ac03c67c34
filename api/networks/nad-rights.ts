/** What an administrator allows the NADs of one namespace to do. */
export interface NadRights {
  /** Pools serve all namespaces, unless their NADs list some. */
  readonly servesAll: boolean;
  /** NADs may set publishCapacity. */
  readonly publishesCapacity: boolean;
  /** Pools share addresses with those of other namespaces only with consent, and existing pools without permission are drained. */
  readonly isOwnershipEnforced: boolean;
}

interface NamespaceRights extends NadRights {
  /** How many pools are derived from them. Pools that exist stay. */
  readonly maxPools: number;
}

export type NadRightsLookup = (namespace: string) => NamespaceRights;

/** The flags that grant rights to NADs, with lists of namespaces. */
export interface NadRightsConfig {
  readonly globalNamespaces: readonly string[];
  readonly capacityNamespaces: readonly string[];
  readonly enforceAddressOwnership: boolean;
  /** How many pools are derived from NADs of one namespace that is not global. */
  readonly maxDerivedPools: number;
}

/** The default of `maxDerivedPools`. */
export const DEFAULT_MAX_DERIVED_POOLS = 64;

export function nadRightsFrom(config: NadRightsConfig): NadRightsLookup {
  const { globalNamespaces, capacityNamespaces, enforceAddressOwnership, maxDerivedPools } = config;
  return (namespace) => {
    const isGlobal = globalNamespaces.includes(namespace);
    return {
      servesAll: isGlobal,
      publishesCapacity: capacityNamespaces.includes(namespace),
      isOwnershipEnforced: enforceAddressOwnership,
      maxPools: isGlobal ? Infinity : maxDerivedPools,
    };
  };
}

/** What a user reads whose NAD gets no pool because of the limit. */
export function poolLimitMessage(namespace: string, maxPools: number): string {
  return (
    `namespace ${namespace} has ${maxPools} derived AddressPools, the most that it may have: delete NADs that are no longer needed, ` +
    'or ask the administrator for an AddressPool or a higher --max-derived-pools-per-namespace of holdfast ipam'
  );
}
