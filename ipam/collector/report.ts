import type { IPAMClaim } from '../../api/ipam-claim.js';
import { ADDRESS_LEASE_KIND, EventReason, IPAM_API_VERSION } from '../../api/names.js';
import type { EventRecorder, EventSubject } from '../../kube/events.js';
import type { Logger } from '../../kube/log.js';
import type { Metrics } from '../../process/metrics.js';
import { claimEventSubjects } from '../../cluster/claim-event-subjects.js';
import { formatAddress } from '../core/address.js';
import { type LeaseRecord, isReservation } from '../core/lease.js';
import type { KeepReason } from './keep-reason.js';
import { type LeakKind, type LeakCandidate, describeOwner } from './leak-candidates.js';

/** What the collector tells the world. */
export interface CollectorReport {
  /** How many leases look leaked. */
  suspected(count: number): void;
  /** @param claim the owner, where it lives */
  collected(suspect: LeakCandidate, claim?: IPAMClaim): void;
  spared(suspect: LeakCandidate, why: KeepReason): void;
  expired(lease: LeaseRecord): void;
  /** A released lease could not be deleted, or reserved again. */
  notExpired(lease: LeaseRecord, message: string): void;
}

export interface CollectorReportDeps {
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'counter' | 'gauge'>;
  readonly events: Pick<EventRecorder, 'event'>;
}

/** To be made once in a process: its metrics have their names for themselves. */
export function createCollectorReport({ log, metrics, events }: CollectorReportDeps): CollectorReport {
  const suspects = metrics.gauge('leases_suspected', 'Leases that look leaked, and are not proved to be.');
  const collections = metrics.counter(
    'leases_collected_total',
    'Leaked leases that were released, by what was wrong.',
    ['charge'],
  );
  const spared = metrics.counter('leases_spared_total', 'Leases that looked leaked and were kept, by why.', ['why']);
  const expiries = metrics.counter(
    'leases_expired_total',
    'Released leases that were deleted, or reserved again, after their time.',
  );
  return {
    suspected: (count) => suspects.set(count),
    collected: (suspect, claim) => {
      collections.inc({ charge: suspect.charge });
      const message = describeCollection(suspect);
      log.warn({ lease: suspect.lease.metadata.name, charge: suspect.charge, owner: suspect.lease.owner }, message);
      for (const subject of [subjectOf(suspect), ...(claim === undefined ? [] : claimEventSubjects(claim))])
        events.event(subject, 'Normal', EventReason.LeaseCollected, message);
    },
    spared: ({ lease, charge }, why) => {
      spared.inc({ why: why.kind });
      const fields = { lease: lease.metadata.name, charge, owner: lease.owner };
      if (why.kind === 'unknown') log.warn(fields, `a lease that looks leaked is kept: ${why.why}`);
      else log.debug(fields, `a lease that looked leaked is kept: ${why.kind}`);
    },
    expired: (lease) => {
      expiries.inc();
      const end = isReservation(lease) ? 'reserved again' : 'deleted';
      log.debug({ lease: lease.metadata.name }, `released lease is ${end}: its time is over`);
    },
    notExpired: (lease, message) =>
      log.warn({ lease: lease.metadata.name }, `released lease cannot be ended: ${message}`),
  };
}

const CAUSES: Readonly<Record<LeakKind, string>> = {
  orphan: 'is gone',
  surplus: 'has another address and does not name this one in its status',
  'no-pool': 'runs without the address, and there is no such pool',
};

/** `released 10.0.0.5 of pool blue: its owner IPAMClaim vms/vm1.data (UID 123) is gone`. */
function describeCollection({ lease, charge }: LeakCandidate): string {
  const owner = lease.owner === undefined ? '' : ` ${describeOwner(lease.owner)}`;
  return `released ${formatAddress(lease.address)} of pool ${lease.pool}: its owner${owner} ${CAUSES[charge]}`;
}

function subjectOf({ lease }: LeakCandidate): EventSubject {
  const { name, uid, resourceVersion } = lease.metadata;
  return { apiVersion: IPAM_API_VERSION, kind: ADDRESS_LEASE_KIND, metadata: { name, uid, resourceVersion } };
}
