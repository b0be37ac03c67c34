import type { IPAMClaim } from '../../api/ipam-claim.js';
import { byAge, splitKey } from '../../api/meta.js';
import { type LeaseRecord, stateOf } from '../core/lease.js';
import type { Pool } from '../core/pool.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { PoolDirectory } from '../directory/directory.js';
import type { Resolution } from '../directory/resolution.js';
import type { ClaimPod, ClaimPods } from './claim-pods.js';
import type { LauncherVmis } from './vmi-owners.js';

/** One claim and all that its addresses depend on. */
export interface ClaimObservation {
  claim: IPAMClaim;
  /** The leases that it has, the oldest first. */
  held: readonly LeaseRecord[];
  resolution: Resolution;
  /** Those that serve it, or that its leases are of. */
  pools: readonly Pool[];
  /** The pods that use it, or may. */
  pods: readonly ClaimPod[];
  /** Whether the counts of a full pool may be written again. Absent: they may not. */
  canUpdateCounts?: () => boolean;
  /** The VMIs that these name. */
  launcherVmis: LauncherVmis;
}

export interface ClaimViews {
  book: Pick<LeaseBook, 'ofOwner' | 'ofClaim'>;
  directory: Pick<PoolDirectory, 'resolve' | 'pool'>;
  pods: Pick<ClaimPods, 'usersOf'>;
}

export function observe(
  claim: IPAMClaim,
  { book, directory, pods }: ClaimViews,
): Omit<ClaimObservation, 'launcherVmis'> {
  const { uid = '' } = claim.metadata;
  const held = book.ofOwner(uid).filter((lease) => stateOf(lease) === 'held');
  const resolution = directory.resolve(claim);
  const names = new Set(held.map(({ pool }) => pool));
  const pools = [
    ...(resolution.kind === 'served' ? [resolution.pool] : []),
    ...[...names].flatMap((name) => directory.pool(name) ?? []),
  ];
  return { claim, held: [...held].sort(byAge), resolution, pools, pods: pods.usersOf(claim) };
}

/** The leases of claims that had this name before: of every UID but that of the claim that has it now. */
export function leasesOfEarlierClaims(
  key: string,
  claim: IPAMClaim | undefined,
  { book }: Pick<ClaimViews, 'book'>,
): LeaseRecord[] {
  const { namespace, name } = splitKey(key);
  return book
    .ofClaim(namespace, name)
    .filter((lease) => stateOf(lease) === 'held' && lease.owner?.uid !== claim?.metadata.uid);
}
