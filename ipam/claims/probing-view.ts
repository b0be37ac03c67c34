import type { Family } from '../../addressing/address/address.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { ProbingStop } from '../leases/probing-stop.js';

/** What is known about probes besides the leases of the claim. */
export interface ProbingView {
  /** In ms of the clock. */
  now: number;
  /** Why the pool's addresses are not probed. */
  stop?: ProbingStop | undefined;
  /** When this process first saw that the probe of the lease was requested, in ms of the clock. */
  requestedAt: (lease: LeaseRecord) => number;
  /** How many addresses of the family that the claim does not request were quarantined for it, one after the other. */
  quarantinedInARow: (family: Family) => number;
}
