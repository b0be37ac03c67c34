import type { IPAMClaim } from '../../api/ipam-claim.js';
import { byAge, splitKey } from '../../api/meta.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import type { Resolution } from '../../addressing/directory/resolution.js';
import type { ClaimPod, ClaimPods } from './claim-pods.js';
import { type RunningAddresses, runningAddressesOf } from './running-addresses.js';
import type { LauncherVmis } from './vmi-owners.js';
import type { Family } from '../../addressing/address/address.js';
import type { ProbingStop } from '../leases/probing-stop.js';

/** A claim and everything that decides which addresses it gets. */
export interface ClaimObservation {
  claim: IPAMClaim;
  /** Held leases of the claim, oldest first. */
  held: readonly LeaseRecord[];
  resolution: Resolution;
  /** The pool that serves the claim, and the pools of its leases. */
  pools: readonly Pool[];
  /** Pods that use the claim or may use it. */
  pods: readonly ClaimPod[];
  /** Whether the status may show new counts of a full pool now. Default: no. */
  canUpdateCounts?: () => boolean;
  /** What is known of the VMIs of these pods. */
  launcherVmis: LauncherVmis;
  running: RunningAddresses;
  /** Absent if the pool does not probe. */
  probing?: ProbingView | undefined;
}

/** What is known about probes besides the leases of the claim. */
export interface ProbingView {
  /** In ms of the clock. */
  now: number;
  /** Why the pool's addresses are not probed. */
  stop?: ProbingStop | undefined;
  /** When this process first saw that the probe of the lease was requested, in ms of the clock. */
  requestedAt: (lease: LeaseRecord) => number;
  /** How many addresses of the family that the claim does not request were quarantined for it, one after the other. */
  quarantinedInARow: (family: Family) => number;
}

export interface ClaimViews {
  book: Pick<LeaseBook, 'ofOwner' | 'ofClaim'>;
  directory: Pick<PoolDirectory, 'resolve' | 'pool'>;
  pods: Pick<ClaimPods, 'podsOf'>;
}

export function observe(
  claim: IPAMClaim,
  { book, directory, pods }: ClaimViews,
): Omit<ClaimObservation, 'launcherVmis' | 'running'> {
  const { uid = '' } = claim.metadata;
  const held = book.ofOwner(uid).filter((lease) => stateOf(lease) === 'held');
  const resolution = directory.resolve(claim);
  const names = new Set(held.map(({ pool }) => pool));
  const pools = [
    ...(resolution.kind === 'served' ? [resolution.pool] : []),
    ...[...names].flatMap((name) => directory.pool(name) ?? []),
  ];
  return { claim, held: [...held].sort(byAge), resolution, pools, pods: pods.podsOf(claim) };
}

/** Returns the addresses with which the claim's VM runs without it; none while no pool serves the claim. */
export function observeRunning(
  { claim, held, pods, launcherVmis, resolution }: Omit<ClaimObservation, 'running'>,
  { book }: Pick<ClaimViews, 'book'>,
): RunningAddresses {
  if (resolution.kind !== 'served') return { kind: 'none' };
  const leasesOf = (uid: string) => book.ofOwner(uid);
  return runningAddressesOf({ claim, held, pods, launcherVmis, pool: resolution.pool, leasesOf });
}

/** Held leases of earlier claims with this name, that is, with another UID than the current claim. */
export function leasesOfEarlierClaims(
  key: string,
  claim: IPAMClaim | undefined,
  { book }: Pick<ClaimViews, 'book'>,
): LeaseRecord[] {
  const { namespace, name } = splitKey(key);
  const uid = claim?.metadata.uid;
  return book.ofClaim(namespace, name).filter((lease) => stateOf(lease) === 'held' && lease.owner?.uid !== uid);
}
