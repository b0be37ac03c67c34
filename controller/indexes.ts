import { joinKey } from '../api/meta.js';
import { type Pod, controllingVmi } from '../api/pod.js';
import { BY_WORKLOAD } from '../cluster/watch-specs.js';

/** Indexes of the controller's own caches. */
export const LAUNCHER_INDEXES = { [BY_WORKLOAD]: (pod: Pod) => [workloadOfLauncher(pod)] };

/** Returns the key of the VMI, of any UID, that controls the pod, or the namespace's orphan key if no VMI does. */
export function workloadOfLauncher(pod: Pod): string {
  const { namespace = '' } = pod.metadata;
  const vmi = controllingVmi(pod);
  return vmi === undefined ? orphanKey(namespace) : joinKey(namespace, vmi.name);
}

/** No workload has this key. */
export function orphanKey(namespace: string): string {
  return `${namespace}/`;
}
