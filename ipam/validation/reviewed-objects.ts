import type { AddressPool } from '../../api/address-pool.js';
import { describeValue, isRecord } from '../../api/json.js';
import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';

/** The object under review is not what the API server's schema lets through: a path in it, what stands there and what should. */
export class MalformedObjectError extends Error {
  override readonly name = 'MalformedObjectError';
}

/**
 * @param path where the pool stands in the review, for messages
 * @throws {MalformedObjectError}
 */
export function readPoolObject(value: unknown, path: string): AddressPool {
  const { metadata, object: pool } = readObject(value, path);
  if (!isRecord(pool.spec)) throw malformed(`${path}.spec`, pool.spec, 'an object');
  return { ...pool, metadata } as unknown as AddressPool;
}

/**
 * @param path where the NAD stands in the review, for messages
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
