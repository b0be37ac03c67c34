import type { IPAMClaim } from '../../api/ipam-claim.js';
import { splitKey } from '../../api/meta.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { Logger } from '../../kube/log.js';
import type { SyncResult } from '../../kube/controller-loop.js';
import type { PersistentIPsGate } from '../../cluster/persistent-ips-gate.js';
import type { LeaseClient } from '../../cluster/lease-writes.js';
import type { Family } from '../../addressing/address/address.js';
import type { LeaseRecord } from '../../addressing/index.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { BlockReconciler } from '../blocks/block-reconciler.js';
import { recordMac, releaseAll, allocateAll, writeStatus } from './apply.js';
import { allocationRequestOf, allocationTermsOf } from './allocation-request.js';
import type { AllocationLatency } from './allocation-latency.js';
import type { ClaimMetrics } from './metrics.js';
import { readClaim, listClaimPods } from './live-reads.js';
import { type ClaimObservation, type ClaimViews, observe, observeRunning, leasesOfEarlierClaims } from './observe.js';
import { pick } from './pick.js';
import { type Findings, plan, planEarlierClaims } from './plan.js';
import { vmiRecheckDelayMs } from './owner-pod.js';
import { PoolGracePeriods } from './pool-grace-period.js';
import type { ClaimPod } from './claim-pods.js';
import type { RestoreHolds } from './restore-holds.js';
import { type ProbeEnd, Probes, type ProbesDependencies } from './probes.js';
import { shouldProbe } from './probing.js';
import { recordClaimEvents } from './claim-events.js';
import { UnreadableAddresses } from './unreadable-addresses.js';
import type { ClaimStep, ClaimStepOf } from './step.js';
import { type ClaimWaitList, startWaiting, stopWaiting } from './wait-list.js';
import { VmiOwners, type VmiOwnersDependencies } from './vmi-owners.js';
import { WrittenClaims } from './written-claims.js';

export interface ClaimSyncDependencies
  extends Pick<ClaimViews, 'directory' | 'pods'>, VmiOwnersDependencies, ProbesDependencies {
  /** By key. */
  claims: { get(key: string): IPAMClaim | undefined };
  book: ClaimViews['book'] &
    Pick<LeaseBook, 'recordWrite' | 'forget' | 'markPending' | 'clearPending' | 'view' | 'quarantined'>;
  client: LeaseClient & Pick<Client, 'get' | 'listAs'>;
  waitList: ClaimWaitList;
  restoreHolds: Pick<RestoreHolds, 'holdAgainst' | 'onSynced'>;
  /** Absent if nodes get no blocks. */
  blocks?: Pick<BlockReconciler, 'noteShortage'>;
  /** While closed, nothing is allocated or released, and no status is written. */
  gate: PersistentIPsGate;
  /** Number of addresses of a pool that stopped VMs hold; for messages. */
  heldByStopped: (pool: string, family: Family) => number;
  /** How long agents may answer from caches. An address cools down at least twice as long. */
  maxStalenessMs: number;
  /** Feature gate StickyMAC: addresses are sticky for their MAC address. */
  stickyMAC: boolean;
  clock: Pick<Clock, 'now' | 'wall'>;
  metrics: Omit<ClaimMetrics, 'clear'>;
  latency: Pick<AllocationLatency, 'onAllocated'>;
  log: Logger;
}

/** More steps than a sync needs, even if it loses a few addresses to other writers. */
const MAX_STEPS = 24;
const MIN_RETRY_MS = 50;

/** Creates the reconciler of claims. It allocates the addresses of one claim, by `namespace/name`, and releases those of deleted claims of that name. */
export function createClaimSync(
  dependencies: ClaimSyncDependencies,
): (key: string, signal?: AbortSignal) => Promise<SyncResult> {
  const written = new WrittenClaims();
  const unreadable = new UnreadableAddresses(dependencies.book, dependencies.clock);
  const gracePeriods = new PoolGracePeriods();
  const vmis = new VmiOwners(dependencies);
  const probes = new Probes(dependencies);
  return async (key, signal) => {
    const { gate, claims, waitList } = dependencies;
    if (!gate.isOpen()) {
      waitList.remove(key);
      return undefined;
    }
    unreadable.retryDue();
    const claim = written.newest(key, claims.get(key));
    const call = { tenant: splitKey(key).namespace, ...(signal && { signal }) };
    return new ClaimSync({ key, claim, written, unreadable, gracePeriods, vmis, probes, call }, dependencies).run();
  };
}

interface SyncInput {
  key: string;
  /** The newer of the cached claim and our own last write. */
  claim: IPAMClaim | undefined;
  written: WrittenClaims;
  unreadable: UnreadableAddresses;
  gracePeriods: PoolGracePeriods;
  vmis: VmiOwners;
  probes: Probes;
  call: CallOptions;
}

