import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../../../api/meta.js';
import { EventReason } from '../../../api/event-reasons.js';
import type { Cache } from '../../../kube/informers/cache.js';
import type { Clock } from '../../../kube/clock.js';
import type { EventRecorder } from '../../../kube/events.js';
import type { Logger } from '../../../kube/log.js';
import { type LastingProblem, LastingReports } from '../../../process/lasting-reports.js';
import { checkIntervalMs } from '../../../process/periodic-task.js';
import type { PersistentIPsGate } from '../../../cluster/persistent-ips-gate.js';
import type { PoolDirectory } from '../../../addressing/directory/directory.js';
import type { Resolution } from '../../../addressing/directory/resolution.js';
import type { ClaimPod, ClaimPods } from '../running/claim-pods.js';
import { claimEventSubjects } from '../../../cluster/event-subjects.js';

/** What decides whether a claim is honoured. */
interface HonourCheck {
  readonly claim: IPAMClaim;
  readonly pods: readonly ClaimPod[];
  readonly resolution: Resolution;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A pod whose claim gets no address. */
interface UnhonouredPod {
  readonly pod: ClaimPod;
  readonly message: string;
}

const REMEDY =
  'Let the NAD delegate IPAM to "holdfast" or to another IPAM that honours claims, add spec.guest to the AddressPool of a network whose ' +
  'NADs have no IPAM, or remove allowPersistentIPs from the config of the NAD';

/**
 * Returns the pods that reference a claim of another IPAM and have had a node for `afterMs` while the claim has no address. A pod without a node does not count,
 * because no IPAM need have seen it.
 */
export function unhonouredPods({ claim, pods, resolution, now }: HonourCheck, afterMs: number): UnhonouredPod[] {
  const { name } = claim.metadata;
  const ips = claim.status?.ips ?? [];
  if (resolution.kind !== 'foreign' || ips.length > 0 || isBeingDeleted(claim)) return [];
  const isLate = ({ scheduledAt = Infinity }: ClaimPod) => now - scheduledAt >= afterMs;
  return pods
    .filter((pod) => pod.claims.includes(name) && !isBeingDeleted(pod) && isLate(pod))
    .map((pod) => ({
      pod,
      message:
        `IPAMClaim ${name} got no address within ${afterMs / 1000} s after the start of pod ${pod.metadata.name}: ` +
        `${resolution.message}, and no other IPAM honours the claim. ${REMEDY}`,
    }));
}

interface UnhonouredDeps {
  readonly claims: Pick<Cache<IPAMClaim>, 'list'>;
  readonly pods: Pick<ClaimPods, 'podsOf'>;
  readonly directory: Pick<PoolDirectory, 'resolve'>;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly gate: PersistentIPsGate;
  readonly config: { readonly unhonouredAfterMs: number };
}

/** Reports claims that no IPAM honours, for each pod. */
export class UnhonouredClaims extends LastingReports<IPAMClaim> {
  readonly #deps: UnhonouredDeps;

  constructor(deps: UnhonouredDeps) {
    const { clock, gate, claims, config } = deps;
    super({
      ...{ clock, gate, afterMs: 0, pauseMs: checkIntervalMs(config.unhonouredAfterMs) },
      objects: () => claims.list(),
      problemsOf: (claim) => this.#problemsOf(claim),
    });
    this.#deps = deps;
  }

  #problemsOf(claim: IPAMClaim): LastingProblem[] {
    try {
      return this.#unhonouredPodsOf(claim).map((use) => ({
        key: `${claim.metadata.uid ?? ''}/${use.pod.metadata.uid ?? ''}`,
        report: () => this.#report(claim, use),
      }));
    } catch (error) {
      this.#deps.log.error({ claim: objectKey(claim), err: error }, 'cannot check whether the claim is honoured');
      return [];
    }
  }

  #unhonouredPodsOf(claim: IPAMClaim): UnhonouredPod[] {
    const { pods, directory, clock, config } = this.#deps;
    const claimPods = pods.podsOf(claim);
    if (claimPods.length === 0) return [];
    const check = { claim, pods: claimPods, resolution: directory.resolve(claim), now: clock.wall() };
    return unhonouredPods(check, config.unhonouredAfterMs);
  }

  #report(claim: IPAMClaim, { pod, message }: UnhonouredPod): void {
    const { events, log } = this.#deps;
    log.warn({ claim: objectKey(claim), pod: pod.metadata.name }, message);
    for (const subject of claimEventSubjects(claim))
      events.event(subject, 'Warning', EventReason.ClaimNotHonoured, message);
  }
}
