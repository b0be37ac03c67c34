import type { AddressPoolSpec, PoolSubnet } from '../address-pool.js';
import {
  BLOCK_SIZE_KEYS,
  GUARD_KEYS,
  IGNORED_KEYS,
  OBJECT_KEYS,
  PASSED_KEYS,
  POOL_FIELDS,
  RANGE_KEYS,
  SUBNET_KEYS,
  WHEREABOUTS_KEYS,
} from './ipam-keys.js';
import { MAX_LABEL_KEY_LENGTH, POOL_LIMITS } from '../limits.js';
import { describeValue, isRecord, omitUndefined, truncate } from '../json.js';
import type { NetworkConfigProblem } from './network-attachment.js';

/** The content of `"ipam": {"type": "holdfast", …}`. Types are checked here, addresses when the pool is derived. */
export interface HoldfastIpamConfig extends Pick<AddressPoolSpec, (typeof POOL_FIELDS)[number]> {
  /** The path of the `ipam` object in the NAD, such as `spec.config.plugins[0].ipam`. */
  path: string;
  /** Empty if an administrator's pool serves the network. */
  subnets: PoolSubnet[];
  /** The same in whereabouts' form; one of the two is empty. */
  ranges: WhereaboutsRange[];
  /** The gateway of the range whose subnet contains it. */
  gateway?: string;
  /** Namespaces that the pool serves besides the NAD's own; `*`: all. Absent: the administrator's setting applies. */
  namespaces?: string[];
}

/** An element of whereabouts' `ipRanges`, or the keys next to its `range`. */
export interface WhereaboutsRange {
  /** The path of the object in the NAD. */
  path: string;
  /** `10.0.0.0/24`, where host bits are ignored; or `10.0.0.10-10.0.0.20/24`. */
  range: string;
  start?: string;
  end?: string;
  /** CIDRs, whose host bits are ignored, or addresses. */
  exclude: string[];
}

/** True if the NAD describes a pool, in one of both forms; otherwise an administrator's pool serves its network. */
export function describesPool({ subnets, ranges }: Pick<HoldfastIpamConfig, 'subnets' | 'ranges'>): boolean {
  return subnets.length + ranges.length > 0;
}

type ReadResult = { ok: true; config: HoldfastIpamConfig } | { ok: false; problem: NetworkConfigProblem };

const RANGE_KEY_NAMES = Object.keys(RANGE_KEYS);
/** Keys that pools depend on. */
const POOL_KEYS = [
  ...[...Object.keys(OBJECT_KEYS), 'subnets', ...POOL_FIELDS],
  ...[...RANGE_KEY_NAMES, ...Object.keys(WHEREABOUTS_KEYS)],
];
const OTHER_KEYS: ReadonlySet<string> = new Set([...Object.keys(PASSED_KEYS), ...IGNORED_KEYS]);

/** Thrown and caught in this file. */
class ShapeError extends Error {
  readonly problem: NetworkConfigProblem;

  /** @param field path that may end in a key of any length */
  constructor(field: string, message: string) {
    super(message);
    this.problem = { field: truncate(field), message };
  }
}

/** @param path path of the object in the NAD */
export function readHoldfastIpam(ipam: Record<string, unknown>, path: string): ReadResult {
  try {
    return { ok: true, config: readIpam(ipam, path) };
  } catch (error) {
    if (error instanceof ShapeError) return { ok: false, problem: error.problem };
    throw error;
  }
}

function readIpam(ipam: Record<string, unknown>, path: string): HoldfastIpamConfig {
  rejectUnknownKeys(ipam, path, [...POOL_KEYS, ...Object.keys(PASSED_KEYS)]);
  const subnets = readList(ipam.subnets, `${path}.subnets`, POOL_LIMITS.subnets).map((subnet, index) =>
    readSubnet(subnet, `${path}.subnets[${index}]`),
  );
  const ranges = readRanges(ipam, path);
  const gateway = readString(ipam.gateway, `${path}.gateway`, POOL_LIMITS.gateway);
  if (subnets.length > 0) rejectMixedForms(ipam, path);
  return omitUndefined({
    path,
    subnets,
    ranges,
    gateway,
    addressSpace:
      readString(ipam.addressSpace, `${path}.addressSpace`, POOL_LIMITS.name) ??
      readString(ipam.network_name, `${path}.network_name`, POOL_LIMITS.name),
    cooldownSeconds: readSeconds(ipam.cooldownSeconds, `${path}.cooldownSeconds`),
    stickyMAC: readStickyMAC(ipam.stickyMAC, `${path}.stickyMAC`),
    blockSize: readBlockSize(ipam.blockSize, `${path}.blockSize`),
    nodeSelector: readLabels(ipam.nodeSelector, `${path}.nodeSelector`),
    publishCapacity: readFlag(ipam.publishCapacity, `${path}.publishCapacity`),
    namespaces: isAbsentOrEmpty(ipam.namespaces)
      ? undefined
      : readStrings(ipam.namespaces, `${path}.namespaces`, POOL_LIMITS.namespaces),
    guard: readGuardOfNad(ipam.guard, `${path}.guard`),
  });
}

