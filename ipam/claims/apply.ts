import type { IPAMClaim } from '../../api/ipam-claim.js';
import { AllocationReason } from '../../api/names.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isConflict, isNotFound } from '../../kube/errors.js';
import { ADDRESS_LEASES, IPAM_CLAIMS } from '../../kube/resources.js';
import { type LeaseClient, writeLease } from '../../cluster/lease-writes.js';
import { type AllocationCandidate, type AllocationRefusal, addressOf } from '../core/allocator.js';
import { type LeaseRecord, type LeaseWrite, updateLeaseUsage, releaseLease } from '../core/lease.js';
import type { Pool } from '../core/pool.js';
import type { LeaseBook } from '../leases/lease-book.js';
import { transformServedClaim } from './claim-transform.js';
import type { AddressQuarantine } from './address-quarantine.js';
import { statusPatch } from './status.js';
import type { DesiredClaimStatus } from './step.js';
import { allocateLease } from './lease-allocation.js';

export interface ApplyContext {
  client: LeaseClient & Pick<Client, 'get'>;
  book: Pick<LeaseBook, 'recordWrite' | 'forget' | 'hold' | 'unhold'>;
  clock: Pick<Clock, 'wall'>;
  call: CallOptions;
  spoiled: Pick<AddressQuarantine, 'add'>;
  /** UIDs of leases that this sync made and no status has shown. */
  fresh: Set<string>;
}

/** `lost`: the next choice will be another one. */
export type AllocationOutcome = { kind: 'taken' } | { kind: 'lost' } | { kind: 'refused'; refusal: AllocationRefusal };

/** What the API server refuses is asked for again after this: only a change by somebody else can cure it. */
const REJECTED_RETRY_MS = 60_000;

/** Takes what was chosen, one after the other. Until each answer is there, nobody else in this process chooses the address. */
export async function allocateAll(
  choices: readonly AllocationCandidate[],
  { claim, pool }: { claim: IPAMClaim; pool: Pool },
  context: ApplyContext,
): Promise<AllocationOutcome> {
  const { addressSpace } = pool;
  const { book, fresh, clock, spoiled } = context;
  const held = choices.filter((choice) => book.hold(addressSpace, addressOf(choice)));
  const release = new Set(held);
  try {
    if (held.length < choices.length) return { kind: 'lost' };
    for (const choice of choices) {
      const result = await allocateLease(choice, { ...context, claim, pool });
      if (result.kind === 'lost') {
        // no lease of the book will ever say that the address is not free
        if (result.to === 'unreadable' && release.delete(choice)) spoiled.add(addressSpace, addressOf(choice));
        return { kind: 'lost' };
      }
      if (result.kind === 'refused') {
        return { kind: 'refused', refusal: { ...result.refusal, retryAt: clock.wall() + REJECTED_RETRY_MS } };
      }
      if (result.fresh) fresh.add(result.lease.metadata.uid);
    }
    return { kind: 'taken' };
  } finally {
    for (const choice of release) book.unhold(addressSpace, addressOf(choice));
  }
}

/** @returns the claim as it is now; undefined where it is not what it was any more */
export async function writeStatus(
  claim: IPAMClaim,
  verdict: DesiredClaimStatus,
  { client, clock, call }: Pick<ApplyContext, 'client' | 'clock' | 'call'>,
): Promise<IPAMClaim | undefined> {
  const { namespace, name } = claim.metadata;
  const body = statusPatch(claim, verdict, clock.wall());
  try {
    const options = { ...call, subresource: 'status' };
    return transformServedClaim(await client.patch(IPAM_CLAIMS, { namespace, name }, { type: 'merge', body }, options));
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return undefined;
    throw error;
  }
}

/**
 * Releases leases. One that this very sync has made and no status has shown was told to nobody: there is nothing to cool down, so it is deleted,
 * as if it had never been.
 * @throws {Error} the first one, after all have been tried
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
  const isUnpublished = context.fresh.has(uid);
  await writeChange(
    lease,
    isUnpublished ? { verb: 'delete', name, uid, resourceVersion } : releaseLease(lease, context.clock.wall()),
    context,
  );
}

/** What the leases are kept for, once they are released. */
export async function recordMac(leases: readonly LeaseRecord[], mac: string, context: ApplyContext): Promise<void> {
  for (const lease of leases) {
    const { interface: podInterface } = lease;
    await writeChange(
      lease,
      updateLeaseUsage(lease, { mac, ...(podInterface !== undefined && { interface: podInterface }) }),
      context,
    );
  }
}

async function writeChange(
  lease: LeaseRecord,
  change: LeaseWrite,
  { client, book, call }: ApplyContext,
): Promise<void> {
  const { name, uid } = lease.metadata;
  try {
    const after = await writeLease(client, change, call);
    if (after === undefined) book.forget(name, uid);
    else book.recordWrite(after);
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
    // it is not what it was: the next plan is to know
    const found = await findUnlessGone(client, ADDRESS_LEASES, { name }, call);
    if (found === undefined) book.forget(name, uid);
    else book.recordWrite(found);
  }
}

/** Refusals by what claims can wait for. */
export function isPoolExhausted(refusal: AllocationRefusal): boolean {
  return refusal.reason === AllocationReason.Exhausted;
}
