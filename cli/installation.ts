import type { KubeObject } from '../api/meta.js';
import { RESPONDERS_NAMESPACE, SERVED_NETWORKS_CONFIG_MAP } from '../api/names.js';
import { COMPONENT_LABEL } from '../api/pod.js';
import type { Client } from '../kube/client.js';
import { type Lease, LEASES } from '../kube/leader-election.js';
import { type Resource, clusterResource, namespacedResource } from '../kube/resource.js';
import { CONFIG_MAPS } from '../kube/resources.js';
import { type PermittedReader, type Read, mapRead, noneIfUnserved, readListAs, valueOr } from './reader.js';

/** The kinds of an installation, with the fields that commands read. */

interface PodTemplate {
  spec?: {
    containers?: { name: string; image?: string; command?: string[]; args?: string[] }[];
    volumes?: { name: string; hostPath?: { path?: string } }[];
  };
}

/** A Deployment, a DaemonSet or a StatefulSet. */
export interface InstalledWorkload extends KubeObject {
  spec?: { replicas?: number; template?: PodTemplate };
  status?: { readyReplicas?: number; desiredNumberScheduled?: number; numberReady?: number };
}
export const DEPLOYMENTS = namespacedResource<InstalledWorkload>('apps/v1', 'deployments', 'Deployment');
export const DAEMON_SETS = namespacedResource<InstalledWorkload>('apps/v1', 'daemonsets', 'DaemonSet');
export const STATEFUL_SETS = namespacedResource<InstalledWorkload>('apps/v1', 'statefulsets', 'StatefulSet');

interface ContainerStatus {
  name: string;
  restartCount?: number;
  state?: { waiting?: { reason?: string; message?: string }; terminated?: { message?: string } };
  lastState?: { terminated?: { message?: string } };
}

export interface ProcessPod extends KubeObject {
  spec?: {
    nodeName?: string;
    initContainers?: { name: string }[];
    containers?: {
      name: string;
      image?: string;
      args?: string[];
      ports?: { name?: string; containerPort: number }[];
    }[];
  };
  status?: {
    phase?: string;
    conditions?: { type: string; status: string; message?: string }[];
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
  };
}
export const PROCESS_PODS = namespacedResource<ProcessPod>('v1', 'pods', 'Pod');

/** A node, with the fields that commands read. */
export interface CheckedNode extends KubeObject {
  spec?: { unschedulable?: boolean };
  status?: { conditions?: { type: string; status: string }[] };
}

/** Whether a pod or a node is ready. */
export function isReady({ status }: CheckedNode | ProcessPod): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
}

export interface WebhookConfiguration extends KubeObject {
  webhooks?: {
    name: string;
    failurePolicy?: string;
    rules?: { resources?: string[] }[];
    clientConfig: { caBundle?: string; url?: string; service?: { namespace: string; name: string } };
  }[];
}
const ADMISSION = 'admissionregistration.k8s.io/v1';
export const WEBHOOK_KINDS: readonly Resource<WebhookConfiguration>[] = [
  clusterResource(ADMISSION, 'mutatingwebhookconfigurations', 'MutatingWebhookConfiguration'),
  clusterResource(ADMISSION, 'validatingwebhookconfigurations', 'ValidatingWebhookConfiguration'),
];

export const POLICIES = clusterResource(ADMISSION, 'validatingadmissionpolicies', 'ValidatingAdmissionPolicy');
export const POLICY_BINDINGS = clusterResource(
  ADMISSION,
  'validatingadmissionpolicybindings',
  'ValidatingAdmissionPolicyBinding',
);

export interface EndpointSlice extends KubeObject {
  ports?: { port?: number }[];
  endpoints?: { conditions?: { ready?: boolean } }[];
}
export const ENDPOINT_SLICES = namespacedResource<EndpointSlice>(
  'discovery.k8s.io/v1',
  'endpointslices',
  'EndpointSlice',
);

export interface JsonSchema {
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
}
export interface Crd extends KubeObject {
  spec?: { versions?: { name: string; served?: boolean; schema?: { openAPIV3Schema?: JsonSchema } }[] };
  status?: { conditions?: { type: string; status: string; message?: string }[] };
}
export const CRDS = clusterResource<Crd>(
  'apiextensions.k8s.io/v1',
  'customresourcedefinitions',
  'CustomResourceDefinition',
);

interface ClusterRoleBinding extends KubeObject {
  subjects?: { kind: string; name: string; namespace?: string }[];
}
export const CLUSTER_ROLE_BINDINGS = clusterResource<ClusterRoleBinding>(
  'rbac.authorization.k8s.io/v1',
  'clusterrolebindings',
  'ClusterRoleBinding',
);

