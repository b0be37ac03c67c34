import { type IPAMClaim, claimMacOf } from '../../api/ipam-claim.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { EventRecorder } from '../../kube/events.js';
import type { Logger } from '../../kube/log.js';
import type { SyncResult } from '../../kube/controller-loop.js';
import type { PersistentIPsGate } from '../../cluster/persistent-ips-gate.js';
import type { LeaseClient } from '../../cluster/lease-writes.js';
import type { Address, Family } from '../core/address.js';
import { leaseTimesOf } from '../core/lease-times.js';
import type { AllocationRefusal } from '../core/allocator.js';
import { leaseOwnerOf } from '../core/lease-owner.js';
import type { LeaseRecord } from '../core/lease.js';
import type { Pool } from '../core/pool.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { BlockReconciler } from '../blocks/block-reconciler.js';
import { recordMac, releaseAll, allocateAll, isPoolExhausted, writeStatus } from './apply.js';
import type { ClaimMetrics } from './metrics.js';
import { readClaim, listClaimPods } from './live-reads.js';
import { type ClaimObservation, type ClaimViews, observe, leasesOfEarlierClaims } from './observe.js';
import { pick } from './pick.js';
import { type Findings, plan, planEarlierClaims } from './plan.js';
import { vmiRecheckDelayMs } from './owner-pod.js';
import { PoolGracePeriods } from './pool-grace-period.js';
import type { ClaimPod } from './claim-pods.js';
import type { RestoreHolds } from './restore-holds.js';
import { recordClaimEvents } from './claim-events.js';
import { AddressQuarantine } from './address-quarantine.js';
import type { ClaimStep } from './step.js';
import type { ClaimWaitList } from './wait-list.js';
import { VmiOwners, type VmiOwnersDependencies } from './vmi-owners.js';
import { WrittenClaims } from './written-claims.js';

export interface ClaimSyncDependencies extends Pick<ClaimViews, 'directory' | 'pods'>, VmiOwnersDependencies {
  /** By key. */
  claims: { get(key: string): IPAMClaim | undefined };
  book: ClaimViews['book'] & Pick<LeaseBook, 'recordWrite' | 'forget' | 'hold' | 'unhold' | 'view'>;
  client: LeaseClient & Pick<Client, 'get' | 'listAs'>;
  waitList: ClaimWaitList;
  restoreHolds: Pick<RestoreHolds, 'holdAgainst' | 'onSynced'>;
  /** Absent where nodes are lent none. */
  blocks?: Pick<BlockReconciler, 'press'>;
  /** Closed: nothing is allocated, nothing freed, no status written. */
  gate: PersistentIPsGate;
  /** How many addresses of a pool are held for VMs that do not run; for messages. */
  heldByStopped: (pool: string, family: Family) => number;
  /** How long agents may answer from caches: nobody gets an address sooner than twice that after its release. */
  maxStalenessMs: number;
  /** Addresses are kept for their MAC addresses: the gate StickyMAC. */
  stickyMAC: boolean;
  clock: Pick<Clock, 'now' | 'wall'>;
  events: Pick<EventRecorder, 'event'>;
  metrics: ClaimMetrics;
  log: Logger;
}

/** More than any way to a claim's rest has, with a few addresses lost to others on it. */
const MAX_STEPS = 24;
const MIN_RETRY_MS = 50;

/** Brings one claim, a `namespace/name`, to its addresses, and frees those of claims of that name that are gone. */
export function createClaimSync(
  dependencies: ClaimSyncDependencies,
): (key: string, signal?: AbortSignal) => Promise<SyncResult> {
  const written = new WrittenClaims();
  const spoiled = new AddressQuarantine(dependencies.book, dependencies.clock);
  const patience = new PoolGracePeriods();
  const vmis = new VmiOwners(dependencies);
  return async (key, signal) => {
    const { gate, claims, waitList } = dependencies;
    if (!gate.isOpen()) {
      waitList.remove(key);
      return undefined;
    }
    spoiled.liftDue();
    const claim = written.newest(key, claims.get(key));
    const call = signal === undefined ? {} : { signal };
    return new ClaimSync({ key, claim, written, spoiled, patience, vmis, call }, dependencies).run();
  };
}

interface SyncInput {
  key: string;
  /** As the cache, or our last write, has it. */
  claim: IPAMClaim | undefined;
  written: WrittenClaims;
  spoiled: AddressQuarantine;
  patience: PoolGracePeriods;
  vmis: VmiOwners;
  call: CallOptions;
}

