import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import { POOL_LIMITS } from '../../api/limits.js';
import { type HoldfastIpamConfig, POOL_FIELDS } from '../../api/ipam-config.js';
import { claimName, labelValue } from '../../api/ipam-claim.js';
import { ADDRESS_POOL_KIND, IPAM_API_VERSION, POOL_FINALIZER, POOL_NAD_NAMESPACE } from '../../api/names.js';
import type { NadRights } from '../../api/nad-rights.js';
import type { NetworkConfigProblem } from '../../api/network-attachment.js';
import { parseDuration } from '../address/duration.js';
import { type Pool, type PoolProblem, compilePool } from './pool.js';
import { subnetsOfRanges } from './whereabouts.js';

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
  if (config.subnets.length === 0 && config.ranges.length === 0) return NONE;
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
/** The keys of whereabouts that correspond to the fields of a subnet. */
const WHEREABOUTS_KEYS: Readonly<Record<string, string>> = { cidr: '.range', ranges: '.range', exclude: '.exclude' };

/** Converts a problem of the pool's spec to a problem of the NAD that the pool was derived from. */
function problemInNad({ field, message }: PoolProblem, config: HoldfastIpamConfig): NetworkConfigProblem {
  return { field: fieldInNad(field, config), message: `cannot be served: ${message}` };
}

function fieldInNad(field: string, { path, ranges }: HoldfastIpamConfig): string {
  if (field === 'spec.network') return 'spec.config.name';
  if (field === 'spec.subnets' && ranges.length > 0) return `${path}.ipRanges`;
  const [, index, key = ''] = SUBNET_FIELD.exec(field) ?? [];
  const range = index === undefined ? undefined : ranges[Number(index)];
  if (range === undefined) return field.replace(/^spec/, path);
  return key === 'gateway' ? `${path}.gateway` : `${range.path}${WHEREABOUTS_KEYS[key] ?? ''}`;
}
