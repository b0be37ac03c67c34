import { asList, asRecord, truncate } from '../../api/json.js';
import type { IpamSection } from '../../api/networks/ipam-delegation.js';
import {
  BLOCK_SIZE_KEYS,
  GUARD_KEYS,
  PASSED_KEYS,
  POOL_FIELDS,
  RANGE_KEYS,
  STICKY_KEYS,
  SUBNET_KEYS,
} from '../../api/networks/ipam-keys.js';
import { DNS_KEYS, ROUTE_KEYS } from '../../addressing/pool/result-extras.js';

/** The keys of objects, or of lists of objects, in an `ipam` object. */
const KEYS_WITHIN: Readonly<Record<string, readonly string[]>> = {
  subnets: SUBNET_KEYS,
  ipRanges: Object.keys(RANGE_KEYS),
  stickyMAC: STICKY_KEYS,
  blockSize: BLOCK_SIZE_KEYS,
  guard: GUARD_KEYS,
  routes: ROUTE_KEYS,
  dns: DNS_KEYS,
};
/** Keys of an `ipam` object that no plugin has beside it. OVN-Kubernetes has `subnets`, a text. */
const KEYS_OF_IPAM: readonly string[] = [...POOL_FIELDS, 'namespaces', 'range', 'ipRanges'];

/** Keys that describe a pool together with subnets or ranges. */
const KEYS_OF_POOL: readonly string[] = [
  ...POOL_FIELDS.filter((key) => key !== 'addressSpace'),
  ...['namespaces', 'gateway', 'exclude'],
];

/** Names the keys of a valid config that nobody reads, because they are misspelled, in the wrong place, or alone. */
export function ineffectiveKeys(config: Record<string, unknown>, section: IpamSection): string[] {
  return [...keysWithin(section), ...keysBeside(config, section), ...keysWithoutPool(section)];
}

function keysWithin({ ipam, path }: IpamSection): string[] {
  return Object.entries(KEYS_WITHIN).flatMap(([key, known]) =>
    objectsAt(`${path}.${key}`, ipam[key]).flatMap(([place, object]) =>
      Object.keys(object)
        .filter((each) => !known.includes(each))
        .map((each) => {
          const remedy = Object.hasOwn(PASSED_KEYS, each)
            ? `move it to ${path}.${each}`
            : `correct or remove it; known keys: ${known.join(', ')}`;
          return `${truncate(`${place}.${each}`)} has no effect: ${remedy}`;
        }),
    ),
  );
}

function keysBeside(config: Record<string, unknown>, { path, plugin }: IpamSection): string[] {
  const around = new Map([
    ['spec.config', config],
    [path.replace(/\.ipam$/, ''), plugin],
  ]);
  return [...around].flatMap(([place, object]) =>
    [...KEYS_OF_IPAM, ...(Array.isArray(object.subnets) ? ['subnets'] : [])]
      .filter((key) => key in object)
      .map((key) => `${place}.${key} has no effect: move it to ${path}.${key}`),
  );
}

function keysWithoutPool({ ipam, path }: IpamSection): string[] {
  if ((ipam.range ?? '') !== '' || asList(ipam.subnets).length + asList(ipam.ipRanges).length > 0) return [];
  return KEYS_OF_POOL.filter((key) => (ipam[key] ?? '') !== '').map(
    (key) =>
      `${path}.${key} has no effect without subnets: add them, or ask the administrator to set it in the AddressPool of the network`,
  );
}

function objectsAt(path: string, value: unknown): (readonly [string, Record<string, unknown>])[] {
  if (!Array.isArray(value)) return [[path, asRecord(value)]];
  return value.map((each: unknown, index) => [`${path}[${index}]`, asRecord(each)]);
}
