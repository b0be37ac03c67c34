import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { asRecord, describeValue, isRecord } from '../../api/json.js';
import { POOL_LIMITS } from '../../api/limits.js';
import { type KubeObject, isBeingDeleted, isNamespaceName } from '../../api/meta.js';
import { NETWORK_NAME_REMEDY, isNetworkName } from '../../api/networks/network-attachment.js';
import { type Address, BITS, type Family, formatAddress } from '../address/address.js';
import { containsAddress } from '../address/cidr.js';
import { RangeSet } from '../address/ranges.js';
import { type PoolGuard, readGuard } from './guard.js';
import { type GuestDelivery, readGuest } from './guest.js';
import { type PoolProblem, PoolProblems, isAbsent } from './pool-problems.js';
import { type Subnet, readSubnet } from './subnet.js';

export type { PoolProblem } from './pool-problems.js';
export type { Subnet } from './subnet.js';

/** A valid AddressPool, parsed. */
export interface Pool {
  readonly name: string;
  readonly uid: string;
  readonly network: string;
  readonly addressSpace: string;
  /** In the order of the spec. They do not overlap. */
  readonly subnets: readonly Subnet[];
  /** The families of the subnets, IPv4 first. */
  readonly families: readonly Family[];
  /** The spec's cool-down; 0 if it has none. See {@link effectiveCooldownMs}. */
  readonly cooldownMs: number;
  /** How long a released address is kept for its MAC address; 0: the pool is not sticky. */
  readonly stickyMs: number;
  /** Addresses of deleted VMs are kept too, not only those of pods. */
  readonly isStickyForClaims: boolean;
  /** The prefix lengths of blocks. */
  readonly blockSize: Readonly<Record<Family, number>>;
  /** The labels of the nodes that have the network; absent: all nodes have it. */
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly publishesCapacity: boolean;
  readonly publishesMetrics: boolean;
  /** The namespaces whose workloads the pool serves; absent: all. */
  readonly namespaces?: ReadonlySet<string>;
  /** Present if the pool serves VMs on NADs without IPAM. Derived pools never do. */
  readonly guest?: GuestDelivery;
  /** Absent: interfaces send what they like. */
  readonly guard?: PoolGuard;
  /** Of a derived pool: the namespace of its NADs. */
  readonly nadNamespace?: string;
}

/** Says who can make the pool larger, and where. */
export function growthRemedy({ network, nadNamespace }: Pool): string {
  return nadNamespace === undefined
    ? 'ask the administrator to add a range to the pool'
    : `add a subnet to the NAD of network ${network} in namespace ${nadNamespace}`;
}

/** `open`: allocated without a request; `requestable`: allocated if requested; `leasable`: also those that are draining. */
export type LeasableSet = 'open' | 'requestable' | 'leasable';

/** Parses a pool. Never throws, and reports all problems at once. Time grows with the spec's length, never with the number of addresses. */
export function compilePool({
  metadata,
  spec,
}: AddressPool): { ok: true; pool: Pool } | { ok: false; problems: readonly PoolProblem[] } {
  const problems = new PoolProblems();
  const fields: Partial<Record<keyof AddressPool['spec'], unknown>> = isRecord(spec) ? { ...spec } : {};
  const network = readName('spec.network', fields.network, problems);
  const addressSpace =
    fields.addressSpace === undefined ? network : readName('spec.addressSpace', fields.addressSpace, problems);
  const subnets = readSubnets(fields.subnets, problems);
  const namespaces = readNamespaces(fields.namespaces, problems);
  const nodeSelector = readNodeSelector(fields.nodeSelector, problems);
  const guest = readGuest(fields.guest, subnets, problems);
  const nadNamespace = nadNamespaceOf({ metadata });
  if (guest !== undefined && nadNamespace !== undefined)
    problems.add(
      'spec.guest',
      'has no effect in a derived pool: remove it, and ask the administrator for an AddressPool',
    );
  const pool: Pool = {
    name: metadata.name,
    uid: metadata.uid ?? '',
    network,
    addressSpace,
    subnets,
    families: ([4, 6] as const).filter((family) => subnets.some(({ cidr }) => cidr.family === family)),
    cooldownMs: readCooldownMs(fields.cooldownSeconds, problems),
    stickyMs: readStickyMs(fields.stickyMAC, problems),
    isStickyForClaims: problems.readFlag('spec.stickyMAC.retain', asRecord(fields.stickyMAC).retain),
    blockSize: readBlockSize(fields.blockSize, problems),
    ...(nodeSelector !== undefined && { nodeSelector }),
    publishesCapacity: problems.readFlag('spec.publishCapacity', fields.publishCapacity),
    publishesMetrics: problems.readFlag('spec.publishMetrics', fields.publishMetrics ?? true),
    ...(namespaces !== undefined && { namespaces }),
    ...(nadNamespace !== undefined && { nadNamespace }),
    ...(guest !== undefined && { guest }),
    ...readGuard(fields.guard, problems),
  };
  return problems.found.length === 0 ? { ok: true, pool } : { ok: false, problems: problems.found };
}

