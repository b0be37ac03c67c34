import { POOL_LIMITS } from '../../api/limits.js';
import { describeValue, isRecord } from '../../api/json.js';
import { type KubeObject, isBeingDeleted } from '../../api/meta.js';
import type { Family } from '../address/address.js';
import { type FieldValue, type PoolProblems, isAbsent } from './pool-problems.js';

/** Reads the fields of a pool's spec that concern nodes, and its switches. */

/** A /26 and a /122: 64 addresses each. */
const DEFAULT_BLOCK_SIZE: Readonly<Record<Family, number>> = { 4: 26, 6: 122 };

const MIN_PREFIX_LENGTH: Readonly<Record<Family, number>> = { 4: 16, 6: 64 };
const MAX_PREFIX_LENGTH: Readonly<Record<Family, number>> = { 4: 32, 6: 128 };
const FAMILY_KEYS: Readonly<Record<Family, string>> = { 4: 'ipv4', 6: 'ipv6' };

export function readBlockSize(value: unknown, problems: PoolProblems): Readonly<Record<Family, number>> {
  if (isAbsent(value)) return DEFAULT_BLOCK_SIZE;
  const field = 'spec.blockSize';
  if (!isRecord(value)) {
    problems.add(field, `${describeValue(value)} is not an object: write it like {ipv4: 26, ipv6: 122}`);
    return DEFAULT_BLOCK_SIZE;
  }
  return { 4: readPrefix(value, 4, problems), 6: readPrefix(value, 6, problems) };
}

function readPrefix(sizes: Record<string, unknown>, family: Family, problems: PoolProblems): number {
  const size = sizes[FAMILY_KEYS[family]];
  if (isAbsent(size)) return DEFAULT_BLOCK_SIZE[family];
  const [shortest, longest] = [MIN_PREFIX_LENGTH[family], MAX_PREFIX_LENGTH[family]];
  if (typeof size === 'number' && Number.isInteger(size) && size >= shortest && size <= longest) return size;
  problems.add(
    `spec.blockSize.${FAMILY_KEYS[family]}`,
    `${describeValue(size)} is not a prefix length of blocks: write an integer from ${shortest} to ${longest}`,
  );
  return DEFAULT_BLOCK_SIZE[family];
}

export function readNodeSelector(value: unknown, problems: PoolProblems): Readonly<Record<string, string>> | undefined {
  if (isAbsent(value)) return undefined;
  const field = 'spec.nodeSelector';
  if (!isRecord(value)) {
    problems.add(field, `${describeValue(value)} is not a set of labels: write it like {network: blue}`);
    return undefined;
  }
  const labels = Object.entries(value);
  const most = POOL_LIMITS.nodeSelector;
  if (labels.length > most)
    problems.add(field, `has ${labels.length} labels, and at most ${most} are allowed: remove some`);
  for (const [label, text] of labels) {
    if (typeof text === 'string') continue;
    const problem = `${describeValue(text)} is not a string: write the value of the label in quotes`;
    problems.add(`${field}[${label}]`, problem);
  }
  return Object.fromEntries(labels.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

export function readStickyForClaims(stickyMAC: unknown, problems: PoolProblems): boolean {
  const value = isRecord(stickyMAC) ? stickyMAC.retain : undefined;
  return readFlag({ field: 'spec.stickyMAC.retain', value }, problems);
}

/** Reads a boolean field; false if it is absent. */
export function readFlag({ field, value }: FieldValue<unknown>, problems: PoolProblems): boolean {
  if (isAbsent(value)) return false;
  if (typeof value === 'boolean') return value;
  problems.add(field, `${describeValue(value)} is neither true nor false: write one of them, without quotes`);
  return false;
}

type Labels = Readonly<Record<string, string>>;

/** True if a node has the pool's network. Blocks are lent to these nodes, and capacity is published on them. */
export function hasNetwork(node: KubeObject, labels: Labels, nodeSelector: Labels = {}): boolean {
  return !isBeingDeleted(node) && matchesLabels(labels, nodeSelector);
}

/** True if all labels of the selector match exactly, as in Kubernetes' nodeSelector. */
export function matchesLabels(labels: Labels, selector: Labels): boolean {
  return Object.entries(selector).every(([label, value]) => labels[label] === value);
}
