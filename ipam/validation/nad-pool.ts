import { isDeepStrictEqual } from 'node:util';
import { type AddressPool, adminPoolFor } from '../../api/address-pool.js';
import { describeValue } from '../../api/json.js';
import {
  NETWORK_NAME_REMEDY,
  type NetworkConfigProblem,
  isNetworkName,
} from '../../api/networks/network-attachment.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { derivedPool, derivedSpec } from '../../addressing/pool/derived-pool.js';
import type { POOL_FIELDS } from '../../api/networks/ipam-keys.js';
import { type NadRightsLookup } from '../../api/networks/nad-rights.js';
import { type ValidationView } from './review.js';

const MAX_SHOWN_LENGTH = 120;

/** The pool that a NAD requests. */
export interface NadPool {
  readonly nad: ParsedNad;
  readonly network: string;
  readonly pool: AddressPool;
  /** The same pool, compiled. */
  readonly served: Pool;
  /** What the NAD requests and the pool does not grant. */
  readonly reduced: readonly NetworkConfigProblem[];
}

/** What a NAD says about its addresses. `none`: another IPAM or an administrator's pool provides them. */
export type NadIpamConfig =
  | { kind: 'none' }
  | { kind: 'invalid'; problems: readonly NetworkConfigProblem[] }
  | { kind: 'pool'; requested: NadPool };

export function readNadIpamConfig(nad: ParsedNad, rightsOf: NadRightsLookup): NadIpamConfig {
  const { config, delegation } = nad;
  if (delegation.kind === 'invalid') return { kind: 'invalid', problems: [delegation.problem] };
  if (delegation.kind !== 'holdfast') return { kind: 'none' };
  if (!config.ok) return { kind: 'invalid', problems: [config.problem] };
  const { name: network } = config.network;
  const namespace = nad.metadata.namespace ?? '';
  const derived = derivedSpec(network, delegation.config, { namespace, rights: rightsOf(namespace) });
  if (derived.kind === 'none' && !isNetworkName(network)) {
    const message = `is ${describeValue(network)}, which is not a valid name of a CNI network: ${NETWORK_NAME_REMEDY}`;
    return { kind: 'invalid', problems: [{ field: 'spec.config.name', message }] };
  }
  if (derived.kind === 'none') return { kind: 'none' };
  if (derived.kind === 'invalid') return { kind: 'invalid', problems: derived.problems };
  const pool = derivedPool(namespace, derived.spec);
  const served = { ...derived.pool, name: pool.metadata.name };
  return { kind: 'pool', requested: { nad, network, pool, served, reduced: derived.reduced } };
}

/** Returns the pool whose addresses pods of the NAD's own namespace get, undefined if it is unknown or invalid, and whether it is derived from the NAD. */
export function servingPool(
  nad: ParsedNad,
  view: ValidationView,
): { readonly isOwn: boolean; readonly pool?: Pool | undefined } {
  const serving = adminPoolFor(nad, view.pools.list());
  if (serving !== undefined) return { isOwn: false, pool: view.networks.pool(serving.metadata.name) };
  const config = readNadIpamConfig(nad, view.rightsOf);
  return { isOwn: true, pool: config.kind === 'pool' ? config.requested.served : undefined };
}

/** Whether two versions of a NAD say the same about addresses. */
export function isSameConfig(one: NadIpamConfig, other: NadIpamConfig): boolean {
  if (one.kind !== 'pool' || other.kind !== 'pool') return isDeepStrictEqual(one, other);
  return isDeepStrictEqual(
    [one.requested.pool, one.requested.reduced],
    [other.requested.pool, other.requested.reduced],
  );
}

type ComparedField = Exclude<(typeof POOL_FIELDS)[number], 'addressSpace'> | 'namespaces';

/** Fields of a pool's spec, and what they are compiled to. */
const COMPARED_FIELDS: Readonly<Record<ComparedField, readonly (keyof Pool)[]>> = {
  cooldownSeconds: ['cooldownMs'],
  stickyMAC: ['stickyMs', 'isStickyForClaims'],
  blockSize: ['blockSize'],
  nodeSelector: ['nodeSelector'],
  namespaces: ['namespaces'],
  publishCapacity: ['publishesCapacity'],
  guard: ['guard'],
};

/**
 * Returns the first difference between two NADs of one network, as `addressSpace is "a" there and "b" here`. Different texts with the same meaning do not differ.
 * @returns undefined if they agree
 */
export function describeDifference(there: NadPool, here: NadPool): string | undefined {
  const [theirs, ours] = [there.served, here.served];
  const [{ spec: written }, { spec: writing }] = [there.pool, here.pool];
  if (theirs.addressSpace !== ours.addressSpace) {
    return describeFieldDifference('addressSpace', theirs.addressSpace, ours.addressSpace);
  }
  for (const [field, compiled] of Object.entries(COMPARED_FIELDS) as [ComparedField, (keyof Pool)[]][]) {
    if (compiled.every((key) => isDeepStrictEqual(theirs[key], ours[key]))) continue;
    return describeFieldDifference(field, written[field], writing[field]);
  }
  const count = Math.max(theirs.subnets.length, ours.subnets.length);
  for (let index = 0; index < count; index++) {
    if (isDeepStrictEqual(theirs.subnets[index], ours.subnets[index])) continue;
    return describeFieldDifference(`subnets[${index}]`, written.subnets[index], writing.subnets[index]);
  }
  return undefined;
}

function describeFieldDifference(what: string, there: unknown, here: unknown): string {
  return `${what} is ${formatValue(there)} there and ${formatValue(here)} here`;
}

function formatValue(value: unknown): string {
  if (value === undefined) return 'absent';
  const text = JSON.stringify(value);
  return text.length <= MAX_SHOWN_LENGTH ? text : `${text.slice(0, MAX_SHOWN_LENGTH)}…`;
}
