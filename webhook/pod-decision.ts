import { joinKey } from '../api/meta.js';
import type { Pod } from '../api/pod.js';
import type { ClusterView, Recheck } from '../cluster/cluster-view.js';
import type { JsonPatchOperation } from '../kube/client.js';
import type { CreatorCheck, Requester } from './launcher-creator.js';

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
