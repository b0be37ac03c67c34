import { type KubeObject, joinKey } from '../../api/meta.js';
import { RESPONDERS_NAMESPACE, SERVED_NETWORKS_CONFIG_MAP } from '../../api/names.js';
import { LEASES } from '../../kube/leader-election.js';
import type { Resource } from '../../kube/resource.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  CONFIG_MAPS,
  IPAM_CLAIMS,
  KUBEVIRTS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  NODES,
  PODS,
} from '../../kube/resources.js';
import { INSTALLED, findNamespacesOrDefault } from '../uninstall/observe.js';
import { PARAMETERS } from './check-admission.js';
import {
  CRDS,
  DAEMON_SETS,
  DEPLOYMENTS,
  ENDPOINT_SLICES,
  type ObservedCluster,
  type LockedLease,
  type ObservedLease,
  type ObservingClient,
  POLICIES,
  POLICY_BINDINGS,
  PROCESS_PODS,
  STATEFUL_SETS,
  WEBHOOK_KINDS,
  type Workload,
} from './observed.js';
import { PermittedReader } from './permitted-reader.js';
import { callWebhooks, missingRightsOf, serverTime } from './probe.js';

const OWN_NAME = /^holdfast(-|$)/;
const NODE_LEASES = 'kube-node-lease';

export interface ObserveOptions {
  /** Also pools, networks, claims, leases and clocks. */
  readonly withData: boolean;
  readonly showProgress: (text: string) => void;
}

/** Reads what the user may read, and tries what the processes need. It changes nothing. */
export async function observeCluster(client: ObservingClient, options: ObserveOptions): Promise<ObservedCluster> {
  const reader = new PermittedReader(client);
  options.showProgress('reading the installation…');
  const namespaces = await findNamespacesOrDefault(client);
  const isOwn = ({ metadata: { name, namespace } }: KubeObject) =>
    OWN_NAME.test(name) && (namespace === undefined || namespaces.has(namespace));
  const listOwn = async <T extends KubeObject>(resource: Resource<T>) =>
    (await reader.list(resource, { labelSelector: INSTALLED }))?.filter(isOwn);
  const inNamespaces = async <T extends KubeObject>(resource: Resource<T>, labelSelector?: string) => {
    const lists = await Promise.all(
      [...namespaces].map((namespace) => reader.list(resource, { namespace, labelSelector })),
    );
    return lists.every((list) => list !== undefined) ? lists.flat() : undefined;
  };
  const [crds, deployments, daemonSets, pods, leaders, policies, policyBindings, endpointSlices, kubevirts] =
    await Promise.all([
      reader.list(CRDS),
      listOwn(DEPLOYMENTS),
      reader.list(DAEMON_SETS),
      listOwn(PROCESS_PODS),
      inNamespaces(LEASES, INSTALLED),
      listOwn(POLICIES),
      listOwn(POLICY_BINDINGS),
      inNamespaces(ENDPOINT_SLICES),
      reader.list(KUBEVIRTS),
    ]);
  const configurations = await Promise.all(
    WEBHOOK_KINDS.map(async (resource) =>
      (await listOwn(resource))?.map((object) => ({ ...object, kind: resource.kind })),
    ),
  );
  const agents = daemonSets?.filter((set) => isOwn(set) && set.metadata.name === 'holdfast-agent');
  const workloads = deployments === undefined || agents === undefined ? undefined : [...deployments, ...agents];
  options.showProgress('trying webhooks and rights…');
  const found = await inNamespaces(CONFIG_MAPS, INSTALLED);
  const dataOf = (name: string) => {
    const object = found?.find(({ metadata }) => metadata.name === name);
    return found && (object === undefined ? null : (object.data ?? {}));
  };
  return {
    now: await serverTime(reader),
    ...{ crds, workloads, pods, leaders, endpointSlices, policies, policyBindings, kubevirts },
    configurations: configurations.every((list) => list !== undefined) ? configurations.flat() : undefined,
    trialCalls: await callWebhooks(
      reader,
      configurations.flatMap((list) => list ?? []),
    ),
    parameters: dataOf(PARAMETERS),
    servedNetworks: dataOf(SERVED_NETWORKS_CONFIG_MAP),
    missingRights: await missingRightsOf(reader, workloads ?? []),
    multus: daemonSets?.filter((set: Workload) => set.metadata.name.includes('multus')),
    ...(options.withData ? await observeData(reader, options) : NO_DATA),
    refused: reader.refused,
  };
}

type ObservedData = Pick<
  ObservedCluster,
  'nodes' | 'nodeLeases' | 'pools' | 'nads' | 'responderSets' | 'claims' | 'leases' | 'lockedLeases' | 'owners'
>;

const NO_DATA: ObservedData = {
  ...{ nodes: undefined, nodeLeases: undefined, pools: undefined, nads: undefined },
  ...{ responderSets: undefined, claims: undefined, leases: undefined, owners: undefined },
  lockedLeases: undefined,
};

async function observeData(reader: PermittedReader, { showProgress }: ObserveOptions): Promise<ObservedData> {
  showProgress('reading pools, networks and nodes…');
  const [nodes, nodeLeases, pools, nads, responderSets] = await Promise.all([
    reader.list(NODES),
    reader.list(LEASES, { namespace: NODE_LEASES }),
    reader.list(ADDRESS_POOLS),
    reader.list(NETWORK_ATTACHMENT_DEFINITIONS),
    reader.list(STATEFUL_SETS, { namespace: RESPONDERS_NAMESPACE, labelSelector: INSTALLED }),
  ]);
  showProgress('reading leases and their owners…');
  // before their owners: the owner of a lease that is younger than the list of owners would seem to be gone
  const read = await reader.listAs(ADDRESS_LEASES, ({ metadata, spec }): (ObservedLease | LockedLease)[] => {
    const { owner, releasedAt, networkData } = spec;
    const { name, creationTimestamp = '' } = metadata;
    if (releasedAt === undefined)
      return owner === undefined ? [] : [{ name, owner, createdAt: Date.parse(creationTimestamp) }];
    if (networkData === undefined) return [];
    return [{ name, secret: joinKey(networkData.namespace, networkData.secret), releasedAt: Date.parse(releasedAt) }];
  });
  const leases = read?.flat().filter((lease) => 'owner' in lease);
  const lockedLeases = read?.flat().filter((lease) => 'secret' in lease);
  const [claims, pods] = await Promise.all([
    reader.list(IPAM_CLAIMS),
    reader.listAs(PODS, ({ metadata }) => metadata.uid ?? '', { metadataOnly: true }),
  ]);
  const owners = claims && pods && new Set([...claims.map(({ metadata }) => metadata.uid ?? ''), ...pods]);
  return { nodes, nodeLeases, pools, nads, responderSets, claims, leases, lockedLeases, owners };
}
