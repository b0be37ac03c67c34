import { EventReason } from '../../api/event-reasons.js';
import { IPAM_CLAIM_KIND } from '../../api/names.js';
import { PROBE_LIMITS } from '../../api/limits.js';
import { objectKey } from '../../api/meta.js';
import { claimEventSubjects, poolEventSubject } from '../../cluster/event-subjects.js';
import type { Clock } from '../../kube/clock.js';
import type { EventRecorder } from '../../kube/events.js';
import { type Family, formatAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import { releaseTime } from '../../addressing/lease/cooling-start.js';
import { type QuarantinedByMac, endProbe, quarantineLease } from '../../addressing/lease/lease-quarantine.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { LeaseBook } from '../leases/lease-book.js';
import { probingStopOf } from '../leases/probing-stop.js';
import { type LeaseChangeContext, writeChange } from './claim-leases.js';
import type { ClaimMetrics } from './metrics.js';
import type { ClaimObservation, ProbingView } from './observe.js';
import type { ClaimStepOf } from './step.js';

interface ProbesDependencies {
  book: Pick<LeaseBook, 'quarantined' | 'get' | 'all'>;
  clock: Pick<Clock, 'now' | 'wall'>;
  events: Pick<EventRecorder, 'event'>;
  metrics: Pick<ClaimMetrics, 'countProbe'>;
}

/** A step that ends the probe of an address without the answer that it is free. */
type ProbeEnd = ClaimStepOf<'skip-probe' | 'quarantine'>;

/** What this process remembers of a claim that shows no address yet. After a restart the claim waits anew, and may lose as many addresses to quarantine again. */
interface ClaimProbes {
  readonly uid: string | undefined;
  /** By UID of a lease: when its probe was first seen as requested, in ms of the clock. */
  readonly requestedAt: Map<string, number>;
  readonly quarantined: Map<Family, number>;
}

/** The probes of claims: what is known about them, and the writes that end them. */
export class Probes {
  readonly #deps: ProbesDependencies;
  readonly #claims = new Map<string, ClaimProbes>();
  /** Leases that a write may quarantine as long as they have this version, and the host: the answer is open or was lost. Absent before the first probe. */
  #pending: Map<LeaseRecord, string> | undefined;

  constructor(deps: ProbesDependencies) {
    this.#deps = deps;
  }

  /** @returns undefined for a claim that need not be probed */
  viewOf({
    claim,
    held,
    resolution,
  }: Pick<ClaimObservation, 'claim' | 'held' | 'resolution'>): ProbingView | undefined {
    const key = objectKey(claim);
    const isPublished = (claim.status?.ips?.length ?? 0) > 0;
    if (isPublished || resolution.kind !== 'served' || resolution.pool.guest?.probe !== true) {
      this.forget(key);
      return undefined;
    }
    const now = this.#deps.clock.now();
    const { requestedAt, quarantined } = this.#probesOf(key, claim.metadata.uid);
    const open = new Set(held.filter(({ probe }) => probe === 'requested').map(({ metadata }) => metadata.uid));
    // a lease that the claim has lost may be probed for it again
    for (const uid of requestedAt.keys()) if (!open.has(uid)) requestedAt.delete(uid);
    for (const uid of open) if (!requestedAt.has(uid)) requestedAt.set(uid, now);
    return {
      now,
      stop: (next) => probingStopOf(resolution.pool, this.#quarantinedOf(resolution.pool, next)),
      requestedAt: ({ metadata }) => requestedAt.get(metadata.uid) ?? now,
      quarantinedInARow: (family) => quarantined.get(family) ?? 0,
    };
  }

  forget(key: string): void {
    this.#claims.delete(key);
  }

  perform(step: ProbeEnd, observed: ClaimObservation, context: LeaseChangeContext): Promise<void> {
    return step.kind === 'skip-probe' ? this.#skip(step, observed, context) : this.#quarantine(step, observed, context);
  }

  /** Call it when a claim shows its first addresses. */
  onPublished(leases: readonly LeaseRecord[]): void {
    for (const { probe } of leases) if (probe === 'free' || probe === 'self') this.#deps.metrics.countProbe(probe);
  }

  async #skip(
    { lease, cause }: ClaimStepOf<'skip-probe'>,
    { resolution }: Pick<ClaimObservation, 'resolution'>,
    context: LeaseChangeContext,
  ): Promise<void> {
    if (!(await writeChange(lease, endProbe(lease, 'skipped'), context))) return;
    const { events, metrics } = this.#deps;
    metrics.countProbe('skipped');
    if (cause !== 'NoAnswer' || resolution.kind !== 'served') return;
    const message =
      `No responder said within ${PROBE_LIMITS.timeoutMs / 1_000} s whether another host has an address, so claims show addresses that were not probed. ` +
      'Look at the pods of the responders, and at spec.guest.attachment';
    events.event(poolEventSubject(resolution.pool), 'Normal', EventReason.ProbeSkipped, message);
  }

  async #quarantine(
    { lease, mac, isRequested }: ClaimStepOf<'quarantine'>,
    { claim, resolution }: Pick<ClaimObservation, 'claim' | 'resolution'>,
    context: LeaseChangeContext,
  ): Promise<void> {
    const { clock, events, metrics } = this.#deps;
    const forMs = isRequested ? PROBE_LIMITS.requestedQuarantineMs : PROBE_LIMITS.quarantineMs;
    this.#pendingWrites().set(lease, mac);
    if (!(await writeChange(lease, quarantineLease(lease, mac, releaseTime(clock), forMs), context))) return;
    metrics.countProbe('taken');
    const { family } = lease.address;
    const { quarantined } = this.#probesOf(objectKey(claim), claim.metadata.uid);
    // the host that has a requested address still has it at the next attempt
    if (!isRequested) quarantined.set(family, (quarantined.get(family) ?? 0) + 1);
    const name = `${IPAM_CLAIM_KIND} ${objectKey(claim)}`;
    const outcome = isRequested ? `which ${name} requests` : `so ${name} gets another address`;
    const message =
      `A host with MAC address ${mac} has ${formatAddress(lease.address)} of AddressPool ${lease.pool}, ${outcome}. Give that host another address, ` +
      'or exclude the address from the pool';
    const ofPool = resolution.kind === 'served' ? [poolEventSubject(resolution.pool)] : [];
    for (const subject of [...claimEventSubjects(claim), ...ofPool])
      events.event(subject, 'Warning', EventReason.AddressTaken, message);
  }

  #probesOf(key: string, uid: string | undefined): ClaimProbes {
    const known = this.#claims.get(key);
    if (known !== undefined && known.uid === uid) return known;
    const fresh: ClaimProbes = { uid, requestedAt: new Map(), quarantined: new Map() };
    this.#claims.set(key, fresh);
    return fresh;
  }

  /** @param next does not count: it may be quarantined next */
  #quarantinedOf(pool: Pool, next: LeaseRecord | undefined): QuarantinedByMac {
    const known = this.#deps.book.quarantined(pool.name);
    const all = new Map([...known].map(([mac, leases]) => [mac, new Set(leases)]));
    for (const [lease, mac] of this.#pendingWrites())
      if (lease.pool === pool.name && lease !== next) all.set(mac, (all.get(mac) ?? new Set()).add(lease));
    return all;
  }

  #pendingWrites(): Map<LeaseRecord, string> {
    const { book } = this.#deps;
    if (this.#pending === undefined) {
      this.#pending = new Map();
      // an earlier leader may have written that it quarantines them
      for (const lease of book.all())
        if (typeof lease.probe === 'object' && stateOf(lease) === 'held') this.#pending.set(lease, lease.probe.taken);
    }
    for (const lease of this.#pending.keys()) if (book.get(lease.metadata.name) !== lease) this.#pending.delete(lease);
    return this.#pending;
  }
}
