import { MIRROR_POD_ANNOTATION, NETWORK_STATUS_ANNOTATION, NETWORKS_ANNOTATION } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
} from '../../kube/resources.js';
import {
  INSTALL_HOLDFAST,
  LEASE_PAGES,
  identityOf,
  slimClaim,
  readList,
  readListAs,
  required,
  valueOr,
} from '../reader.js';
import { share } from '../../cluster/share.js';
import { IP_POOLS, IP_RESERVATIONS, type MigrationObservation, NODE_SLICE_POOLS } from './plan-types.js';

type ListClient = Pick<Client, 'list' | 'listAs'>;

/**
 * Reads all input of a plan from the API server. whereabouts comes before pods, so that an address that it allocates meanwhile shows in its pod.
 * Leases come before pods, so that an owner that is not among the pods is gone.
 * @param namespace of the objects of whereabouts
 */
export async function observeForMigration(client: ListClient, namespace: string): Promise<MigrationObservation> {
  const [ipPools, reservations, slices, leases] = await Promise.all([
    readList(client, IP_POOLS, { namespace }),
    readList(client, IP_RESERVATIONS, { namespace }),
    readList(client, NODE_SLICE_POOLS, { namespace }),
    readList(client, ADDRESS_LEASES, LEASE_PAGES),
  ]);
  const [nads, pools, claims] = await Promise.all([
    readList(client, NETWORK_ATTACHMENT_DEFINITIONS),
    readList(client, ADDRESS_POOLS),
    readListAs(client, IPAM_CLAIMS, (claim) => [slimClaim(claim)]),
  ]);
  return {
    ipPools: required(ipPools, 'is whereabouts installed, with Kubernetes as its datastore?'),
    // older versions of whereabouts have fewer kinds
    reservations: valueOr(reservations, { unserved: [] }),
    slices: valueOr(slices, { unserved: [] }),
    leases: required(leases, INSTALL_HOLDFAST),
    nads: required(nads, 'install Multus first'),
    pools: required(pools, INSTALL_HOLDFAST),
    claims: valueOr(claims, { unserved: [] }),
    pods: (await client.listAs(PODS, transformPod)).items,
  };
}

/** Returns the namespaces that have IPPools. */
export async function namespacesWithPools(client: ListClient): Promise<string[]> {
  const { items } = await client.list(IP_POOLS, { metadataOnly: true });
  return [...new Set(items.map(({ metadata }) => metadata.namespace ?? ''))].sort();
}

/** Keeps only the needed fields: all pods of a cluster can be hundreds of megabytes. */
function transformPod({ metadata, spec, status }: Pod): Pod {
  const annotations = Object.fromEntries(
    [NETWORKS_ANNOTATION, NETWORK_STATUS_ANNOTATION, MIRROR_POD_ANNOTATION].flatMap((key) => {
      const value = metadata.annotations?.[key];
      return value === undefined ? [] : [[key, value]];
    }),
  );
  return {
    metadata: Object.assign(identityOf(metadata), { annotations }),
    spec: share({ ...(spec?.nodeName && { nodeName: spec.nodeName }) }),
    status: share({ ...(status?.phase && { phase: status.phase }) }),
  };
}
