import type { IPAMClaim } from '../../api/ipam-claim.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isConflict, isNotFound } from '../../kube/errors.js';
import { ADDRESS_LEASES, IPAM_CLAIMS } from '../../kube/resources.js';
import { type LeaseClient, writeLease } from '../../cluster/lease-writes.js';
import {
  type AllocationCandidate,
  type AllocationRefusal,
  type LeaseRecord,
  type LeaseWrite,
  addressOf,
  releaseLease,
  updateLeaseUsage,
} from '../../addressing/index.js';
import { releaseTime } from '../../addressing/lease/cooling-start.js';
import type { LeaseBook } from '../leases/lease-book.js';
import { transformServedClaim } from './claim-transform.js';
import type { UnreadableAddresses } from './unreadable-addresses.js';
import { statusPatch } from './status.js';
import type { DesiredClaimStatus } from './step.js';
import { type AllocateLeaseContext, allocateLease } from './lease-allocation.js';

export interface ApplyContext {
  client: LeaseClient & Pick<Client, 'get'>;
  book: Pick<LeaseBook, 'recordWrite' | 'forget' | 'markPending' | 'clearPending'>;
  clock: Pick<Clock, 'now' | 'wall'>;
  call: CallOptions;
  unreadable: Pick<UnreadableAddresses, 'add'>;
  /** UIDs of leases that this sync created and no status has shown yet. */
  unpublished: Set<string>;
}

/** `lost`: another writer got the address first; the next attempt picks another one. */
export type AllocationOutcome =
  { kind: 'allocated' } | { kind: 'lost' } | { kind: 'refused'; refusal: AllocationRefusal };

/** Delay before a write that the API server rejected is tried again: only a change by another client can make it succeed. */
const REJECTED_RETRY_MS = 60_000;

/** Allocates the chosen addresses one after the other. Until all answers are in, this process picks none of them for another claim. */
export async function allocateAll(
  candidates: readonly AllocationCandidate[],
  owner: Pick<AllocateLeaseContext, 'claim' | 'pool' | 'launchers' | 'isProbed'>,
  context: ApplyContext,
): Promise<AllocationOutcome> {
  const { addressSpace } = owner.pool;
  const { book, unpublished, clock, unreadable } = context;
  const marked = candidates.filter((candidate) => book.markPending(addressSpace, addressOf(candidate)));
  const pending = new Set(marked);
  try {
    if (marked.length < candidates.length) return { kind: 'lost' };
    for (const candidate of candidates) {
      const result = await allocateLease(candidate, { ...context, ...owner });
      if (result.kind === 'lost') {
        // the lease book cannot hold an unreadable lease, so it would offer the address again
        if (result.to === 'unreadable' && pending.delete(candidate)) unreadable.add(addressSpace, addressOf(candidate));
        return { kind: 'lost' };
      }
      if (result.kind === 'refused') {
        return { kind: 'refused', refusal: { ...result.refusal, retryAt: clock.now() + REJECTED_RETRY_MS } };
      }
      if (result.isNew) unpublished.add(result.lease.metadata.uid);
    }
    return { kind: 'allocated' };
  } finally {
    for (const candidate of pending) book.clearPending(addressSpace, addressOf(candidate));
  }
}

/** @returns the claim as the API server stored it; undefined if it was changed or deleted meanwhile */
export async function writeStatus(
  claim: IPAMClaim,
  desired: DesiredClaimStatus,
  { client, clock, call }: Pick<ApplyContext, 'client' | 'clock' | 'call'>,
): Promise<IPAMClaim | undefined> {
  const { namespace, name } = claim.metadata;
  const body = statusPatch(claim, desired, clock.wall());
  try {
    const options = { ...call, subresource: 'status' };
    return transformServedClaim(await client.patch(IPAM_CLAIMS, { namespace, name }, { type: 'merge', body }, options));
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return undefined;
    throw error;
  }
}

/**
 * Releases leases. A lease that this sync created and no status has shown is deleted: no pod can know its address, so it need not cool down.
 * @throws {Error} the first error, after all leases have been tried
 */
export async function releaseAll(leases: readonly LeaseRecord[], context: ApplyContext): Promise<void> {
  const errors: unknown[] = [];
  for (const lease of leases) {
    try {
      await release(lease, context);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

async function release(lease: LeaseRecord, context: ApplyContext): Promise<void> {
  const { name, uid, resourceVersion } = lease.metadata;
  const change: LeaseWrite = context.unpublished.has(uid)
    ? { verb: 'delete', name, uid, resourceVersion }
    : releaseLease(lease, releaseTime(context.clock));
  await writeChange(lease, change, context);
}

/** Records the MAC address for which the leases will be sticky after their release. */
export async function recordMac(leases: readonly LeaseRecord[], mac: string, context: ApplyContext): Promise<void> {
  for (const lease of leases) {
    const { interface: podInterface } = lease;
    const usage = { mac, ...(podInterface !== undefined && { interface: podInterface }) };
    await writeChange(lease, updateLeaseUsage(lease, usage), context);
  }
}

/** @returns false if another writer changed the lease first: the next plan sees its current state */
export async function writeChange(lease: LeaseRecord, change: LeaseWrite, context: ApplyContext): Promise<boolean> {
  const { client, book, call } = context;
  const { name, uid } = lease.metadata;
  try {
    const after = await writeLease(client, change, call);
    if (after === undefined) book.forget(name, uid);
    else book.recordWrite(after);
    return true;
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    const found = await findUnlessGone(client, ADDRESS_LEASES, { name }, call);
    if (found === undefined) book.forget(name, uid);
    else book.recordWrite(found);
    return false;
  }
}
