import { describeValue, isRecord } from '../api/json.js';
import type { OwnerReference } from '../api/meta.js';
import type { Pod } from '../api/pod.js';

/** The reviewed object is not a pod. The message names the path, the value and what was expected. */
export class MalformedPodError extends Error {
  override readonly name = 'MalformedPodError';
}

/**
 * Reads the metadata of a pod in a review. The pod is never written back, so unknown fields are not lost.
 * @param path of the pod in the review, for messages
 * @throws {MalformedPodError}
 */
export function readPod(object: unknown, path: string): Pod {
  const metadata = readRecord(readRecord(object, path).metadata, `${path}.metadata`);
  const name = metadata.name ?? metadata.generateName ?? '';
  if (typeof name !== 'string') throw malformed(`${path}.metadata.name`, name, 'a string');
  return {
    metadata: {
      name,
      labels: readStringMap(metadata.labels, `${path}.metadata.labels`),
      annotations: readStringMap(metadata.annotations, `${path}.metadata.annotations`),
      ownerReferences: readOwnerReferences(metadata.ownerReferences ?? [], `${path}.metadata.ownerReferences`),
    },
  };
}

function readRecord(value: unknown, path: string): Record<string, unknown> {
  if (isRecord(value)) return value;
  throw malformed(path, value, 'an object');
}

function readStringMap(value: unknown, path: string): Record<string, string> {
  const record = readRecord(value ?? {}, path);
  for (const key in record) {
    if (typeof record[key] !== 'string') throw malformed(`${path}[${JSON.stringify(key)}]`, record[key], 'a string');
  }
  return record as Record<string, string>;
}

function readOwnerReferences(value: unknown, path: string): OwnerReference[] {
  if (!Array.isArray(value)) throw malformed(path, value, 'a list');
  return value.map((entry: unknown, index) => {
    const owner = readRecord(entry, `${path}[${index}]`);
    for (const key of ['apiVersion', 'kind', 'name', 'uid']) {
      if (typeof owner[key] !== 'string') throw malformed(`${path}[${index}].${key}`, owner[key], 'a string');
    }
    return owner as unknown as OwnerReference;
  });
}

function malformed(path: string, value: unknown, wanted: string): MalformedPodError {
  return new MalformedPodError(`${path} is ${describeValue(value)}, not ${wanted}`);
}