/** One sync: it observes the claim, plans a step and performs it, until nothing is left to do. */
class ClaimSync {
  readonly #input: SyncInput;
  readonly #dependencies: ClaimSyncDependencies;
  readonly #unpublished = new Set<string>();
  /** UIDs of claims of this name that a live read has proven gone. */
  readonly #gone = new Set<string>();
  /** The claim's leases that existed before its last live read. */
  #knownLeases: ReadonlySet<LeaseRecord> = new Set();
  #claim: IPAMClaim | undefined;
  #livePods: readonly ClaimPod[] = [];
  #findings: Findings = { isLive: false, arePodsLive: false };

  constructor(input: SyncInput, dependencies: ClaimSyncDependencies) {
    this.#input = input;
    this.#dependencies = dependencies;
    this.#claim = input.claim;
  }

  async run(): Promise<SyncResult> {
    const { log, metrics, gate } = this.#dependencies;
    const { key } = this.#input;
    for (let steps = 0; steps < MAX_STEPS; steps++) {
      if (!gate.isOpen()) return undefined;
      const observed = this.#observe();
      const step = this.#plan(observed);
      if (step.kind === 'none' || step.kind === 'await-probe') return this.#settle(step, observed);
      metrics.countStep(step.kind);
      log.debug({ claim: key, step: step.kind }, step.reason);
      await this.#perform(step, observed);
    }
    return { retry: 'the claim changes faster than it can be synced' };
  }