/** Reads the keys next to `range`, then `ipRanges`, in whereabouts' order. */
function readRanges(ipam: Record<string, unknown>, path: string): WhereaboutsRange[] {
  const listed = readList(ipam.ipRanges, `${path}.ipRanges`, POOL_LIMITS.subnets).map((element, index) => {
    const place = `${path}.ipRanges[${index}]`;
    const range = readObject(element, place);
    rejectUnknownKeys(range, place, RANGE_KEY_NAMES);
    if (isAbsentOrEmpty(range.range))
      throw new ShapeError(`${place}.range`, 'is absent: write a CIDR such as "10.0.0.0/24"');
    return readRange(range, place);
  });
  if (!isAbsentOrEmpty(ipam.range)) return [readRange(ipam, path), ...listed];
  for (const key of ['range_start', 'range_end']) {
    if (!isAbsentOrEmpty(ipam[key]))
      throw new ShapeError(`${path}.${key}`, `has no effect without ${path}.range: add it, or remove ${key}`);
  }
  // whereabouts ignores this list here; its author meant to exclude more addresses
  const exclude = readStrings(ipam.exclude, `${path}.exclude`, POOL_LIMITS.exclude);
  // added to the list of each range
  return listed.map((range) => ({
    ...range,
    exclude: range.exclude.length === 0 ? exclude : [...range.exclude, ...exclude],
  }));
}

function readRange(range: Record<string, unknown>, path: string): WhereaboutsRange {
  return omitUndefined({
    path,
    start: readString(range.range_start, `${path}.range_start`, POOL_LIMITS.element),
    end: readString(range.range_end, `${path}.range_end`, POOL_LIMITS.element),
    range: readString(range.range, `${path}.range`, POOL_LIMITS.element) ?? '',
    exclude: readStrings(range.exclude, `${path}.exclude`, POOL_LIMITS.exclude),
  });
}

function readSubnet(value: unknown, path: string): PoolSubnet {
  const subnet = readObject(value, path);
  rejectUnknownKeys(subnet, path, SUBNET_KEYS);
  const cidr = readString(subnet.cidr, `${path}.cidr`, POOL_LIMITS.cidr);
  if (cidr === undefined) throw new ShapeError(`${path}.cidr`, 'is absent: write a CIDR such as "10.0.0.0/24"');
  const gateway = readString(subnet.gateway, `${path}.gateway`, POOL_LIMITS.gateway);
  const lists = (['ranges', 'exclude', 'reserved', 'draining'] as const).flatMap((key) => {
    const texts = readStrings(subnet[key], `${path}.${key}`, POOL_LIMITS[key]);
    return texts.length === 0 ? [] : [[key, texts] as const];
  });
  return { cidr, ...Object.fromEntries(lists), ...(gateway !== undefined && { gateway }) };
}

function rejectMixedForms(ipam: Record<string, unknown>, path: string): void {
  for (const key of [...RANGE_KEY_NAMES, 'ipRanges', 'gateway']) {
    if (isAbsentOrEmpty(ipam[key])) continue;
    throw new ShapeError(
      `${path}.${key}`,
      `cannot be combined with subnets: move it into ${path}.subnets, or remove subnets`,
    );
  }
}

function rejectUnknownKeys(object: Record<string, unknown>, path: string, known: readonly string[]): void {
  for (const key of Object.keys(object)) {
    if (known.includes(key) || OTHER_KEYS.has(key)) continue;
    if (key === 'allowPersistentIPs') throw new ShapeError(`${path}.${key}`, `is not read here: move it out of ipam`);
    throw new ShapeError(`${path}.${key}`, `is unknown: correct or remove it; known keys: ${known.join(', ')}`);
  }
}

function readStickyMAC(value: unknown, path: string): AddressPoolSpec['stickyMAC'] {
  if (isAbsentOrEmpty(value)) return undefined;
  const sticky = readObject(value, path);
  const ttl = readString(sticky.ttl, `${path}.ttl`, POOL_LIMITS.ttl);
  if (ttl === undefined) throw new ShapeError(`${path}.ttl`, 'is absent: write a duration such as "24h"');
  return omitUndefined({ ttl, retain: readFlag(sticky.retain, `${path}.retain`) });
}

