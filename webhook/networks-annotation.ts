import jsonpatch from 'fast-json-patch';
import { joinKey } from '../api/meta.js';
import { NETWORKS_ANNOTATION } from '../api/names.js';
import {
  type NetworkSelection,
  NetworkSelectionError,
  interfaceNameOf,
  parseNetworkSelections,
} from '../api/networks/network-selection.js';
import type { Pod } from '../api/pod.js';
import type { JsonPatchOperation } from '../kube/client.js';
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

/** New values of annotations; undefined for one that is removed. */
export type AnnotationChanges = Map<string, string | undefined>;

/** Returns the operations that make these changes. Annotations that the pod does not have must not be removed. */
export function annotationPatch({ metadata }: Pod, changes: AnnotationChanges): JsonPatchOperation[] {
  const hasAnnotations = Object.keys(metadata.annotations ?? {}).length > 0;
  if (changes.size > 0 && !hasAnnotations) {
    return [{ op: 'add', path: '/metadata/annotations', value: Object.fromEntries(changes) }];
  }
  return [...changes].map(([key, value]) => {
    const path = annotationPath(key);
    // on an object, "add" also replaces
    return value === undefined ? { op: 'remove', path } : { op: 'add', path, value };
  });
}

/** Returns the JSON pointer to an annotation. */
export function annotationPath(key: string): string {
  return `/metadata/annotations/${jsonpatch.escapePathComponent(key)}`;
}
