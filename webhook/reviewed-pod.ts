import { MalformedObjectError, requireRecord } from '../admission/review.js';
import type { OwnerReference } from '../api/meta.js';
import type { Pod } from '../api/pod.js';

/**
 * Reads the metadata of a pod in a review. The pod is never written back, so unknown fields are not lost.
 * @param path of the pod in the review, for messages
 * @throws {MalformedObjectError}
 */
export function readPod(object: unknown, path: string): Pod {
  const metadata = requireRecord(requireRecord(object, path).metadata, `${path}.metadata`);
  const name = metadata.name ?? metadata.generateName ?? '';
  if (typeof name !== 'string') throw new MalformedObjectError(`${path}.metadata.name`, name, 'a string');
  return {
    metadata: {
      name,
      labels: readStringMap(metadata.labels, `${path}.metadata.labels`),
      annotations: readStringMap(metadata.annotations, `${path}.metadata.annotations`),
      ownerReferences: readOwnerReferences(metadata.ownerReferences ?? [], `${path}.metadata.ownerReferences`),
    },
  };
}

function readStringMap(value: unknown, path: string): Record<string, string> {
  const record = requireRecord(value ?? {}, path);
  for (const key in record) {
    if (typeof record[key] !== 'string')
      throw new MalformedObjectError(`${path}[${JSON.stringify(key)}]`, record[key], 'a string');
  }
  return record as Record<string, string>;
}

function readOwnerReferences(value: unknown, path: string): OwnerReference[] {
  if (!Array.isArray(value)) throw new MalformedObjectError(path, value, 'a list');
  return value.map((entry: unknown, index) => {
    const owner = requireRecord(entry, `${path}[${index}]`);
    for (const key of ['apiVersion', 'kind', 'name', 'uid']) {
      if (typeof owner[key] !== 'string')
        throw new MalformedObjectError(`${path}[${index}].${key}`, owner[key], 'a string');
    }
    return owner as unknown as OwnerReference;
  });
}
