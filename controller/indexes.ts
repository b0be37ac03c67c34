import { joinKey } from '../api/meta.js';
import { type Pod, controllingVmi } from '../api/pod.js';
import { BY_WORKLOAD } from '../cluster/indexes.js';

/** The indexes of the caches that only the controller has. */
export const LAUNCHER_INDEXES = { [BY_WORKLOAD]: (pod: Pod) => [workloadOfLauncher(pod)] };

/** The VMI that controls the pod, of whatever UID; one that no VMI controls (any more) is under its namespace's key of the abandoned. */
export function workloadOfLauncher(pod: Pod): string {
  const { namespace = '' } = pod.metadata;
  const vmi = controllingVmi(pod);
  return vmi === undefined ? orphanKey(namespace) : joinKey(namespace, vmi.name);
}

/** No workload has this key. */
export function orphanKey(namespace: string): string {
  return `${namespace}/`;
}
