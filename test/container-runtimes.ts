/**
 * What container runtimes and Multus send to CNI plugins, as their sources say:
 * - containerd v1.6.20 and v1.7.28 (pkg/cri/server/sandbox_run.go), v2.2.1 (internal/cri/server/sandbox_run.go): `toCNILabels`. go-cni
 *   v1.1.6 and v1.1.13 (namespace.go) keeps the pairs in a Go map, so their order changes with each call. It never calls CHECK or GC.
 * - CRI-O v1.34.0 with ocicni v0.4.3 (pkg/ocicni/ocicni.go): `buildCNIRuntimeConf`, in this order.
 * - Multus v4.2.2 (pkg/types/conf.go): `newCNIRuntimeConf`; (pkg/multus/multus.go): `DelegateAdd`; (pkg/server/server.go):
 *   `kubernetesRuntimeArgs`; (pkg/server/api/api.go): `CreateDelegateRequest`.
 * - libcni v1.3.0 (pkg/invoke/args.go, libcni/api.go): pairs are joined by `;`, and verbs without a pod have empty variables.
 */

/** The pairs of CNI_ARGS. */
export type CniArgs = readonly (readonly [key: string, value: string])[];

export interface RuntimePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Of the sandbox. */
  readonly containerId: string;
}

/** What an element of the networks annotation requests. */
export interface RequestedOfMultus {
  readonly mac?: string;
  readonly ips?: readonly string[];
}

export const CONTAINERD_NETNS = '/var/run/netns/cni-5f2c1d0e-9a0b-4a77-8a1d-2c3f4e5a6b7c';

/** Variables of the verbs that concern no pod. */
export const NO_POD_ENV = { CNI_CONTAINERID: '', CNI_NETNS: '', CNI_ARGS: '', CNI_IFNAME: '' } as const;

/** In the order of containerd's source, of which each call sends another one. */
export function containerdArgs(pod: RuntimePod): CniArgs {
  return [...pairsOf(pod), ['IgnoreUnknown', '1']];
}

export function crioArgs(pod: RuntimePod): CniArgs {
  return [['IgnoreUnknown', '1'], ...pairsOf(pod)];
}

/** The pairs of a delegate's ADD: those of Multus, then those of the runtime, although most are the same, then the requests. */
export function thinMultusArgs(pod: RuntimePod, fromRuntime: CniArgs, requested: RequestedOfMultus = {}): CniArgs {
  return [...multusArgs(pod), ...fromRuntime, ...requestArgs(requested)];
}

/** The daemon's own environment has no CNI_ARGS, so those of the runtime are missing. */
export function thickMultusArgs(pod: RuntimePod, requested: RequestedOfMultus = {}): CniArgs {
  return [...multusArgs(pod), ...requestArgs(requested)];
}

/** As the daemon sends them for the dynamic networks controller: it looks for the sandbox in the environment, where it is not. */
export function hotplugArgs(pod: RuntimePod, requested: RequestedOfMultus = {}): CniArgs {
  return thickMultusArgs({ ...pod, containerId: '' }, requested);
}

export function formatCniArgs(args: CniArgs): string {
  return args.map(([key, value]) => `${key}=${value}`).join(';');
}

function multusArgs(pod: RuntimePod): CniArgs {
  return [['IgnoreUnknown', 'true'], ...pairsOf(pod)];
}

function pairsOf({ namespace, name, uid, containerId }: RuntimePod): CniArgs {
  return [
    ['K8S_POD_NAMESPACE', namespace],
    ['K8S_POD_NAME', name],
    ['K8S_POD_INFRA_CONTAINER_ID', containerId],
    ['K8S_POD_UID', uid],
  ];
}

function requestArgs({ mac, ips }: RequestedOfMultus): CniArgs {
  const pairs: [string, string][] = [];
  if (mac !== undefined) pairs.push(['MAC', mac]);
  if (ips !== undefined) pairs.push(['IP', ips.join(',')]);
  return pairs;
}
