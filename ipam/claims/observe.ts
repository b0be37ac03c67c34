import type { IPAMClaim } from '../../api/ipam-claim.js';
import { byAge, splitKey } from '../../api/meta.js';
import type { Clock } from '../../kube/clock.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import type { Resolution } from '../../addressing/directory/resolution.js';
import type { ClaimPod, ClaimPods } from './running/claim-pods.js';
import { type RunningAddresses, runningAddressesOf } from './running/running-addresses.js';
import { resolveClaim } from './shown/claim-resolution.js';
import type { ClaimSyncState } from './sync-state.js';
import type { LauncherVmis, VmiOwners } from './running/vmi-owners.js';
import type { ClaimWaitList } from './wait-list.js';
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
  /** Returns why the pool's addresses are not probed. A lease that may be quarantined next does not count. */
  stop: (next?: LeaseRecord) => ProbingStop | undefined;
  /** When this process first saw that the probe of the lease was requested, in ms of the clock. */
  requestedAt: (lease: LeaseRecord) => number;
  /** How many addresses of the family that the claim does not request were quarantined for it, one after the other. */
  quarantinedInARow: (family: Family) => number;
}

/** What observations read. */
interface ClaimViews {
  book: Pick<LeaseBook, 'ofPod' | 'ofExactClaim' | 'ofClaim'>;
  directory: Pick<PoolDirectory, 'resolve' | 'pool'>;
  pods: Pick<ClaimPods, 'podsOf'>;
  waitList: Pick<ClaimWaitList, 'canUpdateCounts'>;
  clock: Pick<Clock, 'now'>;
}

/** What a sync has shown so far, and what earlier syncs remember. */
export interface ObserveContext extends ClaimViews {
  key: string;
  state: Pick<ClaimSyncState, 'claim' | 'livePods' | 'hiddenOwner'>;
  gracePeriods: PoolGracePeriods;
  vmis: Pick<VmiOwners, 'createdByKubeVirt' | 'verify'>;
  probes: {
    viewOf(observed: Pick<ClaimObservation, 'claim' | 'held' | 'resolution'>): ProbingView | undefined;
    forget(key: string): void;
  };
}

/** @returns undefined if the claim is gone */
export function observeClaim(context: ObserveContext): ClaimObservation | undefined {
  const { key, state, book, directory, pods: claimPods, gracePeriods, vmis, probes, waitList, clock } = context;
  const { claim, livePods, hiddenOwner } = state;
  if (claim === undefined) {
    probes.forget(key);
    gracePeriods.forget(key);
    return undefined;
  }
  const held = book.ofExactClaim(claim).filter((lease) => stateOf(lease) === 'held');
  const resolution = gracePeriods.applyTo(key, resolveClaim(claim, { directory, book }), clock.now());
  const names = new Set(held.map(({ pool }) => pool));
  const pools = [
    ...(resolution.kind === 'served' ? [resolution.pool] : []),
    ...[...names].flatMap((name) => directory.pool(name) ?? []),
  ];
  const hidden = hiddenOwner === undefined ? [] : [hiddenOwner];
  const byUid = new Map([...hidden, ...claimPods.podsOf(claim), ...livePods].map((pod) => [pod.metadata.uid, pod]));
  const pods = vmis.createdByKubeVirt([...byUid.values()]);
  const observed = {
    ...{ claim, held: [...held].sort(byAge), resolution, pools, pods },
    launcherVmis: vmis.verify(pods, claim),
    canUpdateCounts: () => waitList.canUpdateCounts(key, clock.now()),
  };
  return { ...observed, probing: probes.viewOf(observed), running: observeRunning(observed, book) };
}

/** Returns the addresses with which the claim's VM runs without it; none while no pool serves the claim. */
function observeRunning(
  { claim, held, pods, launcherVmis, resolution }: Omit<ClaimObservation, 'running'>,
  book: ClaimViews['book'],
): RunningAddresses {
  if (resolution.kind !== 'served') return { kind: 'none' };
  const leasesOf = (uid: string) => book.ofPod(uid);
  return runningAddressesOf({ claim, held, pods, launcherVmis, pool: resolution.pool, leasesOf });
}

/** Held leases of earlier claims with this name, that is, with another UID than the current claim. */
export function leasesOfEarlierClaims(
  key: string,
  claim: IPAMClaim | undefined,
  book: Pick<LeaseBook, 'ofClaim'>,
): LeaseRecord[] {
  const { namespace, name } = splitKey(key);
  const uid = claim?.metadata.uid;
  return book.ofClaim(namespace, name).filter((lease) => stateOf(lease) === 'held' && lease.owner?.uid !== uid);
}

/** Longer than it takes to create the pool that a NAD describes. */
const GRACE_PERIOD_MS = 10_000;

/** Grace periods for pools that do not exist yet: NAD and VM are often created together, so a missing pool is not reported at once. */
export class PoolGracePeriods {
  /** By claim key: when the claim was first seen waiting, in ms. */
  readonly #since = new Map<string, number>();

  /** @returns the resolution, marked as uncertain during the grace period */
  applyTo(key: string, resolution: Resolution, now: number): Resolution {
    if (resolution.kind !== 'unserved' || resolution.isPoolPending !== true) {
      this.#since.delete(key);
      return resolution;
    }
    if (!this.#since.has(key)) this.#since.set(key, now);
    return this.remainingMs(key, now) > 0 ? { ...resolution, isUncertain: true } : resolution;
  }

  /** @returns the ms left of the grace period; 0 if the claim waits for no pool or has waited long enough */
  remainingMs(key: string, now: number): number {
    const since = this.#since.get(key);
    return since === undefined ? 0 : Math.max(0, since + GRACE_PERIOD_MS - now);
  }

  forget(key: string): void {
    this.#since.delete(key);
  }
}
