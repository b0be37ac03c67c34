import type { AddressPool } from '../../api/address-pool.js';
import { describeValue, isRecord } from '../../api/json.js';
import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';

/** The reviewed object violates the schema of the API server. The message names the path, the value and what is expected. */
export class MalformedObjectError extends Error {
  override readonly name = 'MalformedObjectError';
}

/**
 * @param path the path of the pool in the review, for messages
 * @throws {MalformedObjectError}
 */
export function readPoolObject(value: unknown, path: string): AddressPool {
  const { metadata, object: pool } = readObject(value, path);
  if (!isRecord(pool.spec)) throw malformed(`${path}.spec`, pool.spec, 'an object');
  return { ...pool, metadata } as unknown as AddressPool;
}

/**
 * @param path the path of the NAD in the review, for messages
 * @throws {MalformedObjectError}
 */
export function readNadObject(value: unknown, path: string, namespace: string): NetworkAttachmentDefinition {
  const { metadata, object: nad } = readObject(value, path);
  const spec = isRecord(nad.spec) ? { spec: nad.spec } : {};
  return { metadata: { ...metadata, namespace }, ...spec };
}

function readObject(value: unknown, path: string) {
  if (!isRecord(value)) throw malformed(path, value, 'an object');
  const { metadata } = value;
  if (!isRecord(metadata)) throw malformed(`${path}.metadata`, metadata, 'an object');
  const name = metadata.name ?? '';
  if (typeof name !== 'string') throw malformed(`${path}.metadata.name`, name, 'a string');
  return { object: value, metadata: { ...metadata, name } };
}

function malformed(path: string, value: unknown, wanted: string): MalformedObjectError {
  return new MalformedObjectError(`${path} is ${describeValue(value)}, not ${wanted}`);
}
