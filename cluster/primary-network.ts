import { type KubeObject, joinKey } from '../api/meta.js';
import { PRIMARY_NETWORK_LABEL } from '../api/names.js';
import type { CniNetwork } from '../api/networks/network-attachment.js';
import type { Lister } from '../kube/informers/cache.js';
import { BY_PRIMARY_NAMESPACE } from './watch-specs.js';
import type { ParsedNad } from './transforms.js';

/** OVN-Kubernetes' name for the interface of a pod on a primary user-defined network. */
export const PRIMARY_POD_INTERFACE = 'ovn-udn1';

/** The primary user-defined network of a namespace. */
export interface PrimaryNetwork {
  readonly nad: { readonly namespace: string; readonly name: string };
  /** `namespace/name` of the NAD. */
  readonly nadKey: string;
  readonly network: CniNetwork & Required<Pick<CniNetwork, 'primary'>>;
  /** How many other NADs of the namespace are primary, too. OVN-Kubernetes allows none. */
  readonly others: number;
}

/** True if OVN-Kubernetes gives the pods of the namespace a primary user-defined network. */
export function hasPrimaryNetworkLabel(namespace: KubeObject | undefined): boolean {
  return namespace?.metadata.labels?.[PRIMARY_NETWORK_LABEL] !== undefined;
}

/** Returns the primary network of a namespace: the first by the name of its NAD, as in kubevirt/ipam-extensions. */
export function findPrimaryNetwork(
  namespace: string,
  networks: Pick<Lister<ParsedNad>, 'byIndex'>,
): PrimaryNetwork | undefined {
  const nads = networks.byIndex(BY_PRIMARY_NAMESPACE, namespace);
  let first: ParsedNad | undefined;
  for (const nad of nads) if (first === undefined || nad.metadata.name < first.metadata.name) first = nad;
  if (!first?.config.ok || first.config.network.primary === undefined) return undefined;
  const { name } = first.metadata;
  return {
    nad: { namespace, name },
    nadKey: joinKey(namespace, name),
    network: { ...first.config.network, primary: first.config.network.primary },
    others: nads.length - 1,
  };
}