/** Returns the subnet that contains an address, leasable or not. */
export function subnetOf(pool: Pool, address: Address): Subnet | undefined {
  return pool.subnets.find(({ cidr }) => containsAddress(cidr, address));
}

export function addressesOf(pool: Pool, family: Family, which: LeasableSet): RangeSet {
  const subnets = pool.subnets.filter(({ cidr }) => cidr.family === family);
  return RangeSet.of(subnets.flatMap((subnet) => subnet[which].ranges));
}

/** True if owners may have the address, also if it is draining. */
export function isLeasable(pool: Pool, address: Address): boolean {
  return subnetOf(pool, address)?.leasable.has(address.value) ?? false;
}

/** True if the pool leases the address to owners that have it, and to no others. */
export function isDraining(pool: Pool, address: Address): boolean {
  return isLeasable(pool, address) && !isRequestable(pool, address);
}

/** True if the pool leases the address to anybody who requests it. */
export function isRequestable(pool: Pool, address: Address): boolean {
  return subnetOf(pool, address)?.requestable.has(address.value) ?? false;
}

/** True if the pool serves the workloads of a namespace, alone or among others. */
export function servesNamespace({ namespaces }: Pick<Pool, 'namespaces'>, namespace: string): boolean {
  return namespaces?.has(namespace) ?? true;
}

export function hasDraining({ subnets }: Pool): boolean {
  return subnets.some(({ leasable, requestable }) => leasable.size > requestable.size);
}

/** Returns an address with the prefix length of its subnet, `10.0.0.5/24`; or `10.0.0.5/32` if the pool has no such subnet (any more). */
export function withPrefix(pool: Pool, address: Address): string {
  const prefixLength = subnetOf(pool, address)?.cidr.prefixLength ?? BITS[address.family];
  return `${formatAddress(address)}/${prefixLength}`;
}

function readName(field: string, value: unknown, problems: PoolProblems): string {
  const name = problems.readText(field, value, 'blue') ?? '';
  if (name.length > POOL_LIMITS.name) {
    problems.add(
      field,
      `${describeValue(name)} has ${name.length} characters, and at most ${POOL_LIMITS.name} are allowed: write a shorter name`,
    );
  } else if (name !== '' && !isNetworkName(name)) {
    problems.add(field, `${describeValue(name)} is not a valid name of a CNI network: ${NETWORK_NAME_REMEDY}`);
  }
  return name;
}

function readSubnets(value: unknown, problems: PoolProblems): Subnet[] {
  const field = 'spec.subnets';
  const places = problems.readList(field, value, POOL_LIMITS.subnets);
  if (places.length === 0)
    problems.add(field, `is empty, so the pool has no addresses: write 1 to ${POOL_LIMITS.subnets} subnets`);
  const subnets = places.flatMap((place) => readSubnet(place, problems) ?? []);
  const written = subnets.map((each) => each.written);
  problems.reportOverlaps(written, 'join them, or narrow one of them');
  return subnets.map(({ subnet }) => subnet);
}

