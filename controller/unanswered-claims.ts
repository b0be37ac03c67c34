import { type IPAMClaim, claimNadOf } from '../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../api/meta.js';
import { EventReason } from '../api/event-reasons.js';
import type { Clock } from '../kube/clock.js';
import type { EventRecorder } from '../kube/events.js';
import type { Logger } from '../kube/log.js';
import { LastingReports } from '../process/lasting-reports.js';
import { checkIntervalMs } from '../process/periodic-task.js';
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

/** Creates the reports of claims without a status from ipam: `holdfast ipam` cannot report its own failure. */
export function reportUnansweredClaims(deps: UnansweredDeps): LastingReports<IPAMClaim> {
  const { clock, gate, claims, networks, afterMs } = deps;
  return new LastingReports({
    ...{ clock, gate, afterMs, pauseMs: checkIntervalMs(afterMs), objects: () => claims.list() },
    /** Only claims on networks of `holdfast ipam` count: it writes addresses or the reason why there are none. */
    problemsOf: (claim) => {
      if (claim.status !== undefined || isBeingDeleted(claim)) return [];
      const nad = networks.get(claimNadOf(claim) ?? '');
      if (nad?.delegation.kind !== 'holdfast') return [];
      return [{ key: claim.metadata.uid ?? '', report: () => report(claim, deps) }];
    },
  });
}

function report(claim: IPAMClaim, { events, log, afterMs }: UnansweredDeps): void {
  const message =
    `IPAMClaim ${claim.metadata.name} has no addresses: holdfast-ipam has not written its status within ${afterMs / 1000} s. ` +
    'Check that a holdfast-ipam pod is running and is the leader';
  log.warn({ claim: objectKey(claim) }, message);
  for (const subject of claimEventSubjects(claim))
    events.event(subject, 'Warning', EventReason.IpamNotResponding, message);
}
