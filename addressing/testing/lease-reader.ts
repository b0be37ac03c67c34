import type { AddressLease } from '../../api/address-lease.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { LaggingInformer } from '../../kube/testing/lagging-informer.js';
import type { ObjectTracker } from '../../kube/testing/object-tracker.js';
import { withCoolingStart } from '../lease/cooling-start.js';
import { type LeaseRecord, readLease } from '../lease/lease.js';

/** A process's cache of leases, as of the events that it has read. */
export class LeaseReader extends LaggingInformer<AddressLease, LeaseRecord> {
  /** By how much the wall clock of the process was set. */
  setMs = 0;

  /** @param now the monotonic clock */
  constructor(tracker: ObjectTracker, now: () => number) {
    const transform = (lease: AddressLease) => {
      const known = this.cache.get(lease.metadata.name);
      return withCoolingStart(readLease(lease), { known, hasSynced: true, now: now() });
    };
    super(tracker, { resource: ADDRESS_LEASES, transform });
    this.list();
  }
}
