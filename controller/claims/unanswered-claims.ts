import { type IPAMClaim, claimNadOf } from '../../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { EventReason } from '../../api/names.js';
import type { Clock } from '../../kube/clock.js';
import type { EventRecorder } from '../../kube/events.js';
import type { Logger } from '../../kube/log.js';
import { claimEventSubjects } from '../../cluster/claim-event-subjects.js';
import type { PersistentIPsGate } from '../../cluster/persistent-ips-gate.js';
import type { ParsedNad } from '../../cluster/transforms.js';

export interface UnansweredDeps {
  readonly claims: { list(): readonly IPAMClaim[] };
  readonly networks: { get(key: string): ParsedNad | undefined };
  readonly events: Pick<EventRecorder, 'event'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly gate: PersistentIPsGate;
  readonly afterMs: number;
}

const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;

/** Tells users of claims that ipam has not answered, once for each claim: while ipam is down, it cannot say so itself. */
export class UnansweredClaims {
  readonly #deps: UnansweredDeps;
  /** By UID: when a claim without an answer was seen first. */
  #seen = new Map<string, { since: number; isTold: boolean }>();
  #abort: AbortController | undefined;
  #looking: Promise<void> = Promise.resolve();

  constructor(deps: UnansweredDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#abort = new AbortController();
    this.#looking = this.#lookRepeatedly(this.#abort.signal);
  }

  async stop(): Promise<void> {
    this.#abort?.abort();
    await this.#looking;
  }

  async #lookRepeatedly(signal: AbortSignal): Promise<void> {
    const { clock, gate, afterMs } = this.#deps;
    const pauseMs = Math.min(Math.max(afterMs / 4, MIN_PAUSE_MS), MAX_PAUSE_MS);
    while (!signal.aborted) {
      if (gate.isOpen()) this.#look();
      await clock.sleep(pauseMs, signal);
    }
  }

  #look(): void {
    const { claims, clock, afterMs } = this.#deps;
    const now = clock.now();
    const seen = new Map<string, { since: number; isTold: boolean }>();
    for (const claim of claims.list()) {
      if (!this.#isUnanswered(claim)) continue;
      const { uid = '' } = claim.metadata;
      const entry = this.#seen.get(uid) ?? { since: now, isTold: false };
      seen.set(uid, entry);
      if (entry.isTold || now - entry.since < afterMs) continue;
      entry.isTold = true;
      this.#tell(claim);
    }
    this.#seen = seen;
  }

  /** It is for ipam to answer, which writes addresses or says why there are none. */
  #isUnanswered(claim: IPAMClaim): boolean {
    if (claim.status !== undefined || isBeingDeleted(claim)) return false;
    const nad = this.#deps.networks.get(claimNadOf(claim) ?? '');
    return nad?.delegation.kind === 'holdfast';
  }

  #tell(claim: IPAMClaim): void {
    const { events, log, afterMs } = this.#deps;
    const message =
      `IPAMClaim ${claim.metadata.name} has no addresses: Holdfast's IPAM has not answered within ${afterMs / 1000} s. ` +
      'Check that a pod of holdfast-ipam runs and leads';
    log.warn({ claim: objectKey(claim) }, message);
    for (const subject of claimEventSubjects(claim))
      events.event(subject, 'Warning', EventReason.IpamNotResponding, message);
  }
}
