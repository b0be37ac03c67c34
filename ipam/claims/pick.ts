import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import { AllocationReason } from '../../api/names.js';
import {
  type AllocationRequest,
  type AllocationCandidate,
  type AllocationResult,
  type SpaceView,
  type AllocationContext,
  addressOf,
  findCandidates,
} from '../core/allocator.js';
import type { Family } from '../core/address.js';
import type { Pool } from '../core/pool.js';
import { poolFullSubject } from '../core/refusal-messages.js';
import type { ClaimWaitList } from './wait-list.js';

/** Where addresses are picked from, and by which rules. */
export interface PickInput {
  view: SpaceView;
  terms: AllocationContext;
  waiters: Pick<ClaimWaitList, 'ahead'>;
  /** Told of a family of which nothing is free but what is lent to nodes. */
  pressed?: (family: Family) => void;
}

/**
 * Addresses for a claim, or why there are none: of what is left, older claims that wait come first. Who wants one address in particular, or has
 * one kept for its MAC address, takes it from nobody who waits for any.
 */
export function pick(
  claim: IPAMClaim,
  pool: Pool,
  request: AllocationRequest,
  { view, terms, waiters, pressed }: PickInput,
): AllocationResult {
  const chosen = findCandidates(pool, request, view, terms);
  const needed = familiesNeedingFreeAddress(chosen, request);
  for (const family of needed) if (view.space.isUnlentExhausted(pool.name, family)) pressed?.(family);
  const created = claim.metadata.creationTimestamp ?? '';
  const ahead = request.families.length === 0 ? 0 : waiters.ahead(pool.name, { key: objectKey(claim), created });
  if (ahead === 0) return chosen;
  if (!chosen.ok) {
    // the first in the line looks at the clock for all of them
    const { retryAt: _first, ...refusal } = chosen.refusal;
    return refusal.reason === AllocationReason.Exhausted ? { ok: false, refusal } : chosen;
  }
  const family = needed.find((each) => view.space.free(pool.name, each) <= BigInt(ahead));
  if (family === undefined) return chosen;
  const older = ahead === 1 ? '1 older claim waits' : `${ahead} older claims wait`;
  const message = `${poolFullSubject(pool, family)}: ${older} for what is free`;
  return { ok: false, refusal: { reason: AllocationReason.Exhausted, message, family } };
}

/** Of which it takes, or lacks, what anybody may have. */
function familiesNeedingFreeAddress(chosen: AllocationResult, { mac, families }: AllocationRequest): readonly Family[] {
  if (!chosen.ok) return chosen.refusal.reason === AllocationReason.Exhausted ? families : [];
  const sticky = chosen.candidates
    .filter((choice) => isStickyFor(mac, choice))
    .map((choice) => addressOf(choice).family);
  return families.filter((family) => !sticky.includes(family));
}

function isStickyFor(mac: string | undefined, choice: AllocationCandidate): boolean {
  return choice.kind === 'take' && mac !== undefined && choice.lease.mac === mac;
}
