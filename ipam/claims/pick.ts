import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import { AllocationReason } from '../../api/names.js';
import {
  type AddressWish,
  type Choice,
  type Chosen,
  type SpaceView,
  type Terms,
  addressOf,
  choose,
} from '../core/allocator.js';
import type { Family } from '../core/address.js';
import type { Pool } from '../core/pool.js';
import { fullSubject } from '../core/refusals.js';
import type { ClaimWaiters } from './waiting.js';

/** Where addresses are picked from, and by which rules. */
export interface Market {
  view: SpaceView;
  terms: Terms;
  waiters: Pick<ClaimWaiters, 'ahead'>;
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
  wish: AddressWish,
  { view, terms, waiters, pressed }: Market,
): Chosen {
  const chosen = choose(pool, wish, view, terms);
  const anew = familiesAnew(chosen, wish);
  for (const family of anew) if (view.space.isPressed(pool.name, family)) pressed?.(family);
  const created = claim.metadata.creationTimestamp ?? '';
  const ahead = wish.families.length === 0 ? 0 : waiters.ahead(pool.name, { key: objectKey(claim), created });
  if (ahead === 0) return chosen;
  if (!chosen.ok) {
    // the first in the line looks at the clock for all of them
    const { retryAt: _first, ...refusal } = chosen.refusal;
    return refusal.reason === AllocationReason.Exhausted ? { ok: false, refusal } : chosen;
  }
  const family = anew.find((each) => view.space.free(pool.name, each) <= BigInt(ahead));
  if (family === undefined) return chosen;
  const older = ahead === 1 ? '1 older claim waits' : `${ahead} older claims wait`;
  const message = `${fullSubject(pool, family)}: ${older} for what is free`;
  return { ok: false, refusal: { reason: AllocationReason.Exhausted, message, family } };
}

/** Of which it takes, or lacks, what anybody may have. */
function familiesAnew(chosen: Chosen, { mac, families }: AddressWish): readonly Family[] {
  if (!chosen.ok) return chosen.refusal.reason === AllocationReason.Exhausted ? families : [];
  const kept = chosen.choices.filter((choice) => isKeptFor(mac, choice)).map((choice) => addressOf(choice).family);
  return families.filter((family) => !kept.includes(family));
}

function isKeptFor(mac: string | undefined, choice: Choice): boolean {
  return choice.kind === 'take' && mac !== undefined && choice.lease.mac === mac;
}