/** The label of every object that the manifests create. */
export const INSTALLED = 'app.kubernetes.io/name=holdfast';
/** Objects of other software may have the label too. */
const OWN_NAME = /^holdfast(-|$)/;
/** Those of the shipped manifests. */
export const DEFAULT_NAMESPACES: readonly string[] = ['holdfast-system', 'holdfast-agents', RESPONDERS_NAMESPACE];
/** The name of the ConfigMap with the parameters of the policies. */
export const PARAMETERS = 'holdfast-policies';
const IPAM_COMPONENTS: readonly string[] = ['ipam', 'agent', 'all'];
const GATES = '--feature-gates=';

type ListClient = Pick<Client, 'listAs'>;

/** Selects the objects of one component. */
export function ofComponent(component: string): string {
  return `${INSTALLED},${COMPONENT_LABEL}=${component}`;
}

export function hasOwnName({ metadata }: KubeObject): boolean {
  return OWN_NAME.test(metadata.name);
}

/** True if an object with the label belongs to the installation. In other namespaces, any tenant may create such objects. */
export function isOwn(namespaces: ReadonlySet<string>, object: KubeObject): boolean {
  const { namespace } = object.metadata;
  return hasOwnName(object) && (namespace === undefined || namespaces.has(namespace));
}

/** Reads the namespaces of the installation from objects that no tenant can write, which stay until the namespaces are gone. */
export async function readNamespaces(client: ListClient): Promise<Read<ReadonlySet<string>>> {
  const subjectsOf = (binding: ClusterRoleBinding) => (hasOwnName(binding) ? (binding.subjects ?? []) : []);
  const read = await readListAs(client, CLUSTER_ROLE_BINDINGS, subjectsOf, { labelSelector: INSTALLED });
  return mapRead(noneIfUnserved(read), (subjects) => {
    const accounts = subjects.filter(({ kind, name }) => kind === 'ServiceAccount' && OWN_NAME.test(name));
    return new Set([...DEFAULT_NAMESPACES, ...accounts.flatMap(({ namespace }) => namespace ?? [])]);
  });
}

/** Like {@link readNamespaces}; those of the shipped manifests if the user may not read them. */
export async function findNamespacesOrDefault(client: ListClient): Promise<ReadonlySet<string>> {
  return valueOr(await readNamespaces(client), { forbidden: new Set(DEFAULT_NAMESPACES) });
}

/** What is installed. A field is undefined if the user may not read it. */
export interface Installation {
  readonly crds: readonly Crd[] | undefined;
  /** Deployments, and the DaemonSet of the agents. */
  readonly workloads: readonly InstalledWorkload[] | undefined;
  readonly pods: readonly ProcessPod[] | undefined;
  readonly leaders: readonly Lease[] | undefined;
  readonly configurations: readonly WebhookConfiguration[] | undefined;
  readonly endpointSlices: readonly EndpointSlice[] | undefined;
  readonly policies: readonly KubeObject[] | undefined;
  readonly policyBindings: readonly KubeObject[] | undefined;
  /** `null`: it does not exist. */
  readonly parameters: Readonly<Record<string, string>> | null | undefined;
  /** `null`: it does not exist. */
  readonly servedNetworks: Readonly<Record<string, string>> | null | undefined;
  /** The DaemonSets of Multus. */
  readonly multus: readonly InstalledWorkload[] | undefined;
}

/** Reads what is installed, as far as the user may. */
export async function readInstallation(reader: PermittedReader): Promise<Installation> {
  const read = await readNamespaces(reader.client);
  const namespaces = valueOr(read, { forbidden: new Set(DEFAULT_NAMESPACES) });
  const listOwn = async <T extends KubeObject>(resource: Resource<T>) =>
    (await reader.list(resource, { labelSelector: INSTALLED }))?.filter((object) => isOwn(namespaces, object));
  const inNamespaces = async <T extends KubeObject>(resource: Resource<T>, labelSelector?: string) =>
    joined(await Promise.all([...namespaces].map((namespace) => reader.list(resource, { namespace, labelSelector }))));
  const [crds, deployments, daemonSets, pods, leaders, policies, policyBindings, endpointSlices, configurations, data] =
    await Promise.all([
      reader.list(CRDS),
      listOwn(DEPLOYMENTS),
      reader.list(DAEMON_SETS),
      listOwn(PROCESS_PODS),
      inNamespaces(LEASES, INSTALLED),
      listOwn(POLICIES),
      listOwn(POLICY_BINDINGS),
      inNamespaces(ENDPOINT_SLICES),
      Promise.all(
        WEBHOOK_KINDS.map(async (resource) =>
          (await listOwn(resource))?.map((object) => ({ ...object, kind: resource.kind })),
        ),
      ),
      inNamespaces(CONFIG_MAPS, INSTALLED),
    ]);
  const agents = daemonSets?.filter((set) => isOwn(namespaces, set) && set.metadata.name === 'holdfast-agent');
  const dataOf = (name: string) => {
    const object = data?.find(({ metadata }) => metadata.name === name);
    return data && (object === undefined ? null : (object.data ?? {}));
  };
  // it may be installed in namespaces of other names
  const isUnknown = read.kind === 'forbidden' && deployments?.length === 0;
  if (isUnknown) reader.note(read.error);
  const known = <P>(part: P) => (isUnknown ? undefined : part);
  return {
    ...{ crds, policies, policyBindings, configurations: joined(configurations) },
    ...{ workloads: known(joined([deployments, agents])), pods: known(pods), leaders: known(leaders) },
    endpointSlices: known(endpointSlices),
    parameters: known(dataOf(PARAMETERS)),
    servedNetworks: known(dataOf(SERVED_NETWORKS_CONFIG_MAP)),
    multus: daemonSets?.filter(({ metadata }) => metadata.name.includes('multus')),
  };
}

