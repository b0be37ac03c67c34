/**
 * The IPAM library: finds addresses and builds the writes that allocate, release and expire them. It has no clock, no I/O and no log.
 *
 * A caller finds candidates, builds a write with one of the verbs and sends it. Caches choose candidates, writes decide: a write
 * carries the UID and resourceVersion of the lease that was read. On a conflict the caller reads the lease again and starts over.
 *
 * | verb               | lease before          | lease after                          |
 * |--------------------|-----------------------|--------------------------------------|
 * | `createLease`      | none                  | held                                 |
 * | `reallocateLease`  | released, or reserved | held                                 |
 * |                    | held by a launcher    | held by the claim of its VM          |
 * | `updateLeaseUsage` | held                  | held, with another node or container |
 * | `releaseLease`     | held                  | released                             |
 * | `endProbe`         | held, being probed    | held, with the result of the probe   |
 * | `quarantineLease`  | held, not used yet    | quarantined                          |
 * | `expireLease`      | released              | deleted; a reservation: reserved     |
 * |                    | quarantined           | deleted                              |
 */

/** Addresses for a request, or one refusal for all of it. */
export {
  type AllocationCandidate,
  type AllocationContext,
  type AllocationRequest,
  type AllocationResult,
  type RestoreHold,
  type SpaceView,
  addressOf,
  findCandidates,
} from './allocator/allocator.js';

/** The verbs, and the questions to ask before them. */
export {
  type Availability,
  type LeaseRecord,
  type LeaseRequest,
  type LeaseTimes,
  type LeaseWrite,
  availabilityOf,
  createLease,
  expireLease,
  expiresAt,
  mayExpire,
  reallocateLease,
  releaseLease,
  updateLeaseUsage,
} from './lease/lease.js';
export { endProbe, quarantineLease } from './lease/lease-quarantine.js';

/**
 * The refusals. `reason` is one of:
 * - `Exhausted`: no address of a family is free. `retryAt` says when the next one has cooled down
 * - `Conflict`: the address belongs to another owner, cools down, is reserved or quarantined, or is kept for another claim
 * - `OutOfRange`: the pool never leases the requested address
 *
 * The messages are for users. They name no objects of other namespaces.
 */
export type { AllocationRefusal } from './allocator/allocator.js';
export {
  heldByMessage,
  notInPoolMessage,
  notLeasableMessage,
  notYetMessage,
  pendingWriteMessage,
  poolFullMessage,
  poolFullSubject,
  reservationMessage,
} from './allocator/refusal-messages.js';