function readBlockSize(value: unknown, path: string): AddressPoolSpec['blockSize'] {
  if (isAbsentOrEmpty(value)) return undefined;
  const size = readObject(value, path);
  rejectUnknownKeys(size, path, BLOCK_SIZE_KEYS);
  const lengths = BLOCK_SIZE_KEYS.flatMap((family) => {
    const length = size[family];
    if (isAbsentOrEmpty(length)) return [];
    if (typeof length === 'number' && Number.isInteger(length)) return [[family, length] as const];
    throw new ShapeError(`${path}.${family}`, `is ${describeValue(length)}: write a prefix length, without quotes`);
  });
  return Object.fromEntries(lengths);
}

const GUARD_MODES = ['Off', 'Observe', 'Enforce'] as const;

function readGuardOfNad(value: unknown, path: string): AddressPoolSpec['guard'] {
  if (isAbsentOrEmpty(value)) return undefined;
  const guard = readObject(value, path);
  if (!isAbsentOrEmpty(guard.allow)) {
    const remedy = 'remove it, and ask the administrator for an AddressPool that lists the addresses';
    throw new ShapeError(`${path}.allow`, `is not allowed in a NAD: ${remedy}`);
  }
  rejectUnknownKeys(guard, path, GUARD_KEYS);
  const mode = GUARD_MODES.find((each) => each === guard.mode);
  if (mode === undefined)
    throw new ShapeError(`${path}.mode`, `is ${describeValue(guard.mode)}: write "${GUARD_MODES.join('", "')}"`);
  return omitUndefined({ mode, migrationHold: readFlag(guard.migrationHold, `${path}.migrationHold`) });
}

function readLabels(value: unknown, path: string): Record<string, string> | undefined {
  if (isAbsentOrEmpty(value)) return undefined;
  const entries = Object.entries(readObject(value, path));
  rejectOverLimit(entries.length, path, POOL_LIMITS.nodeSelector, 'labels');
  const labels = entries.map(([label, text]) => {
    rejectOverLimit(label.length, `${path}.${label}`, MAX_LABEL_KEY_LENGTH, 'characters in its key');
    if (typeof text !== 'string')
      throw new ShapeError(`${path}.${label}`, `is ${describeValue(text)}: write the value of the label in quotes`);
    rejectOverLimit(text.length, `${path}.${label}`, POOL_LIMITS.labelValue, 'characters');
    return [label, text] as const;
  });
  return Object.fromEntries(labels);
}

function readFlag(value: unknown, path: string): boolean | undefined {
  if (isAbsentOrEmpty(value)) return undefined;
  if (typeof value === 'boolean') return value;
  throw new ShapeError(path, `is ${describeValue(value)}: write true or false, without quotes`);
}

function readSeconds(value: unknown, path: string): number | undefined {
  if (isAbsentOrEmpty(value)) return undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new ShapeError(path, `is ${describeValue(value)}: write whole seconds, 0 or more, without quotes`);
}

function readObject(value: unknown, path: string): Record<string, unknown> {
  if (isRecord(value)) return value;
  throw new ShapeError(path, `is ${describeValue(value)}: write an object`);
}

function readList(value: unknown, path: string, most: number): unknown[] {
  if (isAbsentOrEmpty(value)) return [];
  if (!Array.isArray(value)) throw new ShapeError(path, `is ${describeValue(value)}: write a list`);
  rejectOverLimit(value.length, path, most, 'elements');
  return value;
}

/** Addresses, CIDRs, or names of namespaces. */
function readStrings(value: unknown, path: string, most: number): string[] {
  return readList(value, path, most).map((element, index) => {
    const text = readString(element, `${path}[${index}]`, POOL_LIMITS.element);
    if (text === undefined) throw new ShapeError(`${path}[${index}]`, 'is empty: write a value, or remove it');
    return text;
  });
}

function readString(value: unknown, path: string, most: number): string | undefined {
  if (isAbsentOrEmpty(value)) return undefined;
  if (typeof value !== 'string') throw new ShapeError(path, `is ${describeValue(value)}: write a string in quotes`);
  rejectOverLimit(value.length, path, most, 'characters');
  return value;
}

function rejectOverLimit(count: number, path: string, most: number, what: string): void {
  if (count > most) throw new ShapeError(path, `has ${count} ${what}: at most ${most} are allowed`);
}

function isAbsentOrEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}
