import type { ObservedCluster, ProcessPod, Workload } from './observed.js';

const COMPONENT_LABEL = 'app.kubernetes.io/component';
const IPAM_COMPONENTS: readonly string[] = ['ipam', 'agent', 'all'];
const GATES = '--feature-gates=';

/** A process of Holdfast: what is wanted, and what runs. */
export interface ComponentState {
  readonly name: string;
  readonly workload: string;
  readonly namespace: string;
  readonly ready: number;
  readonly wanted: number;
  /** Of the images; `unknown` if a tag is no version. More than one during an upgrade. */
  readonly versions: readonly string[];
  /** The pod that leads; undefined for processes without election, or without a leader. */
  readonly leader: string | undefined;
  readonly gates: string;
  readonly pods: readonly ProcessPod[];
}

export function componentOf({ metadata }: Workload | ProcessPod): string {
  return metadata.labels?.[COMPONENT_LABEL] ?? metadata.name;
}

/** Lists the processes that are installed. */
export function componentsOf({ workloads = [], pods = [], leaders = [] }: ObservedCluster): ComponentState[] {
  return workloads.map((workload) => {
    const { namespace = '', name } = workload.metadata;
    const component = componentOf(workload);
    const own = pods.filter((pod) => componentOf(pod) === component && pod.metadata.namespace === namespace);
    const containers = workload.spec?.template?.spec?.containers ?? [];
    const running = own.flatMap(({ spec }) => spec?.containers ?? []);
    const images = running.length > 0 ? running : containers;
    const gates = containers.flatMap(({ args }) => args ?? []).find((arg) => arg.startsWith(GATES));
    return {
      ...{ name: component, namespace, pods: own, workload: name },
      ...readinessOf(workload),
      versions: [...new Set(images.map(({ image = '' }) => versionOf(image)))].sort(),
      leader: leaders.find(({ metadata }) => metadata.name === name)?.spec?.holderIdentity,
      gates: gates?.slice(GATES.length) ?? '',
    };
  });
}

function readinessOf({ spec = {}, status = {} }: Workload): { ready: number; wanted: number } {
  const { readyReplicas = 0, numberReady = readyReplicas, desiredNumberScheduled = spec.replicas ?? 0 } = status;
  return { ready: numberReady, wanted: desiredNumberScheduled };
}

function versionOf(image: string): string {
  return /:v?(\d+\.\d+\.\d+[\w.+-]*)(?:@.*)?$/.exec(image)?.[1] ?? 'unknown';
}

/** Whether Holdfast allocates addresses. It does not in an installation of only controller and webhook, which needs none of its kinds. */
export function allocatesAddresses({ workloads = [] }: ObservedCluster): boolean {
  return workloads.length === 0 || workloads.some((workload) => IPAM_COMPONENTS.includes(componentOf(workload)));
}
