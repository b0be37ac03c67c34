import { joinKey } from '../api/meta.js';
import { type Pod, controllingVmi } from '../api/pod.js';
import type { ClusterView, Recheck } from '../cluster/cluster-view.js';
import {
  type KubeVirtController,
  creatorOf,
  describeUntrustedCreator,
  hasNetworks,
} from '../cluster/kubevirt-controller.js';
import type { JsonPatchOperation } from '../kube/client.js';

/** A request to create or change a pod. */
export interface PodReview {
  operation: 'CREATE' | 'UPDATE';
  namespace: string;
  pod: Pod;
  /** The present pod, on UPDATE. */
  oldPod?: Pod | undefined;
  requester: Requester;
}

/** `addRecheck` is called for each object that should be read live. */
export interface ReviewContext {
  view: ClusterView;
  addRecheck: (recheck: Recheck) => void;
  creator: CreatorCheck;
}

export type PodDecision = (PodAdmission | PodRefusal) & {
  /** Objects whose live state could change the decision. */
  rechecks: readonly Recheck[];
  /** The API server answered no live read of one of them. */
  isUncertain?: boolean;
};

export interface PodAdmission {
  allowed: true;
  /** Changes to the annotations for networks, claims and creator; empty if the pod needs none. */
  patch: JsonPatchOperation[];
  warnings: string[];
}

export interface PodRefusal {
  allowed: false;
  /** The check that refused the pod, for metrics and logs. */
  check: PodCheck;
  /** The text of the answer and of the log. */
  reason: string;
}

/** In the order in which they run. */
export type PodCheck =
  | 'default-network'
  | 'primary-network'
  | 'address-request'
  | 'annotation'
  | 'created-by-kubevirt'
  | 'controlled-by-vmi'
  | 'vmi-exists'
  | 'vm-exists'
  | 'claim-free'
  | 'reference-expected'
  | 'addresses-or-claim';

/** The answer for a pod that needs no change. */
export const UNCHANGED: PodAdmission = Object.freeze({ allowed: true, patch: [], warnings: [] });

export function describeReviewedPod({ namespace, pod }: PodReview): string {
  return `pod ${joinKey(namespace, pod.metadata.name)}`;
}

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
