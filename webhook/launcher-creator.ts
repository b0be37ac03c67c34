import { type Pod, controllingVmi } from '../api/pod.js';
import {
  type KubeVirtController,
  creatorOf,
  describeUntrustedCreator,
  hasNetworks,
} from '../cluster/kubevirt-controller.js';

/** Who asks for a change of a pod, and who may create launchers. */
export interface Requester {
  username: string;
  kubevirt: KubeVirtController;
}

/** What the user who creates a launcher means for it. */
export type CreatorCheck =
  | { kind: 'trusted' }
  /** The pod is admitted, refers to no claim anew, and is marked with its creator. */
  | { kind: 'unverified'; reason: string; mark?: string }
  | { kind: 'refused'; reason: string };

/**
 * Whoever gives a launcher its networks counts as its creator. The mark lasts: if KubeVirt's namespace is known later, agents give addresses
 * only to those pods that its controller created. Pure.
 * @param oldPod the launcher as it is, on UPDATE
 */
export function checkCreator(pod: Pod, oldPod: Pod | undefined, { username, kubevirt }: Requester): CreatorCheck {
  if (controllingVmi(pod) === undefined) return { kind: 'trusted' };
  const isCreator = hasNetworks(pod) && (oldPod === undefined || !hasNetworks(oldPod));
  if (isCreator && kubevirt.username !== undefined && username !== kubevirt.username) {
    return {
      kind: 'refused',
      reason:
        `is controlled by a VirtualMachineInstance and gets its networks from ${username}, and only KubeVirt ` +
        `(${kubevirt.username}) creates launchers: leave that owner reference out`,
    };
  }
  const reason = describeUntrustedCreator(pod, kubevirt);
  if (reason === undefined) return { kind: 'trusted' };
  const mark = isCreator && creatorOf(pod) !== username ? { mark: username } : {};
  return { kind: 'unverified', reason, ...mark };
}
