import type { KubeObject } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { namespacedResource, type ObjectRef } from '../../kube/resource.js';
import { NODES } from '../../kube/resources.js';
import { untilValue } from '../processes/wait.js';

interface Workload extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
    readonly desiredNumberScheduled?: number;
    readonly updatedNumberScheduled?: number;
    readonly numberReady?: number;
  };
}

/** On a loaded machine. */
const TIMEOUT_MS = 180_000;

export const DEPLOYMENTS = namespacedResource<Workload>('apps/v1', 'deployments', 'Deployment');
export const DAEMON_SETS = namespacedResource<Workload>('apps/v1', 'daemonsets', 'DaemonSet');

interface Plane {
  readonly client: Client;
}

/** Waits until each node that needs a pod of a DaemonSet has one of the newest template that is ready. */
export async function waitDaemonSet({ client }: Plane, ref: ObjectRef): Promise<void> {
  await untilValue(
    `DaemonSet ${ref.name} to be ready`,
    () => client.get(DAEMON_SETS, ref),
    ({ metadata, status = {} }) =>
      status.observedGeneration === metadata.generation &&
      (status.desiredNumberScheduled ?? 0) > 0 &&
      status.updatedNumberScheduled === status.desiredNumberScheduled &&
      status.numberReady === status.desiredNumberScheduled,
    { timeoutMs: TIMEOUT_MS },
  );
}

/** Waits until all replicas of a Deployment are of the newest template and ready, and no other is left. */
export async function waitDeployment({ client }: Plane, ref: ObjectRef): Promise<void> {
  await untilValue(
    `Deployment ${ref.name} to be ready`,
    () => client.get(DEPLOYMENTS, ref),
    ({ metadata, spec, status = {} }) => {
      const { replicas = 1 } = spec ?? {};
      const counts = [status.replicas, status.updatedReplicas, status.readyReplicas].map((count) => count ?? 0);
      return status.observedGeneration === metadata.generation && counts.every((count) => count === replicas);
    },
    { timeoutMs: TIMEOUT_MS },
  );
}

export async function waitNodeReady({ client }: Plane, name: string): Promise<void> {
  await untilValue(
    `node ${name} to be Ready`,
    () => client.get(NODES, { name }),
    (node) => {
      const { conditions = [] } =
        (node as { status?: { conditions?: { type: string; status: string }[] } }).status ?? {};
      return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
    },
  );
}
