import { type IPAMClaim, claimNadOf } from '../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../api/meta.js';
import { EventReason } from '../api/event-reasons.js';
import type { Clock } from '../kube/clock.js';
import { type EventRecorder, LASTING_EVENT_MS } from '../kube/events.js';
import type { Logger } from '../kube/log.js';
import { forEachInSlices } from '../kube/run-in-slices.js';
import { PeriodicTask, checkIntervalMs } from '../process/periodic-task.js';
import { claimEventSubjects } from '../cluster/event-subjects.js';
import type { PersistentIPsGate } from '../cluster/persistent-ips-gate.js';
import type { ParsedNad } from '../cluster/transforms.js';

interface UnansweredDeps {
  readonly claims: { list(): readonly IPAMClaim[] };
  readonly networks: { get(key: string): ParsedNad | undefined };
  readonly events: Pick<EventRecorder, 'event'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly gate: PersistentIPsGate;
  readonly afterMs: number;
}

/** Reports claims without a status from ipam, once for each claim: `holdfast ipam` cannot report its own failure. */
export class UnansweredClaims extends PeriodicTask {
  readonly #deps: UnansweredDeps;
  /** When each claim without an answer was first seen, and last reported, by UID. */
  #seen = new Map<string, { firstSeen: number; reportedAt: number }>();

  constructor(deps: UnansweredDeps) {
    const { clock, afterMs } = deps;
    super({ clock, pauseMs: checkIntervalMs(afterMs), run: (signal) => this.#check(signal) });
    this.#deps = deps;
  }

  async #check(signal: AbortSignal): Promise<void> {
    const { claims, clock, gate, afterMs } = this.#deps;
    if (!gate.isOpen()) return;
    const now = clock.now();
    const seen = new Map<string, { firstSeen: number; reportedAt: number }>();
    const check = (claim: IPAMClaim) => {
      if (!this.#isUnanswered(claim)) return;
      const { uid = '' } = claim.metadata;
      const entry = this.#seen.get(uid) ?? { firstSeen: now, reportedAt: -Infinity };
      seen.set(uid, entry);
      if (now - entry.reportedAt < LASTING_EVENT_MS || now - entry.firstSeen < afterMs) return;
      entry.reportedAt = now;
      this.#report(claim);
    };
    if (await forEachInSlices(claims.list(), check, clock, signal)) this.#seen = seen;
  }

  /** Only claims on networks of `holdfast ipam` count: it writes addresses or the reason why there are none. */
  #isUnanswered(claim: IPAMClaim): boolean {
    if (claim.status !== undefined || isBeingDeleted(claim)) return false;
    const nad = this.#deps.networks.get(claimNadOf(claim) ?? '');
    return nad?.delegation.kind === 'holdfast';
  }

  #report(claim: IPAMClaim): void {
    const { events, log, afterMs } = this.#deps;
    const message =
      `IPAMClaim ${claim.metadata.name} has no addresses: holdfast-ipam has not written its status within ${afterMs / 1000} s. ` +
      'Check that a holdfast-ipam pod is running and is the leader';
    log.warn({ claim: objectKey(claim) }, message);
    for (const subject of claimEventSubjects(claim))
      events.event(subject, 'Warning', EventReason.IpamNotResponding, message);
  }
}
