import jsonpatch from 'fast-json-patch';
import type { Pod } from '../api/pod.js';
import type { JsonPatchOperation } from '../kube/client.js';

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
