import type { LeaseOwner } from '../../api/address-lease.js';

/** The part of a LeaseRecord that is used here. */
interface HeldRecord {
  readonly owner?: LeaseOwner;
  readonly releasedAt?: number;
  readonly pool: string;
}

/** The part of a LeaseRequest that is used here. */
interface TakeoverRequest {
  readonly owner: LeaseOwner;
  readonly pool: string;
  readonly launchers?: ReadonlySet<string>;
}

/**
 * True if the lease may pass from a launcher, which holds it, to the claim of its VM. One write changes the owner, so that the address is
 * never free in between: the VM runs with it.
 */
export function mayTakeOver({ owner, releasedAt, pool }: HeldRecord, request: TakeoverRequest): boolean {
  if (owner?.kind !== 'Pod' || releasedAt !== undefined || pool !== request.pool) return false;
  const isOfNamespace = owner.namespace === request.owner.namespace && request.owner.kind === 'IPAMClaim';
  return isOfNamespace && request.launchers?.has(owner.uid) === true;
}
