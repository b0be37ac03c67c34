import { type IPAMClaim, claimMacOf } from '../../api/ipam-claim.js';
import type { Clock } from '../../kube/clock.js';
import type { Family } from '../../addressing/address/address.js';
import type { AllocationContext, AllocationRequest } from '../../addressing/index.js';
import { leaseOwnerOf } from '../../addressing/lease/lease-owner.js';
import { type LeaseRules, leaseTimesOf } from '../../addressing/lease/lease-times.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { readShownAddresses } from './claim-addresses.js';
import type { ClaimObservation } from './observe.js';
import type { RestoreHolds } from './restore-holds.js';
import type { ClaimStep } from './step.js';

/** Returns what a claim asks of its pool. It may keep the addresses that it shows or runs with, although they are draining. */
export function allocationRequestOf(
  { addresses, families }: Extract<ClaimStep, { kind: 'allocate' }>,
  { claim, running }: Pick<ClaimObservation, 'claim' | 'running'>,
  prefersSticky: boolean,
): AllocationRequest {
  const mac = claimMacOf(claim);
  const shown = readShownAddresses(claim).addresses;
  const isRunning = running.kind === 'addresses';
  return {
    addresses,
    families,
    kept: isRunning ? [...shown, ...running.addresses] : shown,
    owner: leaseOwnerOf(claim),
    ...(mac !== undefined && { mac }),
    prefersSticky,
    ...(isRunning && { launchers: running.launchers }),
  };
}

export interface AllocationTermsSource extends LeaseRules {
  clock: Pick<Clock, 'now'>;
  heldByStopped: (pool: string, family: Family) => number;
  restoreHolds: Pick<RestoreHolds, 'holdAgainst'>;
}

/** Returns the rules by which the pool allocates addresses to a claim now. */
export function allocationTermsOf(claim: IPAMClaim, pool: Pool, source: AllocationTermsSource): AllocationContext {
  const { clock, heldByStopped, restoreHolds } = source;
  return {
    ...leaseTimesOf(pool, source),
    now: clock.now(),
    // counted only if a message needs it
    heldByStopped: (family) => heldByStopped(pool.name, family),
    restoreHoldOn: (address) => restoreHolds.holdAgainst(claim, pool.addressSpace, address),
  };
}
