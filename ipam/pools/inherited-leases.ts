import type { EvaluatedPool } from '../../addressing/directory/pool-state.js';
import { isServingNamespace } from '../../addressing/directory/resolution.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import type { Pool } from '../../addressing/pool/pool.js';

/** Held leases of other pools of the network whose owners a pool serves now. They keep the name of the pool that leased them. */
interface InheritedLeases {
  /** The names of pools that may have such leases. */
  readonly pools: readonly string[];
  /** Tells whether a lease of one of these pools is such a lease. */
  includes(lease: Pick<LeaseRecord, 'addressSpace' | 'owner' | 'releasedAt' | 'quarantine'>): boolean;
}

/** An administrator's pool replaces any other pool for its namespaces; a derived pool replaces only administrators' pools that are gone. */
export function inheritedLeasesOf(
  { name, network, addressSpace, nadNamespace }: Pick<Pool, 'name' | 'network' | 'addressSpace' | 'nadNamespace'>,
  directory: { poolsOf(network: string): readonly EvaluatedPool[] },
): InheritedLeases {
  const all = directory.poolsOf(network);
  const admins = all.filter((each) => each.nadNamespace === undefined);
  const served = all.find((each) => each.name === name && each.state.kind === 'served');
  const serves = (namespace: string) => {
    if (served === undefined) return false;
    if (nadNamespace === undefined) return isServingNamespace(served, namespace);
    return namespace === nadNamespace && !admins.some((admin) => isServingNamespace(admin, namespace));
  };
  return {
    pools: (nadNamespace === undefined ? all : admins).flatMap((each) => (each.name === name ? [] : [each.name])),
    includes: (lease) =>
      lease.addressSpace === addressSpace &&
      stateOf(lease) === 'held' &&
      lease.owner !== undefined &&
      serves(lease.owner.namespace),
  };
}
