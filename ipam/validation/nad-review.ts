import { isDeepStrictEqual } from 'node:util';
import { addressSpaceOf, adminPoolFor } from '../../api/address-pool.js';
import { byAge, objectKey } from '../../api/meta.js';
import type { NetworkConfigProblem } from '../../api/networks/network-attachment.js';
import { poolLimitMessage } from '../../api/networks/nad-rights.js';
import { BY_NAD_NAMESPACE } from '../../cluster/watch-specs.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { ineffectiveAddresses } from '../../addressing/pool/derived-pool.js';
import { addressSpaceRefusal } from '../../addressing/pool/address-space-rights.js';
import { type PoolChange, refuseLeaseLosses } from './leased-addresses.js';
import { ALLOWED, type ValidationRefusal, type ValidationResult, type ValidationView, refuse } from './review.js';
import { warnOfPool } from './pool-warnings.js';
import { type NadIpamConfig, type NadPool, describeDifference, readNadIpamConfig, isSameConfig } from './nad-pool.js';
import { compiledPool } from '../../addressing/directory/pool-state.js';
import { describeOverlap, findOverlaps } from '../pools/segment-overlap.js';

/** Limits the time of a review: comparing two large NADs takes milliseconds. */
const MAX_COMPARED_NADS = 50;
const MAX_WARNED_ADDRESSES = 4;

/** A NAD that is being created or changed. */
interface NadReview {
  readonly nad: ParsedNad;
  /** The NAD before the change, on UPDATE. */
  readonly oldNad?: ParsedNad | undefined;
}

/** True if the NAD delegates to Holdfast, even with an invalid config. Other NADs are not reviewed. */
export function delegatesToHoldfast({ delegation }: ParsedNad): boolean {
  // a config that is not JSON could be for any IPAM
  return (
    delegation.kind === 'holdfast' || (delegation.kind === 'invalid' && delegation.problem.field !== 'spec.config')
  );
}

/** Reviews a NAD that delegates to Holdfast, in short steps. Pure. */
export function* reviewNad({ nad, oldNad }: NadReview, view: ValidationView): Generator<undefined, ValidationResult> {
  if (!delegatesToHoldfast(nad)) return ALLOWED;
  const config = readNadIpamConfig(nad, view.rightsOf);
  const before = oldNad && readNadIpamConfig(oldNad, view.rightsOf);
  // labels or settings of the plugin changed: errors in the rest existed before
  if (before !== undefined && isSameConfig(before, config)) {
    if (config.kind !== 'pool') return ALLOWED;
    const overlaps = oldNad?.segment === nad.segment ? [] : yield* warnOfSegmentOverlap(config.requested, view);
    return { refusals: [], warnings: [...warnOfIneffectiveAddresses(nad, oldNad), ...overlaps] };
  }
  switch (config.kind) {
    case 'none':
      return ALLOWED;
    case 'invalid':
      return refuseProblems(config.problems);
    case 'pool': {
      const { refusals, warnings } = yield* reviewRights(config.requested, before, view);
      if (refusals.length > 0) return { refusals, warnings };
      const overlaps = yield* warnOfSegmentOverlap(config.requested, view, before);
      return { refusals, warnings: [...warnings, ...warnOfIneffectiveAddresses(nad, oldNad), ...overlaps] };
    }
  }
}

function refuseProblems(problems: readonly NetworkConfigProblem[]): ValidationResult {
  return refuse(
    ...problems.map(({ field, message }): ValidationRefusal => ({
      check: 'delegation',
      message: `${field} ${message}`,
    })),
  );
}

