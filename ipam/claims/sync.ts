import { type IPAMClaim, macOf } from '../../api/ipam-claim.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { EventRecorder } from '../../kube/events.js';
import type { Logger } from '../../kube/log.js';
import type { SyncResult } from '../../kube/loop.js';
import type { Gate } from '../../cluster/gates.js';
import type { LeaseClient } from '../../cluster/lease-writes.js';
import type { Address, Family } from '../core/address.js';
import { leaseTimesOf } from '../core/lease-times.js';
import type { Refusal } from '../core/allocator.js';
import { leaseOwnerOf } from '../core/lease-owner.js';
import type { LeaseRecord } from '../core/lease.js';
import type { Pool } from '../core/pool.js';
import type { LeaseBook } from '../leases/book.js';
import type { Blocks } from '../blocks/blocks.js';
import { noteMac, releaseAll, takeAll, waitsForPool, writeStatus } from './apply.js';
import type { ClaimMetrics } from './metrics.js';
import { readClaim, readUsers } from './live.js';
import { type Observed, type Views, observe, straysOf } from './observe.js';
import { pick } from './pick.js';
import { type Findings, plan, planStrays } from './plan.js';
import { recheckVmiMs } from './owner-pod.js';
import { Patience } from './patience.js';
import type { ClaimPod } from './pods.js';
import type { Promises } from './promises.js';
import { report } from './report.js';
import { SpoiledAddresses } from './spoiled.js';
import type { Step } from './step.js';
import type { ClaimWaiters } from './waiting.js';
import { VmiOwners, type VmiOwnersDependencies } from './vmi-owners.js';
import { WrittenClaims } from './written.js';

export interface ClaimSyncDependencies extends Pick<Views, 'directory' | 'pods'>, VmiOwnersDependencies {
  /** By key. */
  claims: { get(key: string): IPAMClaim | undefined };
  book: Views['book'] & Pick<LeaseBook, 'wrote' | 'forget' | 'hold' | 'unhold' | 'view'>;
  client: LeaseClient & Pick<Client, 'get' | 'listAs'>;
  waiters: ClaimWaiters;
  promises: Pick<Promises, 'against' | 'settled'>;
  /** Absent where nodes are lent none. */
  blocks?: Pick<Blocks, 'press'>;
  /** Closed: nothing is allocated, nothing freed, no status written. */
  gate: Gate;
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
const SOONEST_MS = 50;

/** Brings one claim, a `namespace/name`, to its addresses, and frees those of claims of that name that are gone. */
export function createClaimSync(
  dependencies: ClaimSyncDependencies,
): (key: string, signal?: AbortSignal) => Promise<SyncResult> {
  const written = new WrittenClaims();
  const spoiled = new SpoiledAddresses(dependencies.book, dependencies.clock);
  const patience = new Patience();
  const vmis = new VmiOwners(dependencies);
  return async (key, signal) => {
    const { gate, claims, waiters } = dependencies;
    if (!gate.isOpen()) {
      waiters.leave(key);
      return undefined;
    }
    spoiled.lift();
    const claim = written.newest(key, claims.get(key));
    const call = signal === undefined ? {} : { signal };
    return new Round({ key, claim, written, spoiled, patience, vmis, call }, dependencies).run();
  };
}

interface Target {
  key: string;
  /** As the cache, or our last write, has it. */
  claim: IPAMClaim | undefined;
  written: WrittenClaims;
  spoiled: SpoiledAddresses;
  patience: Patience;
  vmis: VmiOwners;
  call: CallOptions;
}

/** One sync: steps, each planned anew from what the last one has left. */
class Round {
  readonly #target: Target;
  readonly #dependencies: ClaimSyncDependencies;
  readonly #fresh = new Set<string>();
  /** UIDs of claims of this name that the API server has shown to be gone. */
  readonly #gone = new Set<string>();
  /** The claim's leases that were there before the API server last said how it is. */
  #judged: ReadonlySet<LeaseRecord> = new Set();
  #claim: IPAMClaim | undefined;
  #users: readonly ClaimPod[] = [];
  #findings: Findings = { isLive: false, arePodsLive: false };

  constructor(target: Target, dependencies: ClaimSyncDependencies) {
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
      metrics.stepped(step.kind);
      log.debug({ claim: key, step: step.kind }, step.reason);
      await this.#perform(step, observed);
    }
    return { retry: 'it changes faster than it can be followed' };
  }

