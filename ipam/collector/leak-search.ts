import { setImmediate as nextTurn } from 'node:timers/promises';
import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { asRecord, recordsIn, asString } from '../../api/json.js';
import type { KubeObject } from '../../api/meta.js';
import type { Pod } from '../../api/pod.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { Lister } from '../../kube/cache.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isConflict, isNotFound, messageOf } from '../../kube/errors.js';
import { ADDRESS_LEASES, ADDRESS_POOLS } from '../../kube/resources.js';
import type { PersistentIPsGate } from '../../cluster/persistent-ips-gate.js';
import type { PoolDirectory } from '../directory/directory.js';
import { writeLease } from '../../cluster/lease-writes.js';
import { listClaimPods } from '../claims/live-reads.js';
import { type ClaimPod, type ClaimPods, reportedAddressesOf } from '../claims/claim-pods.js';
import { type Address, parseAddressOrPrefix, sameAddress } from '../core/address.js';
import { type LeaseRecord, readLease, releaseLease, stateOf } from '../core/lease.js';
import { readLiveOwner } from './live-owner.js';
import { forEachParallel } from '../../kube/for-each-parallel.js';
import type { CollectorReport } from './report.js';
import { surplusProof } from './surplus.js';
import { type OwnerLookup, type LeakCandidate, dueCandidates, findLeakCandidates } from './leak-candidates.js';
import type { KeepReason } from './keep-reason.js';

/** A cache, and whether it can be relied on; an Informer is one. */
export interface FollowedCache<S extends KubeObject> {
  readonly cache: Pick<Lister<S>, 'get'>;
  readonly hasSynced: boolean;
  /** In the clock's ms. */
  readonly lastProgress: number;
}

/** What of the lease book is read and written; {@link LeaseBook} is one. */
export interface LeaseLedger {
  all(): Iterable<LeaseRecord>;
  ofOwner(uid: string): readonly LeaseRecord[];
  recordWrite(lease: AddressLease): void;
}

export interface LeakSearchDeps {
  readonly book: LeaseLedger;
  readonly client: Pick<Client, 'get' | 'listAs' | 'create' | 'patch' | 'delete'>;
  readonly claims: FollowedCache<IPAMClaim>;
  readonly pods: FollowedCache<ClaimPod>;
  readonly users: Pick<ClaimPods, 'podsOf'>;
  readonly directory: Pick<PoolDirectory, 'stateOf'>;
  readonly clock: Pick<Clock, 'now' | 'wall'>;
  readonly report: CollectorReport;
  /** Closed: nothing is freed. */
  readonly gate: PersistentIPsGate;
  readonly collectAfterMs: number;
}

/** The server sends a sign of life about once a minute: a cache that heard nothing for longer is on its own. */
const MAX_SILENCE_MS = 150_000;
/** Each costs a request or three; what is left over is seen again in the next round. */
const MAX_CHECKS_PER_ROUND = 500;
const MAX_PARALLEL = 8;
/** Leases that are looked at in one go: a few milliseconds. */
const BATCH_SIZE = 2_000;

/** Looks for leaked leases again and again. Caches say who is suspect, the API server who is guilty, and the write whether it still is so. */
export class LeakSearch {
  readonly #deps: LeakSearchDeps;
  readonly #owners: OwnerLookup;
  #suspects = new Map<string, LeakCandidate>();