  #observe(): ClaimObservation | undefined {
    const { key, gracePeriods, vmis, probes } = this.#input;
    if (this.#claim === undefined) {
      probes.forget(key);
      gracePeriods.forget(key);
      return undefined;
    }
    const { clock, waitList } = this.#dependencies;
    const observed = observe(this.#claim, this.#dependencies);
    const resolution = gracePeriods.applyTo(key, observed.resolution, clock.now());
    const byUid = new Map([...observed.pods, ...this.#livePods].map((pod) => [pod.metadata.uid, pod]));
    const pods = vmis.createdByKubeVirt([...byUid.values()]);
    const canUpdateCounts = () => waitList.canUpdateCounts(key, clock.now());
    const launcherVmis = vmis.verify(pods, this.#claim);
    const probing = probes.viewOf(observed);
    const seen = { ...observed, resolution, pods, launcherVmis, canUpdateCounts, probing };
    return { ...seen, running: observeRunning(seen, this.#dependencies) };
  }

  #plan(observed: ClaimObservation | undefined): ClaimStep {
    const leases = leasesOfEarlierClaims(this.#input.key, this.#claim, this.#dependencies);
    const release = planEarlierClaims(leases, this.#gone);
    if (release !== undefined) return release;
    if (observed === undefined) return { kind: 'none', reason: 'the claim is gone' };
    // another process may show a lease that is newer than the last live read
    if (!observed.held.every((lease) => this.#knownLeases.has(lease))) this.#findings.isLive = false;
    return plan(observed, this.#findings);
  }

  /** Call it before each live read of the claim. */
  #recordLeases(): void {
    this.#knownLeases = new Set(this.#dependencies.book.ofOwner(this.#claim?.metadata.uid ?? ''));
  }

  async #perform(
    step: Exclude<ClaimStep, ClaimStepOf<'none' | 'await-probe'>>,
    observed: ClaimObservation | undefined,
  ): Promise<void> {
    switch (step.kind) {
      case 'read-claim':
        return this.#readClaim();
      case 'release':
        await releaseAll(step.leases, this.#context());
        this.#dependencies.metrics.countReleases(step.leases.length);
        return;
      case 'record-mac':
        return recordMac(step.leases, step.mac, this.#context());
      case 'read-vmi':
        return this.#input.vmis.readVmi(step, this.#input.call);
      default:
        if (observed !== undefined) await this.#performFor(observed, step);
    }
  }

  async #performFor(
    observed: ClaimObservation,
    step: ClaimStepOf<'list-pods' | 'allocate' | 'write-status' | ProbeEnd['kind']>,
  ): Promise<void> {
    const { resolution } = observed;
    switch (step.kind) {
      case 'list-pods':
        this.#livePods = await listClaimPods(observed.claim, this.#dependencies.client, this.#input.call);
        this.#findings.arePodsLive = true;
        return;
      case 'allocate':
        return resolution.kind === 'served' ? this.#allocate(step, observed, resolution.pool) : undefined;
      case 'write-status':
        return this.#writeStatus(step, observed);
      default:
        return this.#input.probes.perform(step, observed, this.#context());
    }
  }

  /**
   * Reads the claim live and forgets findings about older versions. A claim exists before its leases: an owner of leases that existed before the read, and that
   * the read does not return, is gone. Later leases may belong to a newer claim.
   */
  async #readClaim(): Promise<void> {
    const { key, call } = this.#input;
    const owners = leasesOfEarlierClaims(key, undefined, this.#dependencies).flatMap(({ owner }) => owner?.uid ?? []);
    const before = this.#claim;
    this.#recordLeases();
    this.#claim = await readClaim(key, this.#dependencies.client, call);
    for (const uid of owners) if (uid !== this.#claim?.metadata.uid) this.#gone.add(uid);
    // another writer may have shown an address that was allocated here, even if the status no longer shows it
    if (this.#claim?.metadata.resourceVersion !== before?.metadata.resourceVersion) this.#unpublished.clear();
    this.#findings = { isLive: true, arePodsLive: this.#findings.arePodsLive };
  }

  async #allocate(step: ClaimStepOf<'allocate'>, observed: ClaimObservation, pool: Pool): Promise<void> {
    const { book, claims, waitList, blocks, stickyMAC, metrics } = this.#dependencies;
    const [{ purpose }, { claim }] = [step, observed];
    const terms = allocationTermsOf(claim, pool, this.#dependencies);
    const request = allocationRequestOf(step, observed, stickyMAC);
    const isProbed = (family: Family) => shouldProbe(observed, family);
    const noteShortage = (family: Family) => blocks?.noteShortage(pool.name, family);
    const chosen = pick(claim, pool, request, {
      view: book.view(pool),
      terms,
      claims,
      waitList,
      isDraining: purpose === 'drain',
      noteShortage,
    });
    // no await between the choice and the moment when it is pending or waited for
    const outcome = chosen.ok
      ? await allocateAll(chosen.candidates, { claim, pool, launchers: request.launchers, isProbed }, this.#context())
      : ({ kind: 'refused', refusal: chosen.refusal } as const);
    metrics.countAllocation(purpose, outcome.kind);
    if (outcome.kind === 'refused') {
      metrics.countRefusal(outcome.refusal.reason);
      this.#findings[purpose] = outcome.refusal;
      startWaiting(this.#input.key, { claim, pool, ...this.#findings }, this.#dependencies);
    } else if (outcome.kind === 'allocated') {
      stopWaiting(this.#input.key, this.#dependencies);
      // it may need other addresses now
      if (purpose === 'move') delete this.#findings.need;
    }
  }

  async #writeStatus(step: ClaimStepOf<'write-status'>, { claim, held }: ClaimObservation): Promise<void> {
    this.#recordLeases();
    const after = await writeStatus(claim, step.desired, this.#context());
    if (after === undefined) {
      await this.#readClaim();
      return;
    }
    const { key, written, probes } = this.#input;
    const { ips, allocated, request } = step.desired;
    const isNews = claim.status?.ips?.join() !== ips.join();
    const level = allocated.status !== 'True' || request !== undefined ? 'warn' : isNews ? 'info' : 'debug';
    this.#dependencies.log[level]({ claim: key, ips, reason: allocated.reason }, request?.message ?? allocated.message);
    recordClaimEvents(claim, step.desired, this.#dependencies.events);
    if (ips.length > 0) {
      this.#dependencies.latency.onAllocated(claim);
      if (isNews) probes.onPublished(held);
    }
    written.wrote(key, after);
    this.#claim = after;
    // a pod that was created since the last list may have read the previous status
    this.#livePods = [];
    this.#findings = { ...this.#findings, isLive: true, arePodsLive: false };
    if (ips.length > 0) this.#unpublished.clear();
  }

  /** Ends the sync. If addresses are missing or probed, the result says when to try again. */
  #settle(step: ClaimStepOf<'none' | 'await-probe'>, observed?: ClaimObservation): SyncResult {
    const { restoreHolds, clock, waitList } = this.#dependencies;
    const { key, gracePeriods } = this.#input;
    if (this.#claim !== undefined) restoreHolds.onSynced(this.#claim);
    const { need, move, drain } = this.#findings;
    const refusals = [need, move, drain].filter((refusal) => refusal !== undefined);
    if (refusals.length === 0) {
      stopWaiting(key, this.#dependencies);
      if (step.kind === 'await-probe') return { requeueAfterMs: Math.max(step.until - clock.now(), MIN_RETRY_MS) };
      const ms = gracePeriods.remainingMs(key, clock.now()) || vmiRecheckDelayMs(observed);
      return ms > 0 ? { requeueAfterMs: ms } : undefined;
    }
    const retryAt = Math.min(...refusals.map((refusal) => refusal.retryAt ?? Infinity));
    const ms = Math.max(retryAt - clock.now(), MIN_RETRY_MS);
    return { requeueAfterMs: Math.min(ms, waitList.recheckMs(key)) };
  }

  #context() {
    const { call, unreadable } = this.#input;
    return { ...this.#dependencies, call, unreadable, unpublished: this.#unpublished };
  }
}
