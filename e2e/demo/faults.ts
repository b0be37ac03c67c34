import type { Environment } from '../../bed/environment.js';
import type { ApiServer } from '../../bed/control-plane/api-server.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import { isReportedReady } from '../../bed/node/pod-status.js';
import { until } from '../../bed/processes/wait.js';
import type { RealCluster } from '../../bed/real-nodes/real-cluster.js';
import { containerIdOf } from '../../bed/real-nodes/real-node.js';
import { PODS } from '../../kube/resources.js';

/** How the demo breaks its own cluster. */
export interface Faults {
  readonly apiServer: ApiServer;
  /** What else happens while the VM restarts. */
  readonly meanwhile: string;
  /** Kills all processes of controller and ipam. @returns waits until they run again */
  killHoldfast(): Promise<() => Promise<unknown>>;
}

/** Undefined on a cluster that does not belong to the demo. */
export function faultsOf({ bed, realCluster }: Environment): Faults | undefined {
  if (realCluster) {
    const { apiServer } = realCluster;
    const meanwhile = 'while kubelet starts their containers again';
    return { apiServer, meanwhile, killHoldfast: () => killContainers(realCluster) };
  }
  if (bed === undefined) return undefined;
  const processes = [bed.controller, bed.ipam];
  const killHoldfast = async () => {
    await Promise.all(processes.map((one) => one.kill()));
    return () => Promise.all(processes.map((one) => one.start()));
  };
  return { apiServer: bed.apiServer, meanwhile: 'before they do', killHoldfast };
}

async function killContainers({ client, nodes }: RealCluster): Promise<() => Promise<unknown>> {
  const labelSelector = 'app.kubernetes.io/component in (controller, ipam)';
  const list = async () => (await client.list(PODS, { namespace: HOLDFAST_NAMESPACE, labelSelector })).items;
  const killed = await list();
  for (const pod of killed) {
    const node = nodes.find(({ name }) => name === pod.spec?.nodeName);
    await node?.killContainer(containerIdOf(pod), 'SIGKILL');
  }
  const before = new Set(killed.map(containerIdOf));
  const haveRestarted = async () =>
    (await list()).every((pod) => isReportedReady(pod) && !before.has(containerIdOf(pod)));
  return () => until('controller and ipam to run again', haveRestarted, { timeoutMs: 90_000 });
}
