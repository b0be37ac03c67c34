import { isCapacityResource, readQuantity } from '../api/capacity.js';
import { asRecord, recordsIn } from '../api/json.js';
import { isBeingDeleted } from '../api/meta.js';
import { type Pod, isTerminal } from '../api/pod.js';
import { type SchedulingConstraints, readSchedulingConstraints } from './scheduling-constraints.js';

/** The cached fields of a pod that requests addresses. */
export interface PodRecord {
  readonly uid: string;
  readonly namespace: string;
  /** The number of addresses by extended resource. */
  readonly requests: ReadonlyMap<string, number>;
  /** The node to which the pod is bound. */
  readonly node?: string;
  /** Whether the interfaces of the pod exist, so that it gets no more addresses. */
  readonly isAttached: boolean;
  /** Whether the pod is being deleted. */
  readonly isLeaving: boolean;
  /** Set for an unschedulable pod only. */
  readonly constraints?: SchedulingConstraints;
}

/** @returns undefined if the pod has ended or requests no addresses */
export function readPodRecord(pod: Pod): PodRecord | undefined {
  if (isTerminal(pod)) return undefined;
  const requests = requestsOf(pod.spec);
  if (requests.size === 0) return undefined;
  const node = pod.spec?.nodeName;
  const isLeaving = isBeingDeleted(pod);
  const constraints = !node && !isLeaving && isUnschedulable(pod) ? readSchedulingConstraints(pod.spec) : undefined;
  return {
    uid: pod.metadata.uid ?? '',
    namespace: pod.metadata.namespace ?? '',
    requests,
    isAttached: isAttached(pod),
    isLeaving,
    ...(node && { node }),
    ...(constraints && { constraints }),
  };
}

/** The runtime reports a sandbox only after all its interfaces exist. */
function isAttached({ status }: Pod): boolean {
  return status?.phase === 'Running' || !!status?.podIP;
}

function isUnschedulable({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(
    (condition) =>
      condition.type === 'PodScheduled' &&
      condition.status === 'False' &&
      (condition as { reason?: unknown }).reason === 'Unschedulable',
  );
}

/**
 * Adds up the requests of a pod as the scheduler does: the sum of all containers and restartable init containers, or the largest sum while an
 * ordinary init container runs.
 */
export function requestsOf(spec: unknown): Map<string, number> {
  const { containers, initContainers } = asRecord(spec);
  const running = new Map<string, number>();
  const peak = new Map<string, number>();
  for (const container of recordsIn(initContainers)) {
    const own = ownRequests(container);
    const goesOn = container.restartPolicy === 'Always';
    for (const [resource, count] of own) {
      const together = (running.get(resource) ?? 0) + count;
      if (goesOn) running.set(resource, together);
      peak.set(resource, Math.max(peak.get(resource) ?? 0, together));
    }
  }
  for (const container of recordsIn(containers)) {
    for (const [resource, count] of ownRequests(container)) running.set(resource, (running.get(resource) ?? 0) + count);
  }
  for (const [resource, count] of peak) running.set(resource, Math.max(running.get(resource) ?? 0, count));
  return running;
}

function ownRequests({ resources }: Record<string, unknown>): [string, number][] {
  return Object.entries(asRecord(asRecord(resources).requests)).flatMap(([resource, value]): [string, number][] => {
    const count = isCapacityResource(resource) ? (readQuantity(value) ?? 0) : 0;
    return count > 0 ? [[resource, count]] : [];
  });
}
