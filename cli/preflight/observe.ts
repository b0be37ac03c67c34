import type { KubeVirt, VirtualMachine } from '../../api/kubevirt.js';
import type { KubeObject } from '../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { Client } from '../../kube/client.js';
import { clusterResource, namespacedResource } from '../../kube/resource.js';
import {
  CONFIG_MAPS,
  KUBEVIRTS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import { pickVm } from '../doctor/observe.js';
import {
  DAEMON_SETS,
  DEFAULT_NAMESPACES,
  DEPLOYMENTS,
  ENDPOINT_SLICES,
  type EndpointSlice,
  type InstalledWorkload,
  WEBHOOK_KINDS,
  type WebhookConfiguration,
  readNamespaces,
} from '../installation.js';
import {
  type Read,
  answerOf,
  joinReads,
  mapRead,
  noneIfUnserved,
  readList,
  readListAs,
  readObject,
  valueOf,
} from '../reader.js';

const SERVER = clusterResource('v1', 'version', 'Version');
const NETWORK_POLICIES = namespacedResource('networking.k8s.io/v1', 'networkpolicies', 'NetworkPolicy');
/** Policies of the whole cluster, which concern namespaces that do not exist yet. */
const CLUSTER_POLICIES = [
  clusterResource('policy.networking.k8s.io/v1alpha1', 'adminnetworkpolicies', 'AdminNetworkPolicy'),
  clusterResource('policy.networking.k8s.io/v1alpha2', 'clusternetworkpolicies', 'ClusterNetworkPolicy'),
  clusterResource('cilium.io/v2', 'ciliumclusterwidenetworkpolicies', 'CiliumClusterwideNetworkPolicy'),
  clusterResource('crd.projectcalico.org/v1', 'globalnetworkpolicies', 'GlobalNetworkPolicy'),
];
const MAC_POOL_CONFIGURATIONS = ['kubemacpool-mutator', 'kubemacpool'];
const MAC_POOL_RANGE = 'kubemacpool-mac-range-config';

/** KubeMacPool, and the first and last of its MAC addresses if they are known. */
interface MacPool {
  readonly start?: string | undefined;
  readonly end?: string | undefined;
}

/** A cluster before Holdfast is installed. */
export interface ObservedTarget {
  readonly version: Read<string>;
  readonly kubevirts: Read<readonly KubeVirt[]>;
  readonly nads: Read<readonly NetworkAttachmentDefinition[]>;
  readonly vms: Read<readonly VirtualMachine[]>;
  readonly namespaces: Read<readonly KubeObject[]>;
  readonly daemonSets: Read<readonly InstalledWorkload[]>;
  readonly deployments: Read<readonly InstalledWorkload[]>;
  /** Those in which Holdfast may be installed. */
  readonly ownNamespaces: Read<ReadonlySet<string>>;
  readonly webhooks: Read<readonly WebhookConfiguration[]>;
  /** Those of the API server. */
  readonly endpoints: Read<readonly EndpointSlice[]>;
  /** NetworkPolicies in Holdfast's namespaces, and all policies of the cluster. */
  readonly networkPolicies: Read<readonly KubeObject[]>;
  /** Undefined: there is none, as far as is known. */
  readonly macPool: MacPool | undefined;
}

/** Reads what the user may read. It changes and tries nothing. */
export async function observeTarget(client: Client, showProgress: (text: string) => void): Promise<ObservedTarget> {
  showProgress('reading the cluster…');
  const server = () => client.transport.request({ method: 'GET', path: '/version' }) as Promise<{ gitVersion: string }>;
  const [version, ownNamespaces, kubevirts, namespaces, daemonSets, deployments, configurations, endpoints, policies] =
    await Promise.all([
      answerOf(server, SERVER),
      readNamespaces(client),
      readList(client, KUBEVIRTS),
      readList(client, NAMESPACES, { metadataOnly: true }),
      readList(client, DAEMON_SETS),
      readList(client, DEPLOYMENTS),
      Promise.all(WEBHOOK_KINDS.map((kind) => readKind(client, kind))),
      readList(client, ENDPOINT_SLICES, {
        namespace: 'default',
        labelSelector: 'kubernetes.io/service-name=kubernetes',
      }),
      Promise.all([
        ...DEFAULT_NAMESPACES.map((namespace) => readKind(client, NETWORK_POLICIES, namespace)),
        ...CLUSTER_POLICIES.map((kind) => readKind(client, kind)),
      ]),
    ]);
  showProgress('reading networks and VMs…');
  const [nads, vms] = await Promise.all([
    readList(client, NETWORK_ATTACHMENT_DEFINITIONS),
    readListAs(client, VIRTUAL_MACHINES, (vm) => [pickVm(vm)]),
  ]);
  const webhooks = joinReads(configurations);
  return {
    version: mapRead(version, ({ gitVersion }) => gitVersion),
    ...{ ownNamespaces, kubevirts, namespaces, daemonSets, deployments, webhooks, endpoints, nads, vms },
    networkPolicies: joinReads(policies),
    macPool: await findMacPool(client, valueOf(webhooks, [])),
  };
}

/** Lists objects with their kind; none if the API server does not serve it. */
async function readKind<T extends KubeObject>(
  client: Client,
  resource: Parameters<typeof readList<T>>[1],
  namespace?: string,
): Promise<Read<readonly T[]>> {
  const read = noneIfUnserved(await readList(client, resource, { namespace }));
  return mapRead(read, (objects) => objects.map((object) => ({ ...object, kind: resource.kind })));
}

async function findMacPool(client: Client, webhooks: readonly WebhookConfiguration[]): Promise<MacPool | undefined> {
  const found = webhooks.find(({ metadata }) => MAC_POOL_CONFIGURATIONS.includes(metadata.name));
  if (found === undefined) return undefined;
  const namespace = found.webhooks?.[0]?.clientConfig.service?.namespace;
  if (namespace === undefined) return {};
  const range = valueOf(await readObject(client, CONFIG_MAPS, { namespace, name: MAC_POOL_RANGE }), undefined);
  return { start: range?.data?.RANGE_START, end: range?.data?.RANGE_END };
}
