import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { KubeObject } from '../../api/meta.js';
import type { Lister } from '../../kube/cache.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isConflict, isNotFound, messageOf } from '../../kube/errors.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { writeLease } from '../../process/lease-writes.js';
import { readUsers } from '../claims/live.js';
import type { ClaimPod, ClaimPods } from '../claims/pods.js';
import { type LeaseRecord, readLease, releaseLease, stateOf } from '../core/lease.js';
import { readLiveOwner } from './live-owner.js';
import { inParallel } from './parallel.js';
import type { CollectorReport } from './report.js';
import { voucherFor } from './surplus.js';
import { type Owners, type Suspect, examine } from './suspects.js';

/** A cache, and whether it can be relied on; an Informer is one. */
export interface Followed<S extends KubeObject> {
  readonly cache: Pick<Lister<S>, 'get'>;
  readonly hasSynced: boolean;
  /** In the clock's ms. */
  readonly lastProgress: number;
}

/** What of the lease book is read and written; {@link LeaseBook} is one. */
export interface LeaseLedger {
  all(): Iterable<LeaseRecord>;
  ofOwner(uid: string): readonly LeaseRecord[];
  wrote(lease: AddressLease): void;
}

export interface RoundDeps {
  readonly book: LeaseLedger;
  readonly client: Pick<Client, 'get' | 'listAs' | 'create' | 'patch' | 'delete'>;
  readonly claims: Followed<IPAMClaim>;
  readonly pods: Followed<ClaimPod>;
  readonly users: Pick<ClaimPods, 'usersOf'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly report: CollectorReport;
  readonly collectAfterMs: number;
}

/** The server sends a sign of life about once a minute: a cache that heard nothing for longer is on its own. */
const FRESH_MS = 150_000;
/** Each costs a request or three; what is left over is seen again in the next round. */
const CASES_A_ROUND = 500;
const WIDTH = 8;

/** Looks for leaked leases again and again. Caches say who is suspect, the API server who is guilty, and the write whether it still is so. */
export class LeakSearch {
  readonly #deps: RoundDeps;
  readonly #owners: Owners;
  #suspects = new Map<string, Suspect>();

  constructor(deps: RoundDeps) {
    this.#deps = deps;
    const { claims, pods, users, book } = deps;
    this.#owners = {
      claim: (key) => claims.cache.get(key),
      podUid: (key) => pods.cache.get(key)?.metadata.uid,
      leasesOf: (uid) => book.ofOwner(uid),
      reportsOf: (claim) => reportsOf(users.usersOf(claim)),
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
    const leases = [...book.all()];
    const limits = { afterMs: collectAfterMs, cases: CASES_A_ROUND };
    const { suspects, cases } = examine(this.#suspects, { now, leases, owners: this.#owners }, limits);
    this.#suspects = suspects;
    report.suspected(suspects.size);
    await inParallel(cases, WIDTH, (suspect) => this.#decide(suspect, signal), signal);
  }

  /** The next look is the first one. */
  forget(): void {
    this.#suspects.clear();
  }

  #canSee(now: number): boolean {
    const { claims, pods } = this.#deps;
    return [claims, pods].every(({ hasSynced, lastProgress }) => hasSynced && now - lastProgress <= FRESH_MS);
  }

  async #decide(suspect: Suspect, signal: AbortSignal | undefined): Promise<void> {
    const { clock, client, book, report } = this.#deps;
    const { lease } = suspect;
    // whatever comes of it: the next look is the first one again
    this.#suspects.delete(lease.metadata.uid);
    try {
      const why = await this.#innocence(suspect, signal);
      if (signal?.aborted) return;
      if (why !== undefined) {
        report.spared(suspect, why);
        return;
      }
      const written = await writeLease(client, releaseLease(lease, clock.now()), callOf(signal));
      if (written !== undefined) book.wrote(written);
      report.collected(suspect);
    } catch (error) {
      if (signal?.aborted) return;
      if (isConflict(error) || isNotFound(error)) report.spared(suspect, { kind: 'changed' });
      else report.spared(suspect, { kind: 'unknown', why: messageOf(error) });
    }
  }

  /** @returns undefined where the API server proves the charge */
  async #innocence(suspect: Suspect, signal: AbortSignal | undefined): Promise<Innocence | undefined> {
    const { lease, charge } = suspect;
    const { client } = this.#deps;
    if (lease.owner === undefined) return { kind: 'changed' };
    const live = await readLiveOwner(client, lease.owner, callOf(signal));
    if (live.kind === 'unknown') return live;
    if (charge === 'orphan') return live.kind === 'gone' ? undefined : { kind: 'alive' };
    if (live.kind === 'gone') return { kind: 'changed' };
    return (await this.#isSurplus(lease, live.object as IPAMClaim, signal)) ? undefined : { kind: 'alive' };
  }

  async #isSurplus(lease: LeaseRecord, claim: IPAMClaim, signal: AbortSignal | undefined): Promise<boolean> {
    const { client, book } = this.#deps;
    const { uid = '' } = claim.metadata;
    const users = await readUsers(claim, client, callOf(signal));
    const voucher = voucherFor(lease, { claim, siblings: book.ofOwner(uid), reports: reportsOf(users) });
    if (voucher === undefined) return false;
    // somebody may have deleted it by hand; then this one is all that the claim has
    const current = readLease(await client.get(ADDRESS_LEASES, { name: voucher.metadata.name }, callOf(signal)));
    return stateOf(current) === 'held' && current.owner?.uid === uid;
  }
}

/** Why a suspect keeps its address. */
export type Innocence = { kind: 'alive' } | { kind: 'changed' } | { kind: 'unknown'; why: string };

function reportsOf(pods: readonly ClaimPod[]): (readonly string[])[] {
  return pods.map(({ addresses = [] }) => addresses);
}

function callOf(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
