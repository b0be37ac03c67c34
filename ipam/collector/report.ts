import type { IPAMClaim } from '../../api/ipam-claim.js';
import { EventReason } from '../../api/event-reasons.js';
import { ADDRESS_LEASE_KIND, IPAM_API_VERSION } from '../../api/names.js';
import type { EventRecorder, EventSubject } from '../../kube/events.js';
import type { Logger } from '../../kube/log.js';
import type { Metrics } from '../../process/metrics.js';
import { claimEventSubjects } from '../../cluster/event-subjects.js';
import { formatAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, isReservation, stateOf } from '../../addressing/lease/lease.js';
import { type KeepReason, type LeakKind, type LeakedLease, describeOwner } from './leak-kind.js';

export type CollectorReport = ReturnType<typeof createCollectorReport>;

interface CollectorReportDeps {
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'counter' | 'gauge'>;
  readonly events: Pick<EventRecorder, 'event'>;
}

/** Creates the logs, metrics and events of the collector. Create only one per process, because metrics are registered once. */
export function createCollectorReport({ log, metrics, events }: CollectorReportDeps) {
  const candidates = metrics.gauge('leases_leak_candidates', 'Leases that may be leaked and are still being checked.');
  const collectedHelp = 'Leaked leases that were released, by kind of leak.';
  const collections = metrics.counter('leases_collected_total', collectedHelp, ['leak']);
  const kept = metrics.counter('leases_kept_total', 'Leases that looked leaked and were kept, by reason.', ['reason']);
  const expiries = metrics.counter(
    'leases_expired_total',
    'Released leases that were deleted, or made reservations again, after their time.',
  );
  // the first increase of a counter is seen only if it was 0 before
  for (const leak of Object.keys(CAUSES)) collections.inc({ leak }, 0);
  const clear = () => candidates.remove();
  clear();
  return {
    /** Sets the number of leases that look leaked. */
    candidates: (count: number) => candidates.set(count),
    /** Removes what only the leader reports. */
    clear,
    /** A leaked lease was released. @param claim the owner, if it exists */
    collected: (candidate: LeakedLease, claim?: IPAMClaim) => {
      collections.inc({ leak: candidate.leak });
      const message = describeCollection(candidate);
      log.warn({ lease: candidate.lease.metadata.name, leak: candidate.leak, owner: candidate.lease.owner }, message);
      for (const subject of [subjectOf(candidate), ...(claim === undefined ? [] : claimEventSubjects(claim))])
        events.event(subject, 'Normal', EventReason.LeaseCollected, message);
    },
    kept: ({ lease, leak }: LeakedLease, reason: KeepReason) => {
      kept.inc({ reason: reason.kind });
      const fields = { lease: lease.metadata.name, leak, owner: lease.owner };
      if (reason.kind === 'unknown')
        log.warn(fields, `keeping a lease that looks leaked: cannot check its owner: ${reason.why}`);
      else log.debug(fields, `keeping a lease that looked leaked: ${KEEP_REASONS[reason.kind]}`);
    },
    expired: (lease: LeaseRecord) => {
      expiries.inc();
      const end = isReservation(lease) ? 'reserved again' : 'deleted';
      log.debug({ lease: lease.metadata.name }, `expired a ${stateOf(lease)} lease: it is ${end}`);
    },
    /** A released lease could not be deleted, or made a reservation again. */
    notExpired: (lease: LeaseRecord, message: string) =>
      log.warn({ lease: lease.metadata.name }, `cannot expire a ${stateOf(lease)} lease, trying again: ${message}`),
  };
}

const KEEP_REASONS: Readonly<Record<Exclude<KeepReason['kind'], 'unknown'>, string>> = {
  alive: 'its owner exists and may need it',
  changed: 'it has changed, or its owner has',
};

const CAUSES: Readonly<Record<LeakKind, string>> = {
  orphan: 'does not exist any more',
  surplus: 'has another address, and its status does not contain this one',
  'no-pool': 'runs without this address, and its pool does not exist',
};

/** For example `released 10.0.0.5 of pool blue: its owner IPAMClaim vms/vm1.data (UID 123) does not exist any more`. */
function describeCollection({ lease, leak }: LeakedLease): string {
  const owner = lease.owner === undefined ? '' : ` ${describeOwner(lease.owner)}`;
  return `released ${formatAddress(lease.address)} of pool ${lease.pool}: its owner${owner} ${CAUSES[leak]}`;
}

function subjectOf({ lease }: LeakedLease): EventSubject {
  const { name, uid, resourceVersion } = lease.metadata;
  return { apiVersion: IPAM_API_VERSION, kind: ADDRESS_LEASE_KIND, metadata: { name, uid, resourceVersion } };
}