/** Refuses what exceeds the rights of the namespace. If the NAD requested it before, a warning says that it is not granted. */
function* reviewRights(
  requested: NadPool,
  before: NadIpamConfig | undefined,
  view: ValidationView,
): Generator<undefined, ValidationResult> {
  const knownPool = before?.kind === 'pool' ? before.requested : undefined;
  const space = yield* addressSpaceProblems(requested, view);
  const isSpaceKnown = knownPool !== undefined && isDeepStrictEqual(addressesKey(knownPool), addressesKey(requested));
  const knownProblems = [...(knownPool?.reduced ?? []), ...(isSpaceKnown ? space : [])];
  const [problems, tolerated] = [[...requested.reduced, ...space], [] as string[]];
  const refusals = problems.flatMap((problem): ValidationRefusal[] => {
    const message = `${problem.field} ${problem.message}`;
    if (!knownProblems.some((each) => isDeepStrictEqual(each, problem))) return [{ check: 'rights', message }];
    tolerated.push(message);
    return [];
  });
  if (refusals.length > 0) return refuse(...refusals);
  const result = yield* reviewNadPool(requested, before === undefined, view);
  return result.refusals.length > 0 ? result : { ...result, warnings: [...tolerated, ...result.warnings] };
}

function* addressSpaceProblems(
  requested: NadPool,
  { networks, rightsOf }: ValidationView,
): Generator<undefined, NetworkConfigProblem[]> {
  const { nad, pool, served } = requested;
  const namespace = nad.metadata.namespace ?? '';
  const isNamed = pool.spec.addressSpace !== undefined;
  const { isOwnershipEnforced } = rightsOf(namespace);
  const request = { pool: served, name: served.name, namespace, isNamed, isOwnershipEnforced };
  const message = yield* addressSpaceRefusal(request, networks.poolsIn(served.addressSpace));
  const field =
    isNamed && nad.delegation.kind === 'holdfast' ? `${nad.delegation.config.path}.addressSpace` : 'spec.config.name';
  return message === undefined ? [] : [{ field, message }];
}

function addressesKey({ pool: { spec } }: NadPool): unknown {
  return [addressSpaceOf({ spec }), spec.subnets, spec.namespaces];
}

/** @param isNew then no NAD is younger, even if another has the same creation time */
function* reviewNadPool(
  requested: NadPool,
  isNew: boolean,
  view: ValidationView,
): Generator<undefined, ValidationResult> {
  const others = otherPools(requested, view);
  const [oldest] = others;
  if (oldest !== undefined && (isNew || byAge(oldest.nad, requested.nad) < 0))
    return reviewYoungerNad(requested, oldest);
  return yield* reviewOldestNad(requested, others, view);
}

/** The pools that the oldest other NADs of the network request, oldest first. */
function otherPools({ nad, network }: NadPool, { networks, rightsOf }: ValidationView): NadPool[] {
  const found: NadPool[] = [];
  for (const other of networks.nadsOf(nad.metadata.namespace ?? '', network)) {
    if (other.metadata.name === nad.metadata.name) continue;
    const config = readNadIpamConfig(other, rightsOf);
    if (config.kind === 'pool') found.push(config.requested);
    if (found.length === MAX_COMPARED_NADS) break;
  }
  return found;
}

/** An older NAD defines the pool, so this one must agree with it. */
function reviewYoungerNad(requested: NadPool, oldest: NadPool): ValidationResult {
  const difference = describeDifference(oldest, requested);
  if (difference === undefined) return ALLOWED;
  const message =
    `NetworkAttachmentDefinition ${objectKey(oldest.nad)} is older and defines the pool of network "${requested.network}", ` +
    `and this one disagrees: ${difference}. Make both equal, or change the network's name in spec.config`;
  return refuse({ check: 'disagreement', message });
}

/** This NAD defines the pool. */
function* reviewOldestNad(
  requested: NadPool,
  others: readonly NadPool[],
  view: ValidationView,
): Generator<undefined, ValidationResult> {
  const { pool, served: after } = requested;
  const { name } = pool.metadata;
  const oldPool = view.pools.get(name);
  const reader = requested.nad.metadata.namespace ?? '';
  const { maxPools } = view.rightsOf(reader);
  if (oldPool === undefined && view.pools.byIndex(BY_NAD_NAMESPACE, reader).length >= maxPools)
    return refuse({ check: 'limit', message: poolLimitMessage(reader, maxPools) });
  const change = { pool, after, oldPool, before: oldPool && view.networks.pool(name), reader };
  const losses = refuseLeaseLosses(change, view);
  if (losses.length > 0) {
    return refuse(
      ...losses.map(({ check, message }) => ({ check, message: `AddressPool ${name} is derived from it: ${message}` })),
    );
  }
  const poolWarnings = yield* warnOfPool(change, view);
  return {
    refusals: [],
    warnings: [
      ...warnOfMove(change),
      ...warnOfDisagreement(requested, others),
      ...warnOfAdminPool(requested, view),
      ...poolWarnings.map((warning) => `AddressPool ${name}: ${warning}`),
    ],
  };
}

