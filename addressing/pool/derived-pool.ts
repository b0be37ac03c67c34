import type { AddressPool, AddressPoolSpec, PoolSubnet } from '../../api/address-pool.js';
import { claimName, labelValue } from '../../api/ipam-claim.js';
import { type HoldfastIpamConfig, type WhereaboutsRange, describesPool } from '../../api/networks/ipam-config.js';
import { POOL_FIELDS } from '../../api/networks/ipam-keys.js';
import { POOL_LIMITS } from '../../api/limits.js';
import type { NadRights } from '../../api/networks/nad-rights.js';
import { ADDRESS_POOL_KIND, IPAM_API_VERSION, POOL_FINALIZER, POOL_NAD_NAMESPACE } from '../../api/names.js';
import type { NetworkConfigProblem } from '../../api/networks/network-attachment.js';
import { type Address, AddressError, formatAddress, parseAddress, parseAddressOrPrefix } from '../address/address.js';
import { type Cidr, containsAddress, firstOf, formatCidr, lastOf, networkOf, parseCidr } from '../address/cidr.js';
import { type Pool, type PoolProblem, compilePool, parseDuration } from './pool.js';

export type DerivedSpec =
  /** `reduced`: settings beyond the NAD's rights, which the spec leaves out or limits. */
  | { kind: 'spec'; spec: AddressPoolSpec; pool: Pool; reduced: readonly NetworkConfigProblem[] }
  /** The NAD describes no pool: an administrator's pool serves it. */
  | { kind: 'none' }
  | { kind: 'invalid'; problems: readonly NetworkConfigProblem[] };

/** Returns the name of a derived pool: `<network>.<namespace>`, with a hash if that is not a valid or not a unique name. */
export function derivedPoolName(namespace: string, network: string): string {
  // claimName joins two names injectively
  return claimName(network, namespace);
}

/** Stands for all namespaces in a NAD. */
const ALL_NAMESPACES = '*';
/** The longest sticky time that a NAD may set. Only an administrator's pool may keep addresses for longer. */
const MAX_STICKY_TTL = '168h';
/** The longest cool-down that a NAD may set. */
const MAX_COOLDOWN_SECONDS = 3_600;

const NONE: DerivedSpec = { kind: 'none' };

/** The namespace of a NAD, and its rights. */
interface NadOwner {
  readonly namespace: string;
  readonly rights: Pick<NadRights, 'servesAll' | 'publishesCapacity'>;
}

/** Results by config. A change of one NAD reads all NADs of its network again, so each config is compiled only once. */
const specs = new WeakMap<HoldfastIpamConfig, { key: string; derived: DerivedSpec }>();

/** Returns the pool spec that a NAD describes. Problems name fields of the NAD. Equal arguments give the same object. */
export function derivedSpec(network: string, config: HoldfastIpamConfig, owner: NadOwner): DerivedSpec {
  if (!describesPool(config)) return NONE;
  const { servesAll, publishesCapacity } = owner.rights;
  const key = JSON.stringify([network, owner.namespace, servesAll, publishesCapacity]);
  const known = specs.get(config);
  if (known?.key === key) return known.derived;
  const derived = readSpec(network, config, owner);
  specs.set(config, { key, derived });
  return derived;
}

function readSpec(network: string, config: HoldfastIpamConfig, { namespace, rights }: NadOwner): DerivedSpec {
  const converted =
    config.subnets.length > 0 ? { ok: true as const, subnets: config.subnets } : subnetsOfRanges(config);
  if (!converted.ok) return { kind: 'invalid', problems: [converted.problem] };
  const { granted, reduced } = grant(config, rights);
  const namespaces = servedNamespaces(namespace, config, rights);
  if (namespaces !== undefined && namespaces.length > POOL_LIMITS.namespaces) {
    return { kind: 'invalid', problems: [tooManyNamespaces(namespace, namespaces.length - 1, config)] };
  }
  const spec: AddressPoolSpec = {
    network,
    subnets: converted.subnets,
    ...Object.fromEntries(POOL_FIELDS.flatMap((key) => (granted[key] === undefined ? [] : [[key, granted[key]]]))),
    ...(namespaces && { namespaces }),
  };
  const compiled = compilePool({ metadata: { name: network }, spec });
  if (compiled.ok) return { kind: 'spec', spec, pool: compiled.pool, reduced };
  return { kind: 'invalid', problems: compiled.problems.map((problem) => problemInNad(problem, config)) };
}

export function derivedPool(namespace: string, spec: AddressPoolSpec): AddressPool {
  return {
    apiVersion: IPAM_API_VERSION,
    kind: ADDRESS_POOL_KIND,
    metadata: {
      name: derivedPoolName(namespace, spec.network),
      labels: { [POOL_NAD_NAMESPACE]: labelValue(namespace) },
      annotations: { [POOL_NAD_NAMESPACE]: namespace },
      finalizers: [POOL_FINALIZER],
    },
    spec,
  };
}

