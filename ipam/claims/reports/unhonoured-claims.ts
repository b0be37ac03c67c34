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
import type { ClaimPods } from '../running/claim-pods.js';
import { claimEventSubjects } from '../../../cluster/event-subjects.js';

const REMEDY =
  'Let the NAD delegate IPAM to "holdfast" or to another IPAM that honours claims, add spec.guest to the AddressPool of a network whose ' +
  'NADs have no IPAM, or remove allowPersistentIPs from the config of the NAD';

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

/**
 * Creates the reports of claims of another IPAM that have no address although a pod that references them has had a node for some time. A pod without a
 * node does not count, because no IPAM need have seen it.
 */
export function reportUnhonouredClaims(deps: UnhonouredDeps): LastingReports<IPAMClaim> {
  const { clock, gate, claims, log, config } = deps;
  const { unhonouredAfterMs: afterMs } = config;
  return new LastingReports({
    ...{ clock, gate, afterMs, pauseMs: checkIntervalMs(afterMs), objects: () => claims.list() },
    problemsOf: (claim) => {
      try {
        return problemsOf(claim, deps);
      } catch (error) {
        log.error({ claim: objectKey(claim), err: error }, 'cannot check whether the claim is honoured');
        return [];
      }
    },
  });
}

function problemsOf(claim: IPAMClaim, deps: UnhonouredDeps): LastingProblem[] {
  if ((claim.status?.ips ?? []).length > 0 || isBeingDeleted(claim)) return [];
  const waiting = deps.pods
    .podsOf(claim)
    .filter((pod) => pod.claims.includes(claim.metadata.name) && pod.hasNode === true && !isBeingDeleted(pod));
  const resolution = waiting.length > 0 ? deps.directory.resolve(claim) : undefined;
  if (resolution?.kind !== 'foreign') return [];
  return waiting.map(({ metadata }) => ({
    key: `${claim.metadata.uid ?? ''}/${metadata.uid ?? ''}`,
    report: () => report(claim, { pod: metadata.name, why: resolution.message }, deps),
  }));
}

function report(claim: IPAMClaim, { pod, why }: Record<'pod' | 'why', string>, deps: UnhonouredDeps): void {
  const { events, log, config } = deps;
  const message =
    `IPAMClaim ${claim.metadata.name} got no address within ${config.unhonouredAfterMs / 1000} s after the start of pod ${pod}: ` +
    `${why}, and no other IPAM honours the claim. ${REMEDY}`;
  log.warn({ claim: objectKey(claim), pod }, message);
  for (const subject of claimEventSubjects(claim))
    events.event(subject, 'Warning', EventReason.ClaimNotHonoured, message);
}
