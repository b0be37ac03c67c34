import { type Pod, controllingVmi } from '../api/pod.js';
import {
  type KubeVirtController,
  creatorOf,
  describeUntrustedCreator,
  hasNetworks,
} from '../cluster/kubevirt-controller.js';

/** The user of a request, and the user who may create launchers. */
export interface Requester {
  username: string;
  kubevirt: KubeVirtController;
}

/** What follows for a launcher from the user who created it. */
export type CreatorCheck =
  | { kind: 'trusted' }
  /** The pod is admitted without new claim references, and `mark` is recorded as its creator. */
  | { kind: 'unverified'; reason: string; mark?: string }
  | { kind: 'refused'; reason: string };

/**
 * Checks the creator of a launcher: the user who gives it its networks. The recorded creator stays: once KubeVirt's namespace is known, agents
 * allow addresses only to pods that KubeVirt's controller created. Pure.
 * @param oldPod the present launcher, on UPDATE
 * @param isCreator the request gives the pod its networks
 */
export function checkCreator(
  pod: Pod,
  oldPod: Pod | undefined,
  { username, kubevirt }: Requester,
  isCreator = hasNetworks(pod) && (oldPod === undefined || !hasNetworks(oldPod)),
): CreatorCheck {
  if (controllingVmi(pod) === undefined) return { kind: 'trusted' };
  if (isCreator && kubevirt.username !== undefined && username !== kubevirt.username) {
    return {
      kind: 'refused',
      reason:
        `is controlled by a VirtualMachineInstance and gets its networks from ${username}, but only KubeVirt ` +
        `(${kubevirt.username}) creates launchers: remove that owner reference`,
    };
  }
  const reason = describeUntrustedCreator(pod, kubevirt);
  if (reason === undefined) return { kind: 'trusted' };
  const mark = isCreator && creatorOf(pod) !== username ? { mark: username } : {};
  return { kind: 'unverified', reason, ...mark };
}