/** One sync: steps, each planned anew from what the last one has left. */
class ClaimSync {
  readonly #target: SyncInput;
  readonly #dependencies: ClaimSyncDependencies;
  readonly #fresh = new Set<string>();
  /** UIDs of claims of this name that the API server has shown to be gone. */
  readonly #gone = new Set<string>();
  /** The claim's leases that were there before the API server last said how it is. */
  #judged: ReadonlySet<LeaseRecord> = new Set();
  #claim: IPAMClaim | undefined;
  #users: readonly ClaimPod[] = [];
  #findings: Findings = { isLive: false, arePodsLive: false };

  constructor(target: SyncInput, dependencies: ClaimSyncDependencies) {
    this.#target = target;
    this.#dependencies = dependencies;
    this.#claim = target.claim;
  }

  async run(): Promise<SyncResult> {
    const { log, metrics, gate } = this.#dependencies;
    const { key } = this.#target;
    for (let steps = 0; steps < MAX_STEPS; steps++) {
      if (!gate.isOpen()) return undefined;
      const observed = this.#observe();
      const step = this.#plan(observed);
      if (step.kind === 'none') return this.#settle(observed);
      metrics.countStep(step.kind);
      log.debug({ claim: key, step: step.kind }, step.reason);
      await this.#perform(step, observed);
    }
    return { retry: 'it changes faster than it can be followed' };
  }

