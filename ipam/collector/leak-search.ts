import type { IPAMClaim } from '../../api/ipam-claim.js';
import { asRecord, recordsIn, asString } from '../../api/json.js';
import type { KubeObject } from '../../api/meta.js';
import { type Pod, hasUid, readNetworkStatuses } from '../../api/pod.js';
import { findUnlessGone, isProofOfAbsence } from '../../kube/absence.js';
import type { Lister } from '../../kube/informers/cache.js';
import { MAX_SILENCE_MS } from '../../kube/informers/reflector.js';
import type { Client, CallOptions } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isConflict, isNotFound, messageOf } from '../../kube/errors.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS, PODS } from '../../kube/resources.js';
import type { PersistentIPsGate } from '../../cluster/persistent-ips-gate.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { type ClaimPod, type ClaimPods, listClaimPods } from '../claims/running/claim-pods.js';
import { reportedAddressesOf, reportedInterfacesOf, unpackInterfaces } from '../claims/running/reported-interfaces.js';
import { type Address, readAddress, sameAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, readLease, releaseLease, stateOf } from '../../addressing/lease/lease.js';
import { LeakCandidates } from '../../addressing/lease/leak-candidates.js';
import { releaseTime } from '../../addressing/lease/cooling-start.js';
import { forEachParallel, runInSlices } from '../../kube/run-in-slices.js';
import type { LeaseBook } from '../leases/lease-book.js';
import { ListedPods, type ListedPodsDeps } from './listed-pods.js';
import type { CollectorReport } from './report.js';
import {
  type KeepReason,
  type LeakKind,
  type LeakedLease,
  type OwnerLookup,
  leakKindOf,
  surplusProof,
} from './leak-kind.js';
import type { LeaseOwner } from '../../api/address-lease.js';
import type { Resource } from '../../kube/resource.js';

/** A cache, and whether it is up to date. An Informer is one. */
export interface FollowedCache<S extends KubeObject> {
  readonly cache: Pick<Lister<S>, 'get'>;
  readonly hasSynced: boolean;
  /** In the clock's milliseconds. */
  readonly lastProgress: number;
}

export interface LeakSearchDeps {
  readonly book: Pick<LeaseBook, 'all' | 'ofExactClaim' | 'recordWrite'>;
  readonly client: Pick<Client, 'get' | 'listAs' | 'create' | 'patch' | 'delete'>;
  readonly claims: FollowedCache<IPAMClaim>;
  /** The launchers. */
  readonly pods: FollowedCache<ClaimPod>;
  readonly nodes: ListedPodsDeps['nodes'];
  readonly agentNamespace: string;
  readonly users: Pick<ClaimPods, 'podsOf'>;
  readonly directory: Pick<PoolDirectory, 'stateOf'>;
  readonly clock: Pick<Clock, 'now' | 'wall'>;
  readonly report: CollectorReport;
  /** While it is closed, nothing is released. */
  readonly gate: PersistentIPsGate;
  readonly collectAfterMs: number;
}

/** Each check costs one to three requests. The rest is checked in the next round. */
const MAX_CHECKS_PER_ROUND = 500;
const MAX_PARALLEL = 8;

/** Searches for leaked leases. Caches and lists choose candidates, the API server proves a leak, and the write fails if the lease has changed since. */
export class LeakSearch {
  readonly #deps: LeakSearchDeps;
  readonly #candidates: LeakCandidates<LeakKind>;
  readonly #pods: ListedPods;

  constructor(deps: LeakSearchDeps) {
    this.#deps = deps;
    const { claims, users, book, directory, collectAfterMs: afterMs } = deps;
    const pods = new ListedPods(deps);
    this.#pods = pods;
    const owners: OwnerLookup = {
      claim: (key) => claims.cache.get(key),
      pod: (key, node) => pods.find(key, node),
      leasesOf: (claim) => book.ofExactClaim(claim),
      hasPool: (name) => directory.stateOf(name) !== undefined,
      reportedAddressesOf: (claim) => reportsOf(users.podsOf(claim)),
    };
    const leakOf = (lease: LeaseRecord) => leakKindOf(lease, owners);
    this.#candidates = new LeakCandidates({ leakOf, afterMs, maxChecks: MAX_CHECKS_PER_ROUND });
  }

