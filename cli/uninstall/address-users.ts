import { joinKey, objectKey } from '../../api/meta.js';
import { NetworkSelectionError, networkSelectionsOf } from '../../api/network-selection.js';
import { type Pod, controllingVmi, isLauncher, isTerminal, staticPodUidOf } from '../../api/pod.js';
import type { RemainingUser } from './plan.js';

/** Finds pods that have a lease, or refer to one of the claims. */
export function usersOf(
  pods: readonly Pod[],
  claims: ReadonlySet<string>,
  podUids: ReadonlySet<string>,
): RemainingUser[] {
  return pods
    .filter((pod) => !isTerminal(pod))
    .filter((pod) => holdsLease(pod, podUids) || claimKeysOf(pod).some((key) => claims.has(key)))
    .map((pod) => {
      const vmi = isLauncher(pod) ? controllingVmi(pod) : undefined;
      return { pod: objectKey(pod), ...(vmi && { vm: joinKey(pod.metadata.namespace, vmi.name) }) };
    });
}

function holdsLease(pod: Pod, podUids: ReadonlySet<string>): boolean {
  // the lease of a static pod has the UID of its manifest
  return [pod.metadata.uid, staticPodUidOf(pod)].some((uid) => uid !== undefined && podUids.has(uid));
}

/** Returns `namespace/name` of the claims to which a pod refers. */
export function claimKeysOf(pod: Pod): string[] {
  try {
    return networkSelectionsOf(pod).flatMap(({ claimReference }) =>
      claimReference === undefined ? [] : [joinKey(pod.metadata.namespace, claimReference)],
    );
  } catch (error) {
    // Multus cannot read it either, so the pod has no such network
    if (error instanceof NetworkSelectionError) return [];
    throw error;
  }
}