/** whereabouts ignores them, too, but they may be typing errors. Those of the old NAD were named before. */
function warnOfIneffectiveAddresses({ delegation }: ParsedNad, oldNad: ParsedNad | undefined): string[] {
  const found = delegation.kind === 'holdfast' ? ineffectiveAddresses(delegation.config) : [];
  const before = oldNad?.delegation.kind === 'holdfast' ? ineffectiveAddresses(oldNad.delegation.config) : [];
  return found
    .filter((what) => !before.includes(what))
    .slice(0, MAX_WARNED_ADDRESSES)
    .map((what) => `${what} is in no range, so it has no effect: correct it, or remove it`);
}

/** Without leases the pool may move, but it allocates no address meanwhile. */
function warnOfMove({ pool, after, oldPool }: PoolChange): string[] {
  if (oldPool === undefined || addressSpaceOf(oldPool) === after.addressSpace) return [];
  return [
    `AddressPool ${pool.metadata.name} moves from address space "${addressSpaceOf(oldPool)}" to "${after.addressSpace}": it allocates no addresses for about 3 minutes`,
  ];
}

function warnOfDisagreement(requested: NadPool, others: readonly NadPool[]): string[] {
  const behind = others.filter((other) => describeDifference(requested, other) !== undefined);
  const [first] = behind;
  if (first === undefined) return [];
  const which = behind.length === 1 ? objectKey(first.nad) : `${objectKey(first.nad)} and ${behind.length - 1} more`;
  return [
    `this NetworkAttachmentDefinition is the oldest of network "${requested.network}" and defines its pool. ${which} now disagrees: change it as well`,
  ];
}

function warnOfAdminPool({ nad, network, pool }: NadPool, view: ValidationView): string[] {
  const namespace = nad.metadata.namespace ?? '';
  const serving = adminPoolFor(nad, view.pools.list());
  if (serving === undefined) return [];
  return [
    `AddressPool ${serving.metadata.name} serves network "${network}" for namespace ${namespace} instead of ${pool.metadata.name}: the subnets in this NAD have no effect`,
  ];
}

/** Limits the time of a review. Overlaps with more pools appear in the pool's condition a moment later. */
const MAX_COMPARED_POOLS = 256;

/**
 * Warns of other networks on the same layer-2 segment that lease the same addresses. They are allowed, because each tenant may think that the other one is wrong.
 * @param before the NAD before the change: leases of a network that it leaves stay on the segment until they end
 */
function* warnOfSegmentOverlap(
  { nad, served }: NadPool,
  { networks, leases }: ValidationView,
  before?: NadIpamConfig,
): Generator<undefined, string[]> {
  const { segment, metadata } = nad;
  if (segment === undefined) return [];
  const others = [...(networks.poolsBySegment.get(segment) ?? [])].slice(0, MAX_COMPARED_POOLS).flatMap((evaluated) => {
    const pool = compiledPool(evaluated);
    return pool === undefined || pool.name === served.name ? [] : [{ pool, nadNamespace: evaluated.nadNamespace }];
  });
  const { namespace } = metadata;
  if (before?.kind === 'pool' && before.requested.nad.segment === segment) {
    const { served: pool } = before.requested;
    const [lease] = pool.name === served.name ? [] : leases.ofPool(pool.name);
    if (lease !== undefined) others.push({ pool, nadNamespace: namespace });
  }
  const found = yield* findOverlaps([...others, { pool: served, nadNamespace: namespace }]);
  const overlap = found.get(served.name);
  return overlap === undefined ? [] : [describeOverlap(segment, overlap, namespace, false)];
}