  /** Searches once. Failed checks are reported, and the lease is a candidate again later. */
  async round(signal?: AbortSignal): Promise<void> {
    const { book, clock, report } = this.#deps;
    const now = clock.now();
    if (!this.#areCachesCurrent(now)) {
      // two observations count only if the caches were up to date in between
      this.forget();
      return;
    }
    const leases = [...book.all()];
    await this.#pods.round(leases, this.#suspectedNodes(), signal);
    const due = await runInSlices(this.#candidates.observe(leases, now), clock, signal);
    if (due === undefined) return;
    report.candidates(this.#candidates.known.size);
    await forEachParallel(due, MAX_PARALLEL, (candidate) => this.#decide(candidate, signal), signal);
  }

  /** Drops all candidates: the next observation is the first one. Until then their number is not known. */
  forget(): void {
    this.#candidates.known.clear();
    this.#deps.report.clear();
  }

  /** The nodes of pods that were missing when their node was last listed. */
  #suspectedNodes(): ReadonlySet<string> {
    const orphans = [...this.#candidates.known.values()].filter(({ leak }) => leak === 'orphan');
    return new Set(orphans.flatMap(({ lease }) => lease.node ?? []));
  }

  #areCachesCurrent(now: number): boolean {
    const { claims, pods } = this.#deps;
    return [claims, pods].every(({ hasSynced, lastProgress }) => hasSynced && now - lastProgress <= MAX_SILENCE_MS);
  }

  async #decide(candidate: LeakedLease, signal: AbortSignal | undefined): Promise<void> {
    const { clock, client, book, report, gate } = this.#deps;
    const { lease } = candidate;
    // the next observation is the first one again, whichever way this check ends
    this.#candidates.known.delete(lease.metadata.uid);
    try {
      const result = await this.#check(candidate, signal);
      // the gate may have closed during the requests
      if (signal?.aborted || !gate.isOpen()) return;
      if (result.kind !== 'leaked') {
        report.kept(candidate, result);
        return;
      }
      const written = await writeLease(client, releaseLease(lease, releaseTime(clock)), { signal });
      if (written !== undefined) book.recordWrite(written);
      report.collected(candidate, result.claim);
    } catch (error) {
      if (signal?.aborted) return;
      if (isConflict(error) || isNotFound(error)) report.kept(candidate, { kind: 'changed' });
      else report.kept(candidate, { kind: 'unknown', why: messageOf(error) });
    }
  }

  async #check(candidate: LeakedLease, signal: AbortSignal | undefined): Promise<KeepReason | LeakProof> {
    const { lease, leak } = candidate;
    const { client } = this.#deps;
    if (lease.owner === undefined) return { kind: 'changed' };
    const live = await readLiveOwner(client, lease.owner, { signal });
    if (live.kind === 'unknown') return live;
    if (leak === 'orphan') return { kind: live.kind === 'gone' ? 'leaked' : 'alive' };
    if (leak === 'no-pool') return this.#checkPoolless(lease, live, signal);
    if (live.kind === 'gone') return { kind: 'changed' };
    const claim = live.object as IPAMClaim;
    return (await this.#isSurplus(lease, claim, signal)) ? { kind: 'leaked', claim } : { kind: 'alive' };
  }

  /** Checks a lease whose pool is gone. A pod that is starting may not report its addresses yet. */
  async #checkPoolless(
    lease: LeaseRecord,
    owner: LiveOwner,
    signal: AbortSignal | undefined,
  ): Promise<KeepReason | LeakProof> {
    if (owner.kind === 'alive' && mayUse(owner.object, lease.address)) return { kind: 'alive' };
    const pool = await findUnlessGone(this.#deps.client, ADDRESS_POOLS, { name: lease.pool }, { signal });
    return { kind: pool === undefined ? 'leaked' : 'changed' };
  }

  async #isSurplus(lease: LeaseRecord, claim: IPAMClaim, signal: AbortSignal | undefined): Promise<boolean> {
    const { client, book } = this.#deps;
    const { uid = '' } = claim.metadata;
    const users = await listClaimPods(claim, client, { signal });
    const proof = surplusProof(lease, {
      claim,
      claimLeases: book.ofExactClaim(claim),
      reportedAddresses: reportsOf(users),
    });
    if (proof === undefined) return false;
    // if the other lease was deleted by hand, this one is the claim's only lease
    const current = readLease(await client.get(ADDRESS_LEASES, { name: proof.metadata.name }, { signal }));
    return stateOf(current) === 'held' && current.owner?.uid === uid;
  }
}

/** The API server has proven the leak. `claim`: the existing owner of a surplus lease. */
interface LeakProof {
  kind: 'leaked';
  claim?: IPAMClaim;
}

function reportsOf(pods: readonly ClaimPod[]): (readonly string[])[] {
  return pods.map(({ interfaces }) => reportedAddressesOf(unpackInterfaces(interfaces)));
}

/** True if the pod does not run, or has the address, or if its report, or an address in it, cannot be read. */
function mayUse(pod: Pod, address: Address): boolean {
  if (pod.status?.phase !== 'Running' || readNetworkStatuses(pod) === undefined) return true;
  const { podIP, podIPs } = asRecord(pod.status);
  const own = [asString(podIP), ...recordsIn(podIPs).map(({ ip }) => asString(ip))].filter((text) => text !== '');
  return [...reportedAddressesOf(reportedInterfacesOf(pod)), ...own].some((text) => {
    const reported = readAddress(text);
    return reported === undefined || sameAddress(reported, address);
  });
}

/** The state of an owner according to the API server. `unknown` proves nothing. */
type LiveOwner = { kind: 'gone' } | { kind: 'alive'; object: KubeObject } | { kind: 'unknown'; why: string };

const RESOURCES: Readonly<Record<LeaseOwner['kind'], Resource>> = { IPAMClaim: IPAM_CLAIMS, Pod: PODS };

/**
 * Asks the API server, bypassing all caches, whether an owner exists. It is gone if the server does not find it, or finds another object
 * of its name, because UIDs are never reused. A static pod exists while a mirror pod with its UID does. Errors and unserved kinds prove
 * nothing.
 */
export async function readLiveOwner(
  client: Pick<Client, 'get'>,
  owner: LeaseOwner,
  call: CallOptions = {},
): Promise<LiveOwner> {
  const resource = RESOURCES[owner.kind];
  try {
    const object: KubeObject = await client.get(resource, { namespace: owner.namespace, name: owner.name }, call);
    const { uid } = object.metadata;
    if (!uid) return { kind: 'unknown', why: 'the answer of the API server has no UID' };
    const isIt = owner.kind === 'Pod' ? hasUid(object, owner.uid) : uid === owner.uid;
    return isIt ? { kind: 'alive', object } : { kind: 'gone' };
  } catch (error) {
    if (isProofOfAbsence(error, resource, owner.name)) return { kind: 'gone' };
    return { kind: 'unknown', why: messageOf(error) };
  }
}
