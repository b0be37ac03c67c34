import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Cache } from '../../kube/informers/cache.js';
import type { NetworkChanges, PoolDirectory } from './directory.js';
import { nadNamespaceOfUser, networkKey, userOfClaim } from './resolution.js';

/** Index of claims by their network. */
export const BY_NETWORK = 'network';
/** Index of claims by the namespace of their NAD and their network. */
const BY_NAD_NAMESPACE = 'nad-namespace';

/** The indexes that {@link affectedClaims} needs. */
export const NETWORK_INDEXES = {
  [BY_NETWORK]: ({ spec }: IPAMClaim) => [spec.network],
  [BY_NAD_NAMESPACE]: (claim: IPAMClaim) => {
    const user = userOfClaim(claim);
    return [networkKey(nadNamespaceOfUser(user), user.network)];
  },
};

/** Returns the claims that changes may concern. Those of other namespaces cost nothing. */
export function affectedClaims(changes: NetworkChanges, claims: Pick<Cache<IPAMClaim>, 'byIndex'>): IPAMClaim[] {
  return [...changes].flatMap(([network, namespaces]) =>
    namespaces === undefined
      ? claims.byIndex(BY_NETWORK, network)
      : [...namespaces].flatMap((namespace) => claims.byIndex(BY_NAD_NAMESPACE, networkKey(namespace, network))),
  );
}

/** Returns the names of the pools that changes may concern: all administrators' pools of the networks, and derived ones of the namespaces. */
export function affectedPools(changes: NetworkChanges, directory: Pick<PoolDirectory, 'poolsOf'>): string[] {
  return [...changes].flatMap(([network, namespaces]) =>
    directory
      .poolsOf(network)
      .filter(({ nadNamespace }) => nadNamespace === undefined || (namespaces?.has(nadNamespace) ?? true))
      .map(({ name }) => name),
  );
}