/** @returns undefined if the pool serves all namespaces */
function servedNamespaces(
  own: string,
  { namespaces }: HoldfastIpamConfig,
  rights: NadOwner['rights'],
): string[] | undefined {
  if (namespaces === undefined) return rights.servesAll ? undefined : [own];
  return namespaces.includes(ALL_NAMESPACES) ? undefined : [...new Set([...namespaces, own])];
}

/** The problem of a NAD that lists too many namespaces. The pool's own message would count the NAD's namespace too. */
function tooManyNamespaces(own: string, others: number, { path }: HoldfastIpamConfig): NetworkConfigProblem {
  const message =
    `names ${others} namespaces besides "${own}", which a pool of this NAD always serves: name at most ` +
    `${POOL_LIMITS.namespaces - 1} others, or write ["${ALL_NAMESPACES}"] for all`;
  return { field: `${path}.namespaces`, message };
}

function grant(
  config: HoldfastIpamConfig,
  rights: NadOwner['rights'],
): { granted: HoldfastIpamConfig; reduced: NetworkConfigProblem[] } {
  const { path, publishCapacity, stickyMAC, cooldownSeconds } = config;
  const granted = { ...config };
  const reduced: NetworkConfigProblem[] = [];
  if (publishCapacity === true && !rights.publishesCapacity) {
    delete granted.publishCapacity;
    const message =
      'has no effect in NADs of this namespace: remove it, or ask the administrator to create an AddressPool that publishes its ' +
      'capacity, or to add the namespace to --capacity-namespaces of holdfast ipam';
    reduced.push({ field: `${path}.publishCapacity`, message });
  }
  if (stickyMAC !== undefined && (parseDuration(stickyMAC.ttl) ?? 0) > (parseDuration(MAX_STICKY_TTL) ?? 0)) {
    granted.stickyMAC = { ...stickyMAC, ttl: MAX_STICKY_TTL };
    const message =
      `is "${stickyMAC.ttl}", but NADs are limited to ${MAX_STICKY_TTL}, which is used instead: ` +
      'write a shorter time, or ask the administrator for an AddressPool';
    reduced.push({ field: `${path}.stickyMAC.ttl`, message });
  }
  if (cooldownSeconds !== undefined && cooldownSeconds > MAX_COOLDOWN_SECONDS) {
    granted.cooldownSeconds = MAX_COOLDOWN_SECONDS;
    const message =
      `is ${cooldownSeconds}, but NADs are limited to ${MAX_COOLDOWN_SECONDS}, which is used instead: ` +
      'write a shorter time, or ask the administrator for an AddressPool';
    reduced.push({ field: `${path}.cooldownSeconds`, message });
  }
  return { granted, reduced };
}