function readNamespaces(value: unknown, problems: PoolProblems): ReadonlySet<string> | undefined {
  if (isAbsent(value)) return undefined;
  const field = 'spec.namespaces';
  if (Array.isArray(value) && value.length === 0) {
    problems.add(field, 'is empty, so the pool serves no namespace: remove the field to serve all namespaces');
  }
  const names = problems.readList(field, value, POOL_LIMITS.namespaces).flatMap((place) => {
    const name = problems.readText(place.field, place.value, 'tenant-a');
    if (name !== undefined && !isNamespaceName(name)) {
      const problem = 'is not a namespace: write an exact name, because patterns are not supported';
      problems.add(place.field, `${describeValue(name)} ${problem}`);
    }
    return name ?? [];
  });
  return new Set(names);
}

function readCooldownMs(value: unknown, problems: PoolProblems): number {
  const place = { field: 'spec.cooldownSeconds', value };
  return (problems.readInteger(place, { most: POOL_LIMITS.cooldownSeconds }) ?? 0) * 1000;
}

function readStickyMs(value: unknown, problems: PoolProblems): number {
  if (isAbsent(value)) return 0;
  const field = 'spec.stickyMAC.ttl';
  const ttl = problems.readText(field, asRecord(value).ttl, '24h');
  if (ttl === undefined) return 0;
  const stickyMs = parseDuration(ttl) ?? 0;
  if (stickyMs > 0) return stickyMs;
  const remedy = 'write it like 30m, 24h or 1h30m, or remove stickyMAC';
  problems.add(field, `${describeValue(ttl)} is not a duration over 0: ${remedy}`);
  return 0;
}

const DURATION = /^(\d{1,6}(h|ms|m|s))+$/;
const COMPONENT = /(\d+)(h|ms|m|s)/g;
const UNITS_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/**
 * Parses a metav1.Duration in hours, minutes, seconds and milliseconds, like `24h` or `1h30m0s`.
 * @returns milliseconds; undefined if the text is invalid
 */
export function parseDuration(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit = ''] of text.matchAll(COMPONENT))
    total += Number(amount) * (UNITS_MS[unit] ?? Number.NaN);
  return total;
}

/** A /26 and a /122: 64 addresses each. */
const DEFAULT_BLOCK_SIZE: Readonly<Record<Family, number>> = { 4: 26, 6: 122 };

const PREFIX_LENGTHS = { 4: { least: 16, most: 32 }, 6: { least: 64, most: 128 } };
const FAMILY_KEYS: Readonly<Record<Family, string>> = { 4: 'ipv4', 6: 'ipv6' };

function readBlockSize(value: unknown, problems: PoolProblems): Readonly<Record<Family, number>> {
  const sizes = problems.readOptionalObject({ field: 'spec.blockSize', value }, '{ipv4: 26, ipv6: 122}') ?? {};
  const read = (family: Family) => {
    const place = { field: `spec.blockSize.${FAMILY_KEYS[family]}`, value: sizes[FAMILY_KEYS[family]] };
    return problems.readInteger(place, PREFIX_LENGTHS[family]) ?? DEFAULT_BLOCK_SIZE[family];
  };
  return { 4: read(4), 6: read(6) };
}

function readNodeSelector(value: unknown, problems: PoolProblems): Readonly<Record<string, string>> | undefined {
  const field = 'spec.nodeSelector';
  const selector = problems.readOptionalObject({ field, value }, '{network: blue}');
  if (selector === undefined) return undefined;
  const labels = Object.entries(selector);
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

type Labels = Readonly<Record<string, string>>;

/** True if a node has the pool's network. Blocks are lent to these nodes, and capacity is published on them. */
export function hasNetwork(node: KubeObject, labels: Labels, nodeSelector: Labels = {}): boolean {
  return !isBeingDeleted(node) && matchesLabels(labels, nodeSelector);
}

/** True if all labels of the selector match exactly, as in Kubernetes' nodeSelector. */
export function matchesLabels(labels: Labels, selector: Labels): boolean {
  return Object.entries(selector).every(([label, value]) => labels[label] === value);
}
