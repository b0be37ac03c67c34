import type { AddressLease, LeaseWrite } from '../../api/address-lease.js';
import { StatusError } from '../../kube/errors.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { LaggingInformer } from '../../kube/testing/lagging-informer.js';
import { ObjectTracker } from '../../kube/testing/object-tracker.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { writeObject } from './tracker-writes.js';

/** The leases of an API server that answers at once. */
export class LeaseStore {
  /** Milliseconds since the epoch. */
  now = Date.UTC(2026, 0, 1);
  readonly #tracker = new ObjectTracker({ now: () => this.now });

  get leases(): ReadonlyMap<string, AddressLease> {
    return this.#tracker.objects(ADDRESS_LEASES);
  }

  /** Returns an informer that has listed the leases. */
  watch(): LaggingInformer<AddressLease, LeaseRecord> {
    const informer = new LaggingInformer(this.#tracker, { resource: ADDRESS_LEASES, transform: readLease });
    informer.list();
    return informer;
  }

  /** @returns the answer of the API server; undefined if it rejects the write, and after a delete */
  write(write: LeaseWrite): AddressLease | undefined {
    try {
      return writeObject(this.#tracker, ADDRESS_LEASES, write);
    } catch (error) {
      if (error instanceof StatusError) return undefined;
      throw error;
    }
  }

  remove(name: string): void {
    this.#tracker.remove(ADDRESS_LEASES, { name });
  }
}