/** Undefined if one of the lists is. */
function joined<T>(lists: readonly (readonly T[] | undefined)[]): T[] | undefined {
  return lists.every((list) => list !== undefined) ? lists.flat() : undefined;
}

/** The folder into which agents install the CNI plugin; undefined for other workloads. */
export function pluginFolderOf({ spec }: InstalledWorkload): string | undefined {
  return spec?.template?.spec?.volumes?.find(({ name }) => name === 'cni-bin')?.hostPath?.path;
}

/** A process of Holdfast: what is wanted, and what runs. */
export interface ComponentState {
  readonly name: string;
  readonly workload: string;
  readonly namespace: string;
  readonly ready: number;
  readonly wanted: number;
  /** Of the images, without those of injected sidecars; `unknown` if a tag is no version. More than one during an upgrade. */
  readonly versions: readonly string[];
  /** The pod that leads; undefined for processes without election, or without a leader. */
  readonly leader: string | undefined;
  /** As in `--feature-gates`; empty: the defaults. */
  readonly gates: string;
  /** The KubeVirt object decides about PersistentIPs. */
  readonly areGatesOfKubeVirt: boolean;
  readonly electsLeader: boolean;
  readonly pods: readonly ProcessPod[];
}

export function componentOf({ metadata }: InstalledWorkload | ProcessPod): string {
  return metadata.labels?.[COMPONENT_LABEL] ?? metadata.name;
}

/** Lists the processes that are installed. */
export function componentsOf({
  workloads = [],
  pods = [],
  leaders = [],
}: Pick<Installation, 'workloads' | 'pods' | 'leaders'>): ComponentState[] {
  return workloads.map((workload) => {
    const { namespace = '', name } = workload.metadata;
    const component = componentOf(workload);
    const own = pods.filter((pod) => componentOf(pod) === component && pod.metadata.namespace === namespace);
    const containers = workload.spec?.template?.spec?.containers ?? [];
    const running = own
      .flatMap(({ spec }) => spec?.containers ?? [])
      .filter(({ name }) => containers.some((each) => each.name === name));
    const images = running.length > 0 ? running : containers;
    const args = containers.flatMap((container) => container.args ?? []);
    const isSet = (flag: string) => args.includes(flag) || args.includes(`${flag}=true`);
    return {
      ...{ name: component, namespace, pods: own, workload: name },
      ...readinessOf(workload),
      versions: [...new Set(images.map(({ image = '' }) => versionOf(image)))].sort(),
      leader: leaders.find(({ metadata }) => metadata.name === name)?.spec?.holderIdentity,
      gates: args.find((arg) => arg.startsWith(GATES))?.slice(GATES.length) ?? '',
      areGatesOfKubeVirt: isSet('--feature-gates-from-kubevirt'),
      electsLeader: isSet('--leader-elect'),
    };
  });
}

function readinessOf({ spec = {}, status = {} }: InstalledWorkload): { ready: number; wanted: number } {
  const { readyReplicas = 0, numberReady = readyReplicas, desiredNumberScheduled = spec.replicas ?? 0 } = status;
  return { ready: numberReady, wanted: desiredNumberScheduled };
}

function versionOf(image: string): string {
  return /:v?(\d+\.\d+\.\d+[\w.+-]*)(?:@.*)?$/.exec(image)?.[1] ?? 'unknown';
}

/** Whether Holdfast allocates addresses. It does not in an installation of only controller and webhook, which needs none of its kinds. */
export function allocatesAddresses({ workloads = [] }: Pick<Installation, 'workloads'>): boolean {
  return workloads.length === 0 || workloads.some((workload) => IPAM_COMPONENTS.includes(componentOf(workload)));
}
