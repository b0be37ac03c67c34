import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { KubeObject } from '../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';
import type { Client } from '../../kube/client.js';
import type { Lease } from '../../kube/leader-election.js';
import { type Resource, clusterResource, namespacedResource } from '../../kube/resource.js';

export type ObservingClient = Pick<Client, 'list' | 'listAs' | 'create'>;

interface PodTemplate {
  spec?: {
    containers?: { name: string; image?: string; args?: string[] }[];
    volumes?: { name: string; hostPath?: { path?: string } }[];
  };
}

/** A Deployment, a DaemonSet or a StatefulSet. */
export interface Workload extends KubeObject {
  spec?: { replicas?: number; template?: PodTemplate };
  status?: { readyReplicas?: number; desiredNumberScheduled?: number; numberReady?: number };
}
export const DEPLOYMENTS = namespacedResource<Workload>('apps/v1', 'deployments', 'Deployment');
export const DAEMON_SETS = namespacedResource<Workload>('apps/v1', 'daemonsets', 'DaemonSet');
export const STATEFUL_SETS = namespacedResource<Workload>('apps/v1', 'statefulsets', 'StatefulSet');

interface ContainerStatus {
  name: string;
  ready?: boolean;
  restartCount?: number;
  state?: { waiting?: { reason?: string; message?: string } };
  lastState?: { terminated?: { reason?: string; message?: string; exitCode?: number } };
}

export interface ProcessPod extends KubeObject {
  spec?: { nodeName?: string; containers?: { name: string; image?: string; args?: string[] }[] };
  status?: {
    phase?: string;
    conditions?: { type: string; status: string; message?: string }[];
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
  };
}
export const PROCESS_PODS = namespacedResource<ProcessPod>('v1', 'pods', 'Pod');

export interface WebhookConfiguration extends KubeObject {
  webhooks?: {
    name: string;
    failurePolicy?: string;
    clientConfig: { caBundle?: string; url?: string; service?: { namespace: string; name: string } };
  }[];
}
const ADMISSION = 'admissionregistration.k8s.io/v1';
export const WEBHOOK_KINDS: readonly Resource<WebhookConfiguration>[] = [
  clusterResource(ADMISSION, 'mutatingwebhookconfigurations', 'MutatingWebhookConfiguration'),
  clusterResource(ADMISSION, 'validatingwebhookconfigurations', 'ValidatingWebhookConfiguration'),
];
export const POLICIES = clusterResource<
  KubeObject & { status?: { typeChecking?: { expressionWarnings?: { warning: string }[] } } }
>(ADMISSION, 'validatingadmissionpolicies', 'ValidatingAdmissionPolicy');
export const POLICY_BINDINGS = clusterResource(
  ADMISSION,
  'validatingadmissionpolicybindings',
  'ValidatingAdmissionPolicyBinding',
);

export interface EndpointSlice extends KubeObject {
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

export interface ObservedNode extends KubeObject {
  status?: { conditions?: { type: string; status: string }[] };
}

/** A lease, as far as the search for leaks needs it. */
export interface ObservedLease {
  readonly name: string;
  readonly owner: { readonly kind: string; readonly namespace: string; readonly name: string; readonly uid: string };
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** A lease that was released, and that a Secret with network data keeps from others. */
export interface LockedLease {
  readonly name: string;
  /** `namespace/name`. */
  readonly secret: string;
  /** Milliseconds since the epoch. */
  readonly releasedAt: number;
}

/** What a trial call of a webhook gave. `error`: what the API server said. */
export interface TrialCall {
  readonly configuration: string;
  readonly error?: string;
}

/** A right that a process needs. */
export interface ProcessRight {
  readonly account: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
}

/** The cluster at one moment. A field is undefined if the user may not read it: then its checks find nothing. */
export interface ObservedCluster {
  /** Milliseconds since the epoch, by the clock of the API server. */
  readonly now: number | undefined;
  readonly crds: readonly Crd[] | undefined;
  readonly workloads: readonly Workload[] | undefined;
  readonly pods: readonly ProcessPod[] | undefined;
  readonly leaders: readonly Lease[] | undefined;
  readonly configurations: readonly WebhookConfiguration[] | undefined;
  readonly endpointSlices: readonly EndpointSlice[] | undefined;
  readonly trialCalls: readonly TrialCall[];
  readonly policies: readonly (KubeObject & { status?: { typeChecking?: object } })[] | undefined;
  readonly policyBindings: readonly KubeObject[] | undefined;
  /** `null`: it does not exist. */
  readonly parameters: Readonly<Record<string, string>> | null | undefined;
  /** `null`: it does not exist. */
  readonly servedNetworks: Readonly<Record<string, string>> | null | undefined;
  readonly kubevirts: readonly KubeObject[] | undefined;
  readonly missingRights: readonly ProcessRight[] | undefined;
  readonly multus: readonly Workload[] | undefined;
  readonly nodes: readonly ObservedNode[] | undefined;
  readonly nodeLeases: readonly Lease[] | undefined;
  readonly pools: readonly AddressPool[] | undefined;
  readonly nads: readonly NetworkAttachmentDefinition[] | undefined;
  readonly claims: readonly IPAMClaim[] | undefined;
  readonly responderSets: readonly Workload[] | undefined;
  /** Held ones. */
  readonly leases: readonly ObservedLease[] | undefined;
  readonly lockedLeases: readonly LockedLease[] | undefined;
  /** Of claims and pods; read after the leases. */
  readonly owners: ReadonlySet<string> | undefined;
  /** What the user may not read or try, in words. */
  readonly refused: readonly string[];
}
