import { joinKey } from '../api/meta.js';
import { NETWORKS_ANNOTATION } from '../api/names.js';
import {
  type NetworkSelection,
  NetworkSelectionError,
  interfaceNameOf,
  parseNetworkSelections,
} from '../api/network-selection.js';
import type { Pod } from '../api/pod.js';
import { type PodRefusal, type PodReview, describeReviewedPod } from './pod-decision.js';

export function networksOf(pod: Pod): string | undefined {
  return pod.metadata.annotations?.[NETWORKS_ANNOTATION];
}

/** @returns the problem if the annotation is invalid */
export function readSelections(value: string, namespace: string): NetworkSelection[] | string {
  try {
    return parseNetworkSelections(value, namespace);
  } catch (error) {
    if (error instanceof NetworkSelectionError) return error.message;
    throw error;
  }
}

export function refuseUnreadable(annotation: string, review: PodReview, problem: string): PodRefusal {
  const reason = `annotation ${annotation} of ${describeReviewedPod(review)} cannot be read: ${problem}`;
  return { allowed: false, check: 'annotation', reason };
}

/**
 * Returns a function that finds the reference of the present pod by interface and NAD. virt-controller rewrites the annotation of a running pod
 * without our references, so they are restored.
 */
export function currentReferences(
  oldPod: Pod | undefined,
  namespace: string,
): (selection: NetworkSelection) => string | undefined {
  const value = oldPod && networksOf(oldPod);
  const old = value === undefined ? [] : readSelections(value, namespace);
  if (typeof old === 'string') return () => undefined;
  const attachmentKey = (selection: NetworkSelection) =>
    `${interfaceNameOf(selection)} ${joinKey(selection.nad.namespace, selection.nad.name)}`;
  const references = new Map(old.map((selection) => [attachmentKey(selection), selection.claimReference]));
  return (selection) => references.get(attachmentKey(selection));
}