  constructor(deps: LeakSearchDeps) {
    this.#deps = deps;
    const { claims, pods, users, book, directory } = deps;
    this.#owners = {
      claim: (key) => claims.cache.get(key),
      pod: (key) => pods.cache.get(key),
      leasesOf: (uid) => book.ofOwner(uid),
      hasPool: (name) => directory.stateOf(name) !== undefined,
      reportedAddressesOf: (claim) => reportsOf(users.podsOf(claim)),
    };
  }

  /** One look. What fails is reported, and looked at anew. */
  async round(signal?: AbortSignal): Promise<void> {
    const { clock, book, report, collectAfterMs } = this.#deps;
    const now = clock.now();
    if (!this.#canSee(now)) {
      // two looks count only where nobody was blind between them
      this.forget();
      return;
    }
    const suspects = await this.#look([...book.all()], now);
    if (signal?.aborted) return;
    this.#suspects = suspects;
    report.suspected(suspects.size);
    const cases = dueCandidates(suspects, now, { afterMs: collectAfterMs, cases: MAX_CHECKS_PER_ROUND });
    await forEachParallel(cases, MAX_PARALLEL, (suspect) => this.#decide(suspect, signal), signal);
  }

  /** In slices: others wait for this turn to end. A lease that changes meanwhile is no longer what it is charged as, says its resourceVersion. */
  async #look(leases: readonly LeaseRecord[], now: number): Promise<Map<string, LeakCandidate>> {
    const suspects = new Map<string, LeakCandidate>();
    for (let from = 0; from < leases.length; from += BATCH_SIZE) {
      if (from > 0) await nextTurn();
      const slice = leases.slice(from, from + BATCH_SIZE);
      for (const suspect of findLeakCandidates(this.#suspects, { now, leases: slice, owners: this.#owners })) {
        suspects.set(suspect.lease.metadata.uid, suspect);
      }
    }
    return suspects;
  }

  /** The next look is the first one. */
  forget(): void {
    this.#suspects.clear();
  }

  #canSee(now: number): boolean {
    const { claims, pods } = this.#deps;
    return [claims, pods].every(({ hasSynced, lastProgress }) => hasSynced && now - lastProgress <= MAX_SILENCE_MS);
  }

  async #decide(suspect: LeakCandidate, signal: AbortSignal | undefined): Promise<void> {
    const { clock, client, book, report, gate } = this.#deps;
    const { lease } = suspect;
    // whatever comes of it: the next look is the first one again
    this.#suspects.delete(lease.metadata.uid);
    try {
      const verdict = await this.#judge(suspect, signal);
      // also while the API server was asked
      if (signal?.aborted || !gate.isOpen()) return;
      if (verdict.kind !== 'guilty') {
        report.spared(suspect, verdict);
        return;
      }
      const written = await writeLease(client, releaseLease(lease, clock.wall()), callOf(signal));
      if (written !== undefined) book.recordWrite(written);
      report.collected(suspect, verdict.claim);
    } catch (error) {
      if (signal?.aborted) return;
      if (isConflict(error) || isNotFound(error)) report.spared(suspect, { kind: 'changed' });
      else report.spared(suspect, { kind: 'unknown', why: messageOf(error) });
    }
  }

  async #judge(suspect: LeakCandidate, signal: AbortSignal | undefined): Promise<KeepReason | LeakProof> {
    const { lease, charge } = suspect;
    const { client } = this.#deps;
    if (lease.owner === undefined) return { kind: 'changed' };
    const live = await readLiveOwner(client, lease.owner, callOf(signal));
    if (live.kind === 'unknown') return live;
    if (charge === 'orphan') return { kind: live.kind === 'gone' ? 'guilty' : 'alive' };
    if (live.kind === 'gone') return { kind: 'changed' };
    if (charge === 'no-pool') return this.#judgePoolless(lease, live.object, signal);
    const claim = live.object as IPAMClaim;
    return (await this.#isSurplus(lease, claim, signal)) ? { kind: 'guilty', claim } : { kind: 'alive' };
  }

  /** A pod that is starting may not report its addresses yet. */
  async #judgePoolless(lease: LeaseRecord, pod: Pod, signal: AbortSignal | undefined): Promise<KeepReason | LeakProof> {
    if (pod.status?.phase !== 'Running' || hasAddress(pod, lease.address)) return { kind: 'alive' };
    const pool = await findUnlessGone(this.#deps.client, ADDRESS_POOLS, { name: lease.pool }, callOf(signal));
    return { kind: pool === undefined ? 'guilty' : 'changed' };
  }

  async #isSurplus(lease: LeaseRecord, claim: IPAMClaim, signal: AbortSignal | undefined): Promise<boolean> {
    const { client, book } = this.#deps;
    const { uid = '' } = claim.metadata;
    const users = await listClaimPods(claim, client, callOf(signal));
    const voucher = surplusProof(lease, { claim, claimLeases: book.ofOwner(uid), reportedAddresses: reportsOf(users) });
    if (voucher === undefined) return false;
    // somebody may have deleted it by hand; then this one is all that the claim has
    const current = readLease(await client.get(ADDRESS_LEASES, { name: voucher.metadata.name }, callOf(signal)));
    return stateOf(current) === 'held' && current.owner?.uid === uid;
  }
}

/** The API server proves the charge. `claim`: the living owner of a surplus lease. */
interface LeakProof {
  kind: 'guilty';
  claim?: IPAMClaim;
}

function reportsOf(pods: readonly ClaimPod[]): (readonly string[])[] {
  return pods.map(({ addresses = [] }) => addresses);
}

/** What cannot be read could be the address. */
function hasAddress(pod: Pod, address: Address): boolean {
  const { podIP, podIPs } = asRecord(pod.status);
  const own = [asString(podIP), ...recordsIn(podIPs).map(({ ip }) => asString(ip))].filter((text) => text !== '');
  return [...reportedAddressesOf(pod), ...own].some((text) => {
    try {
      return sameAddress(parseAddressOrPrefix(text).address, address);
    } catch {
      return true;
    }
  });
}

function callOf(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