const SUBNET_FIELD = /^spec\.subnets\[(\d+)\](?:\.(\w+))?/;
/** A message about an overlap names the other field, too. */
const OTHER_FIELD = /\(spec\.subnets\[[\w.[\]]+\)/g;
/** The keys of whereabouts that correspond to the fields of a subnet. */
const WHEREABOUTS_KEYS: Readonly<Record<string, string>> = { cidr: '.range', ranges: '.range', exclude: '.exclude' };

/** Converts a problem of the pool's spec to a problem of the NAD that the pool was derived from. */
function problemInNad({ field, message }: PoolProblem, config: HoldfastIpamConfig): NetworkConfigProblem {
  const translated = message.replace(OTHER_FIELD, (other) => `(${fieldInNad(other.slice(1, -1), config)})`);
  return { field: fieldInNad(field, config), message: `cannot be served: ${translated}` };
}

function fieldInNad(field: string, { path, ranges }: HoldfastIpamConfig): string {
  if (field === 'spec.network') return 'spec.config.name';
  if (field === 'spec.subnets' && ranges.length > 0) return `${path}.ipRanges`;
  const [, index, key = ''] = SUBNET_FIELD.exec(field) ?? [];
  const range = index === undefined ? undefined : ranges[Number(index)];
  if (range === undefined) return field.replace(/^spec/, path);
  return key === 'gateway' ? `${path}.gateway` : `${range.path}${WHEREABOUTS_KEYS[key] ?? ''}`;
}

type SubnetConversion = { ok: true; subnets: PoolSubnet[] } | { ok: false; problem: NetworkConfigProblem };

/** Carries a problem to {@link subnetsOfRanges}, which catches it. */
class WhereaboutsRangeError extends Error {
  readonly problem: NetworkConfigProblem;

  constructor(field: string, message: string) {
    super(message);
    this.problem = { field, message };
  }
}

/**
 * Converts the ranges of a whereabouts config to the subnets of a pool. It follows whereabouts' pkg/config: host bits of a CIDR are
 * ignored, `first-last/length` overrides `range_start` and `range_end`, and exclusions or gateways outside of all ranges have no effect.
 * Two differences: a start or end outside the range is an error, because ignoring it would lease unintended addresses; and a pod gets
 * one address per family, not one per range.
 */
function subnetsOfRanges({
  path,
  ranges,
  gateway,
}: Pick<HoldfastIpamConfig, 'path' | 'ranges' | 'gateway'>): SubnetConversion {
  try {
    const router = gateway === undefined ? undefined : parseField(`${path}.gateway`, () => parseAddress(gateway));
    return { ok: true, subnets: ranges.map((range) => subnetOfRange(range, router)) };
  } catch (error) {
    if (error instanceof WhereaboutsRangeError) return { ok: false, problem: error.problem };
    throw error;
  }
}

/** Names the exclusions and the gateway of a valid whereabouts config that have no effect, because no range contains them. */
export function ineffectiveAddresses(config: HoldfastIpamConfig): string[] {
  const { path, ranges, gateway } = config;
  const converted = subnetsOfRanges(config);
  if (ranges.length === 0 || !converted.ok) return [];
  const cidrs = converted.subnets.map(({ cidr }) => parseCidr(cidr));
  const excluded = [...new Set(ranges.flatMap(({ exclude }) => exclude))]
    .filter((text) => cidrs.every((cidr) => exclusionIn(cidr, parseNetwork(text)).length === 0))
    .map((text) => `${path}.exclude: "${text}"`);
  const hasGateway = gateway === undefined || converted.subnets.some((subnet) => subnet.gateway !== undefined);
  return [...(hasGateway ? [] : [`${path}.gateway: "${gateway}"`]), ...excluded];
}

interface WhereaboutsSpan {
  cidr: Cidr;
  start?: Address;
  end?: Address;
}

function subnetOfRange(range: WhereaboutsRange, gateway: Address | undefined): PoolSubnet {
  const { cidr, start, end } = spanOf(range);
  const first = start?.value ?? firstOf(cidr);
  const last = end?.value ?? lastOf(cidr);
  const text = (value: bigint) => formatAddress({ family: cidr.family, value });
  if (first > last) {
    const field = `${range.path}.${range.range.includes('-') ? 'range' : 'range_end'}`;
    throw new WhereaboutsRangeError(field, `ends at ${text(last)}, before it begins at ${text(first)}: swap the two`);
  }
  const exclude = range.exclude.flatMap((text, index) => {
    const excluded = parseField(`${range.path}.exclude[${index}]`, () => parseNetwork(text));
    return exclusionIn(cidr, excluded);
  });
  return {
    cidr: formatCidr(cidr),
    ...((start ?? end) && { ranges: [`${text(first)}-${text(last)}`] }),
    ...(exclude.length > 0 && { exclude }),
    ...(gateway !== undefined && containsAddress(cidr, gateway) && { gateway: formatAddress(gateway) }),
  };
}

function spanOf(range: WhereaboutsRange): WhereaboutsSpan {
  const field = `${range.path}.range`;
  const dash = range.range.indexOf('-');
  if (dash >= 0) {
    const { address: end, cidr } = parseField(field, () => parseInterface(range.range.slice(dash + 1)));
    const start = parseField(field, () => parseAddress(range.range.slice(0, dash)));
    return { cidr, start: requireWithin(cidr, start, field), end };
  }
  const { cidr } = parseField(field, () => parseInterface(range.range));
  const bound = (text: string | undefined, key: string) => {
    if (text === undefined) return undefined;
    const boundField = `${range.path}.${key}`;
    const address = parseField(boundField, () => parseAddress(text));
    return requireWithin(cidr, address, boundField);
  };
  const start = bound(range.start, 'range_start');
  const end = bound(range.end, 'range_end');
  return { cidr, ...(start && { start }), ...(end && { end }) };
}

/** Parses an address with a prefix length. */
function parseInterface(text: string): { address: Address; cidr: Cidr } {
  const { address, prefixLength } = parseAddressOrPrefix(text);
  if (prefixLength === undefined) throw new AddressError(`"${text}" has no prefix length: write it like ${text}/24`);
  return { address, cidr: networkOf(address, prefixLength) };
}

function parseNetwork(text: string): Cidr {
  const { address, prefixLength } = parseAddressOrPrefix(text);
  return networkOf(address, prefixLength ?? (address.family === 4 ? 32 : 128));
}

/** Returns the part of the excluded network that is in the range. One of two networks contains the other, or they are disjoint. */
function exclusionIn(cidr: Cidr, excluded: Cidr): string[] {
  const hasBase = containsAddress(cidr, { family: excluded.family, value: excluded.base });
  if (hasBase && excluded.prefixLength >= cidr.prefixLength) return [formatCidr(excluded)];
  return containsAddress(excluded, { family: cidr.family, value: cidr.base }) ? [formatCidr(cidr)] : [];
}

function requireWithin(cidr: Cidr, address: Address, field: string): Address {
  if (containsAddress(cidr, address)) return address;
  const problem = `is ${formatAddress(address)}, which is not in ${formatCidr(cidr)}`;
  throw new WhereaboutsRangeError(field, `${problem}: write an address of that network`);
}

function parseField<T>(field: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof AddressError) throw new WhereaboutsRangeError(field, `is invalid: ${error.message}`);
    throw error;
  }
}