  #observe(): Observed | undefined {
    const { key, patience, vmis } = this.#target;
    if (this.#claim === undefined) {
      patience.forget(key);
      return undefined;
    }
    const { clock, waiters } = this.#dependencies;
    const observed = observe(this.#claim, this.#dependencies);
    const resolution = patience.with(key, observed.resolution, clock.now());
    const users = new Map([...observed.users, ...this.#users].map((pod) => [pod.metadata.uid, pod]));
    const found = vmis.launchedByKubeVirt([...users.values()]);
    const mayRecount = () => waiters.mayRecount(key, clock.now());
    return { ...observed, resolution, users: found, vmis: vmis.namedBy(found, this.#claim), mayRecount };
  }

  #plan(observed: Observed | undefined): Step {
    const strays = straysOf(this.#target.key, this.#claim, this.#dependencies);
    const ofStrays = planStrays(strays, this.#gone);
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

  async #perform(step: Exclude<Step, { kind: 'none' }>, observed: Observed | undefined): Promise<void> {
    const { client, metrics } = this.#dependencies;
    switch (step.kind) {
      case 'look':
        await this.#look();
        return;
      case 'release':
        await releaseAll(step.leases, this.#context());
        metrics.released(step.leases.length);
        return;
      case 'note-mac':
        await noteMac(step.leases, step.mac, this.#context());
        return;
      case 'look-at-pods':
        if (observed === undefined) return;
        this.#users = await readUsers(observed.claim, client, this.#target.call);
        this.#findings.arePodsLive = true;
        return;
      case 'look-at-vmi':
        await this.#target.vmis.read(step, this.#target.call);
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
    const owners = straysOf(key, undefined, this.#dependencies).flatMap(({ owner }) => owner?.uid ?? []);
    const before = this.#claim;
    this.#noteLeases();
    this.#claim = await readClaim(key, this.#dependencies.client, call);
    for (const uid of owners) if (uid !== this.#claim?.metadata.uid) this.#gone.add(uid);
    // whoever has written to it meanwhile may have shown what was taken here, even if it is not shown any more
    if (this.#claim?.metadata.resourceVersion !== before?.metadata.resourceVersion) this.#fresh.clear();
    this.#findings = { isLive: true, arePodsLive: this.#findings.arePodsLive };
  }

  async #take(step: Extract<Step, { kind: 'take' }>, claim: IPAMClaim, pool: Pool): Promise<void> {
    const { book, waiters, promises, blocks, clock, heldByStopped, stickyMAC, metrics } = this.#dependencies;
    const { purpose, addresses, families } = step;
    const terms = {
      ...leaseTimesOf(pool, this.#dependencies),
      now: clock.wall(),
      // counted only where it is told
      heldByStopped: (family: Family) => heldByStopped(pool.name, family),
      promisedTo: (address: Address) => promises.against(claim, pool.addressSpace, address),
    };
    const mac = macOf(claim);
    const wish = {
      addresses,
      families,
      owner: leaseOwnerOf(claim),
      ...(mac !== undefined && { mac }),
      seeksKept: stickyMAC,
    };
    const pressed = (family: Family) => blocks?.press(pool.name, family);
    const chosen = pick(claim, pool, wish, { view: book.view(pool), terms, waiters, pressed });
    // nothing is awaited from the choice until it is held, or waited for
    const outcome = chosen.ok
      ? await takeAll(chosen.choices, { claim, pool }, this.#context())
      : ({ kind: 'refused', refusal: chosen.refusal } as const);
    metrics.took(purpose, outcome.kind);
    if (outcome.kind === 'refused') {
      this.#findings[purpose] = outcome.refusal;
      this.#wait(claim, pool);
    } else if (outcome.kind === 'taken') {
      this.#leave();
      // what it needs is another thing now
      if (purpose === 'move') delete this.#findings.need;
    }
  }

  async #write(step: Extract<Step, { kind: 'write' }>, claim: IPAMClaim): Promise<void> {
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
    report(claim, step.verdict, this.#dependencies.events);
    written.wrote(key, after);
    this.#claim = after;
    // a pod that has come since the last look may have read the status before this
    this.#users = [];
    this.#findings = { ...this.#findings, isLive: true, arePodsLive: false };
    if (ips.length > 0) this.#fresh.clear();
  }

  /** At rest; where something is missing, until it may be had. */
  #settle(observed: Observed | undefined): SyncResult {
    if (this.#claim !== undefined) this.#dependencies.promises.settled(this.#claim);
    const refusals = this.#refusals;
    if (refusals.length === 0) {
      this.#leave();
      const ms = this.#target.patience.left(this.#target.key, this.#dependencies.clock.now()) || recheckVmiMs(observed);
      return ms > 0 ? { retryAfterMs: ms } : undefined;
    }
    const retryAt = Math.min(...refusals.map((refusal) => refusal.retryAt ?? Infinity));
    const ms = Math.max(retryAt - this.#dependencies.clock.wall(), SOONEST_MS);
    return { retryAfterMs: Math.min(ms, this.#dependencies.waiters.recheckMs) };
  }

  #wait(claim: IPAMClaim, pool: Pool): void {
    const { waiters, metrics } = this.#dependencies;
    const refusals = this.#refusals;
    waiters.set(this.#target.key, {
      created: claim.metadata.creationTimestamp ?? '',
      ...(refusals.some(waitsForPool) && { pool }),
      addresses: refusals.flatMap(({ address }) => (address ? [{ addressSpace: pool.addressSpace, address }] : [])),
    });
    metrics.waiting(waiters.size);
  }

  get #refusals(): readonly Refusal[] {
    const { need, move } = this.#findings;
    return [need, move].filter((refusal) => refusal !== undefined);
  }

  #leave(): void {
    this.#dependencies.waiters.leave(this.#target.key);
    this.#dependencies.metrics.waiting(this.#dependencies.waiters.size);
  }

  #context() {
    const { client, book, clock } = this.#dependencies;
    const { call, spoiled } = this.#target;
    return { client, book, clock, call, spoiled, fresh: this.#fresh };
  }
}
