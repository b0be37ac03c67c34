import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import { type HoldfastIpamConfig, POOL_FIELDS } from '../../api/holdfast-ipam.js';
import { claimName, labelValue } from '../../api/ipam-claim.js';
import { ADDRESS_POOL_KIND, IPAM_API_VERSION, POOL_FINALIZER, POOL_NAD_NAMESPACE } from '../../api/names.js';
import type { NetworkConfigProblem } from '../../api/network-attachment.js';
import { type Pool, type PoolProblem, compilePool } from './pool.js';
import { subnetsOfRanges } from './whereabouts.js';

/** `none`: the NAD leaves its addresses to an admin's pool. */
export type DerivedSpec =
  | { kind: 'spec'; spec: AddressPoolSpec; pool: Pool }
  | { kind: 'none' }
  | { kind: 'invalid'; problems: readonly NetworkConfigProblem[] };

/** The name of the pool of a network and a namespace of NADs: `<network>.<namespace>`, hashed where that is no name or not the only one. */
export function derivedPoolName(namespace: string, network: string): string {
  // the same joining of two names, which no two pairs share
  return claimName(network, namespace);
}

/** The pool that a NAD of the network asks for. Problems name fields of the NAD. */
export function derivedSpec(network: string, config: HoldfastIpamConfig): DerivedSpec {
  if (config.subnets.length === 0 && config.ranges.length === 0) return { kind: 'none' };
  const converted =
    config.subnets.length > 0 ? { ok: true as const, subnets: config.subnets } : subnetsOfRanges(config);
  if (!converted.ok) return { kind: 'invalid', problems: [converted.problem] };
  const spec: AddressPoolSpec = {
    network,
    subnets: converted.subnets,
    ...Object.fromEntries(
      POOL_FIELDS.flatMap((field) => (config[field] === undefined ? [] : [[field, config[field]]])),
    ),
  };
  const compiled = compilePool({ metadata: { name: network }, spec });
  if (compiled.ok) return { kind: 'spec', spec, pool: compiled.pool };
  return { kind: 'invalid', problems: compiled.problems.map((problem) => ofNad(problem, config)) };
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

const SUBNET_FIELD = /^spec\.subnets\[(\d+)\](?:\.(\w+))?/;
/** Where whereabouts has what a subnet says. */
const WHEREABOUTS_KEYS: Readonly<Record<string, string>> = { cidr: '.range', ranges: '.range', exclude: '.exclude' };

/** A problem of the pool's spec as one of the NAD that it came from. */
function ofNad({ field, message }: PoolProblem, config: HoldfastIpamConfig): NetworkConfigProblem {
  return { field: fieldInNad(field, config), message: `cannot be served: ${message}` };
}

function fieldInNad(field: string, { path, ranges }: HoldfastIpamConfig): string {
  if (field === 'spec.network') return 'spec.config.name';
  const [, index, key = ''] = SUBNET_FIELD.exec(field) ?? [];
  const range = index === undefined ? undefined : ranges[Number(index)];
  if (range === undefined) return field.replace(/^spec/, path);
  return key === 'gateway' ? `${path}.gateway` : `${range.path}${WHEREABOUTS_KEYS[key] ?? ''}`;
}