  #observe(): ClaimObservation | undefined {
    const { key, patience, vmis } = this.#target;
    if (this.#claim === undefined) {
      patience.forget(key);
      return undefined;
    }
    const { clock, waitList } = this.#dependencies;
    const observed = observe(this.#claim, this.#dependencies);
    const resolution = patience.applyTo(key, observed.resolution, clock.now());
    const users = new Map([...observed.pods, ...this.#users].map((pod) => [pod.metadata.uid, pod]));
    const found = vmis.createdByKubeVirt([...users.values()]);
    const mayRecount = () => waitList.canUpdateCounts(key, clock.now());
    return {
      ...observed,
      resolution,
      pods: found,
      launcherVmis: vmis.verify(found, this.#claim),
      canUpdateCounts: mayRecount,
    };
  }

  #plan(observed: ClaimObservation | undefined): ClaimStep {
    const strays = leasesOfEarlierClaims(this.#target.key, this.#claim, this.#dependencies);
    const ofStrays = planEarlierClaims(strays, this.#gone);
    if (ofStrays !== undefined) return ofStrays;
    if (observed === undefined) return { kind: 'none', reason: 'it is gone' };
    // whoever has made or taken a lease since the last look may have come to show it
    if (!observed.held.every((lease) => this.#judged.has(lease))) this.#findings.isLive = false;
    return plan(observed, this.#findings);
  }

  /** To be called before the API server says how the claim is. */
  #noteLeases(): void {
    this.#judged = new Set(this.#dependencies.book.ofOwner(this.#claim?.metadata.uid ?? ''));
  }

  async #perform(step: Exclude<ClaimStep, { kind: 'none' }>, observed: ClaimObservation | undefined): Promise<void> {
    const { client, metrics } = this.#dependencies;
    switch (step.kind) {
      case 'look':
        await this.#look();
        return;
      case 'release':
        await releaseAll(step.leases, this.#context());
        metrics.countReleases(step.leases.length);
        return;
      case 'note-mac':
        await recordMac(step.leases, step.mac, this.#context());
        return;
      case 'look-at-pods':
        if (observed === undefined) return;
        this.#users = await listClaimPods(observed.claim, client, this.#target.call);
        this.#findings.arePodsLive = true;
        return;
      case 'look-at-vmi':
        await this.#target.vmis.readVmi(step, this.#target.call);
        return;
      case 'take':
        if (observed?.resolution.kind !== 'served') return;
        await this.#take(step, observed.claim, observed.resolution.pool);
        return;
      case 'write':
        if (observed !== undefined) await this.#write(step, observed.claim);
        return;
    }
  }

  /**
   * What was found out of an older state is forgotten. A claim is there before its leases are: whoever has some before the API server is asked,
   * and is not what it answers, is gone for good. Leases that come later may be those of a claim that has come since.
   */
  async #look(): Promise<void> {
    const { key, call } = this.#target;
    const owners = leasesOfEarlierClaims(key, undefined, this.#dependencies).flatMap(({ owner }) => owner?.uid ?? []);
    const before = this.#claim;
    this.#noteLeases();
    this.#claim = await readClaim(key, this.#dependencies.client, call);
    for (const uid of owners) if (uid !== this.#claim?.metadata.uid) this.#gone.add(uid);
    // whoever has written to it meanwhile may have shown what was taken here, even if it is not shown any more
    if (this.#claim?.metadata.resourceVersion !== before?.metadata.resourceVersion) this.#fresh.clear();
    this.#findings = { isLive: true, arePodsLive: this.#findings.arePodsLive };
  }

  async #take(step: Extract<ClaimStep, { kind: 'take' }>, claim: IPAMClaim, pool: Pool): Promise<void> {
    const { book, waitList, restoreHolds, blocks, clock, heldByStopped, stickyMAC, metrics } = this.#dependencies;
    const { purpose, addresses, families } = step;
    const terms = {
      ...leaseTimesOf(pool, this.#dependencies),
      now: clock.wall(),
      // counted only where it is told
      heldByStopped: (family: Family) => heldByStopped(pool.name, family),
      promisedTo: (address: Address) => restoreHolds.holdAgainst(claim, pool.addressSpace, address),
    };
    const mac = claimMacOf(claim);
    const wish = {
      addresses,
      families,
      owner: leaseOwnerOf(claim),
      ...(mac !== undefined && { mac }),
      seeksKept: stickyMAC,
    };
    const pressed = (family: Family) => blocks?.press(pool.name, family);
    const chosen = pick(claim, pool, wish, { view: book.view(pool), terms, waiters: waitList, pressed });
    // nothing is awaited from the choice until it is held, or waited for
    const outcome = chosen.ok
      ? await allocateAll(chosen.candidates, { claim, pool }, this.#context())
      : ({ kind: 'refused', refusal: chosen.refusal } as const);
    metrics.countAllocation(purpose, outcome.kind);
    if (outcome.kind === 'refused') {
      this.#findings[purpose] = outcome.refusal;
      this.#wait(claim, pool);
    } else if (outcome.kind === 'taken') {
      this.#leave();
      // what it needs is another thing now
      if (purpose === 'move') delete this.#findings.need;
    }
  }

  async #write(step: Extract<ClaimStep, { kind: 'write' }>, claim: IPAMClaim): Promise<void> {
    this.#noteLeases();
    const after = await writeStatus(claim, step.verdict, this.#context());
    if (after === undefined) {
      await this.#look();
      return;
    }
    const { key, written } = this.#target;
    const { ips, allocated, request } = step.verdict;
    const isNews = claim.status?.ips?.join() !== ips.join();
    const level = allocated.status !== 'True' || request !== undefined ? 'warn' : isNews ? 'info' : 'debug';
    this.#dependencies.log[level]({ claim: key, ips, reason: allocated.reason }, request?.message ?? allocated.message);
    recordClaimEvents(claim, step.verdict, this.#dependencies.events);
    written.wrote(key, after);
    this.#claim = after;
    // a pod that has come since the last look may have read the status before this
    this.#users = [];
    this.#findings = { ...this.#findings, isLive: true, arePodsLive: false };
    if (ips.length > 0) this.#fresh.clear();
  }

  /** At rest; where something is missing, until it may be had. */
  #settle(observed: ClaimObservation | undefined): SyncResult {
    if (this.#claim !== undefined) this.#dependencies.restoreHolds.onSynced(this.#claim);
    const refusals = this.#refusals;
    if (refusals.length === 0) {
      this.#leave();
      const ms =
        this.#target.patience.remainingMs(this.#target.key, this.#dependencies.clock.now()) ||
        vmiRecheckDelayMs(observed);
      return ms > 0 ? { retryAfterMs: ms } : undefined;
    }
    const retryAt = Math.min(...refusals.map((refusal) => refusal.retryAt ?? Infinity));
    const ms = Math.max(retryAt - this.#dependencies.clock.wall(), MIN_RETRY_MS);
    return { retryAfterMs: Math.min(ms, this.#dependencies.waitList.recheckMs) };
  }

  #wait(claim: IPAMClaim, pool: Pool): void {
    const { waitList, metrics } = this.#dependencies;
    const refusals = this.#refusals;
    waitList.set(this.#target.key, {
      created: claim.metadata.creationTimestamp ?? '',
      ...(refusals.some(isPoolExhausted) && { pool }),
      addresses: refusals.flatMap(({ address }) => (address ? [{ addressSpace: pool.addressSpace, address }] : [])),
    });
    metrics.setWaiting(waitList.size);
  }

  get #refusals(): readonly AllocationRefusal[] {
    const { need, move } = this.#findings;
    return [need, move].filter((refusal) => refusal !== undefined);
  }

  #leave(): void {
    this.#dependencies.waitList.remove(this.#target.key);
    this.#dependencies.metrics.setWaiting(this.#dependencies.waitList.size);
  }

  #context() {
    const { client, book, clock } = this.#dependencies;
    const { call, spoiled } = this.#target;
    return { client, book, clock, call, spoiled, fresh: this.#fresh };
  }
}
